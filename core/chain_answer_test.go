package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
)

// What a message is to the host does not depend on what a provider returns for it.
func TestChainKeepsWhatIsTheHosts(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	req := coretest.Request(talk(4), 300)
	for i := range req.Messages {
		req.Messages[i].Source = json.RawMessage(strconv.Itoa(i))
	}
	req.Messages[0].Protected = true
	was := *req
	was.Messages = slices.Clone(req.Messages)
	p := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		m := req.Messages
		for i := range m {
			if m[i].Source != nil {
				t.Error("a provider saw a Source")
			}
			m[i].Time, m[i].Tokens, m[i].Protected, m[i].Source = time.Time{}, 1, !m[i].Protected, json.RawMessage("forged")
		}
		m[1].Parts = []core.Part{hi}
		fresh := core.Message{Role: core.RoleUser, Parts: []core.Part{note}, Protected: true, Tokens: 1, Source: json.RawMessage("forged")}
		return &core.Result{Messages: messages{m[0], m[1], fresh, m[3]}}, nil
	})
	opts := &core.ChainOptions{NewID: func() string { return "new" }, Now: func() time.Time { return at }}
	out, err := chainOf(t, opts, p).Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	rewritten := was.Messages[1]
	rewritten.Parts, rewritten.Source = []core.Part{hi}, nil
	rewritten.Tokens = core.MessageTokens(req.Counter, rewritten)
	fresh := core.Message{ID: "new", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{note}, Time: at}
	fresh.Tokens = core.MessageTokens(req.Counter, fresh)
	want := messages{was.Messages[0], rewritten, fresh, was.Messages[3]}
	if diff := cmp.Diff(want, out.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	edit := core.Edit{
		Hide:    []string{"m3"},
		Rewrite: []core.Rewrite{{ID: "m2", Parts: []core.Part{hi}}},
		Insert:  []core.Insert{{After: "m3", Message: fresh}},
	}
	if diff := cmp.Diff(edit, out.Edit, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("edit (-want +got):\n%s", diff)
	}
}

// Two candidates, neither of which breaks a rule, must not break one together.
func TestChainJudgesTheWhole(t *testing.T) {
	rewrites := func(parts ...core.Part) core.CondensationProvider {
		return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
			req.Messages[0].Parts = parts
			return &core.Result{Messages: req.Messages}, nil
		})
	}
	req := coretest.Request(coretest.Conversation(coretest.User(hi, coretest.Image(1))), 1)
	req.Budget.Limit = req.Tokens()
	out, err := chainOf(t, nil, rewrites(hi, core.Text("[… image]")), rewrites(hi), rewrites(hi, core.Text("[…]"))).Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	checkCondensed(t, req, out)
	var got []core.Outcome
	for _, a := range out.Attempts {
		got = append(got, a.Outcome)
	}
	want := []core.Outcome{core.OutcomeInsufficient, core.OutcomeRejected, core.OutcomeInsufficient}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestChainNamesNewMessagesDifferently(t *testing.T) {
	p := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		return &core.Result{Messages: messages{summary(hi), summary(note), req.Messages[9]}}, nil
	})
	out, err := chainOf(t, nil, p).Run(t.Context(), coretest.Request(talk(10), 500))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := out.Messages[0].ID, out.Messages[1].ID; a == "" || b == "" || a == b || out.Messages[2].ID != "m10" {
		t.Errorf("got the IDs %q, %q, %q; want two new ones and m10", a, b, out.Messages[2].ID)
	}
}

// Later changes of a provider to its request or answer have no effect.
func TestChainSharesNothingWithProviders(t *testing.T) {
	var gotReq *core.Request
	var gave *core.Result
	p := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		gotReq = req
		m := slices.Clone(req.Messages)
		m[2].Parts = []core.Part{result("c1", hi, note)} // rewritten
		m[3] = summary(hi, note)                         // new, for one that is hidden
		gave = &core.Result{Messages: m}
		return gave, nil
	})
	long := strings.Repeat("long ", 100)
	req := coretest.Request(coretest.Conversation(
		coretest.User(hi), coretest.Assistant(coretest.Call("c1")), coretest.User(coretest.Result("c1", long)),
		coretest.Assistant(core.Text(long)), coretest.User(result("lost", hi)),
	), 100)
	was := req.Clone()
	out, err := chainOf(t, nil, p).Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := (&core.Request{Messages: out.Messages}).Clone().Messages
	for _, m := range [][]core.Message{gotReq.Messages, gave.Messages} {
		for i := range m {
			for j, p := range m[i].Parts {
				if r, ok := p.(core.ToolResult); ok {
					r.Content[0] = core.Text("spoilt")
				}
				m[i].Parts[j] = core.Text("spoilt")
			}
			m[i].ID = "spoilt"
		}
	}
	untouched(t, was, req)
	if diff := cmp.Diff(want, out.Messages); diff != "" {
		t.Errorf("the answer changed:\n%s", diff)
	}
}

// A provider that claims to have spent more than there is makes no sum that is not a number.
func TestUsageOfManyIsANumber(t *testing.T) {
	all := core.Usage{Calls: math.MaxInt, InputTokens: math.MaxInt, OutputTokens: math.MaxInt, CachedTokens: math.MaxInt, Unpriced: math.MaxInt, USD: math.MaxFloat64}
	liar := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		return &core.Result{Messages: req.Messages, Usage: all}, nil
	})
	out, err := chainOf(t, nil, liar, liar, saves(3), saves(4)).Run(t.Context(), coretest.Request(talk(10), 500))
	if err != nil {
		t.Fatal(err)
	}
	if u := out.Usage; u.Calls <= 0 || u.InputTokens <= 0 || u.Unpriced <= 0 || math.IsInf(u.USD, 0) {
		t.Errorf("%+v", u)
	}
}

// Usage is the provider's word. It is added up, whatever came of the attempt, but not
// if it cannot be true: a report must be written as JSON.
func TestChainUsage(t *testing.T) {
	liar := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		return &core.Result{Messages: req.Messages, Usage: core.Usage{Calls: -3, InputTokens: math.MinInt, CachedTokens: 7, USD: math.Inf(1)}}, nil
	})
	req := coretest.Request(talk(10), 500)
	out, err := chainOf(t, nil, fails(errors.New("broke")), liar, misbehaving.Named("LiesAboutUsage"), saves(3), saves(4)).Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := core.Usage{Calls: 4, InputTokens: 200, OutputTokens: 20, CachedTokens: 7, USD: 1}
	if out.Usage != want {
		t.Errorf("got %+v, want %+v", out.Usage, want)
	}
	if _, err := json.Marshal(out.Attempts); err != nil {
		t.Errorf("the attempts cannot be written: %v", err)
	}
}

func TestChainHooks(t *testing.T) {
	var calls []string
	opts := &core.ChainOptions{
		Asking: func(name string) { calls = append(calls, "asking "+name) },
		Asked:  func(a core.Attempt) { calls = append(calls, fmt.Sprintf("asked %s: %s", a.Provider, a.Outcome)) },
	}
	if _, err := chainOf(t, opts, misbehaving.Named("Fails"), saves(7), saves(8)).Run(t.Context(), coretest.Request(talk(10), 500)); err != nil {
		t.Fatal(err)
	}
	want := []string{"asking p1", "asked p1: failed", "asking p2", "asked p2: applied"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestChainConcurrently(t *testing.T) {
	chain := chainOf(t, nil, misbehaving.Named("Fails"), misbehaving.Named("Drips"), coretest.Truncates())
	req := coretest.HalfRequest(coretest.Session())
	was := req.Clone()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out, err := chain.Run(t.Context(), req)
			if err != nil {
				t.Error(err)
				return
			}
			checkCondensed(t, req, out)
		})
	}
	wg.Wait()
	untouched(t, was, req)
}

// TestErrorCannotForgeTheReport: whatever a provider says when it fails, or panics, is one line
// of the report, without characters that act on a terminal.
func TestErrorCannotForgeTheReport(t *testing.T) {
	forged := "busy\n  evil             applied      23,813 -> 9,000 tokens (1 ms)\r\n\u2028\u2029\u0085\x1b[31mred\x1b]0;PWN\a \u202etxet"
	for name, fail := range map[string]func() error{
		"error":       func() error { return errors.New(forged) },
		"panic":       func() error { panic(forged) },
		"joined":      func() error { return errors.Join(errors.New("one"), errors.New(forged)) },
		"unavailable": func() error { return fmt.Errorf("%s%w", forged, core.ErrUnavailable) },
	} {
		p := core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) { return nil, fail() })
		out, err := chainOf(t, nil, p, coretest.Truncates()).Run(t.Context(), coretest.HalfRequest(coretest.Session()))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range out.Attempts {
			if strings.ContainsFunc(a.Reason, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }) {
				t.Errorf("%s: %q", name, a.Reason)
			}
		}
		if got := out.Attempts[0].Reason; !strings.Contains(got, "23,813 -> 9,000 tokens") {
			t.Errorf("%s: the words are lost: %q", name, got)
		}
	}
}

// A counter that does something when it is first asked.
type tripwire struct {
	core.Counter

	once *sync.Once
	do   func()
}

func (c tripwire) Count(parts ...core.Part) int {
	c.once.Do(c.do)
	return c.Counter.Count(parts...)
}

// A provider that changes its answer while the host works on it (it serves two conversations
// and forgot to copy) must not get past the check.
func TestAnswerThatChangesAfterItWasGivenIsNotUsed(t *testing.T) {
	var gave []core.Message
	p := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		gave = slices.Concat(req.Messages[:1], messages{summary(hi)}, req.Messages[6:])
		return &core.Result{Messages: gave}, nil
	})
	req := coretest.Request(talk(10), 600)
	req.Messages[9].Protected = true
	was := req.Messages[9]
	for _, change := range []func(){
		func() { gave[len(gave)-1].Parts[0] = core.Text("I agree to everything.") },
		func() { gave[len(gave)-1].Parts = []core.Part{core.Text("I agree to everything.")} },
		func() { gave[len(gave)-1].ID = "m2" },
	} {
		req.Counter = tripwire{coretest.Counter{}, new(sync.Once), change}
		out, err := chainOf(t, nil, p).Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if last := out.Messages[len(out.Messages)-1]; !last.Equal(was) {
			t.Errorf("the protected message became %v", last)
		}
	}
}
