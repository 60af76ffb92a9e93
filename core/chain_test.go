package core_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
)

// chainOf returns a chain of the providers, named p1, p2, …, each with half a minute.
func chainOf(t *testing.T, opts *core.ChainOptions, providers ...core.CondensationProvider) *core.Chain {
	t.Helper()
	var candidates []core.NamedProvider
	for i, p := range providers {
		candidates = append(candidates, core.NamedProvider{Name: fmt.Sprintf("p%d", i+1), Provider: framed(p), Timeout: 30 * time.Second})
	}
	c, err := core.NewChain(candidates, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// framing is a provider that frames itself what it inserts.
type framing struct{ core.ProviderFunc }

func (framing) Frames() bool { return true }

// framed returns p as a provider that frames what it inserts, if it is a function: numbers in these
// tests are those of what it wrote.
func framed(p core.CondensationProvider) core.CondensationProvider {
	if f, ok := p.(core.ProviderFunc); ok {
		return framing{f}
	}
	return p
}

// A fataler is what tests of this package need of a *testing.T or *rapid.T.
type fataler interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// checkCondensed checks what holds of every answer of a chain.
func checkCondensed(t fataler, req *core.Request, out *core.ChainResult) {
	t.Helper()
	applied, err := out.Edit.Apply(req.Messages)
	if err != nil {
		t.Fatalf("the edit does not fit the request: %v", err)
	}
	if !sameMessages(applied, out.Messages) {
		t.Errorf("the edit applied to the request does not give the messages of the answer")
	}
	if (out.Provider == "") != out.Edit.Empty() {
		t.Errorf("got provider %q with the edit %+v; want both or none", out.Provider, out.Edit)
	}
	// New messages have got IDs; seen from the request they are as new as before.
	known := map[string]bool{}
	for _, m := range req.Messages {
		known[m.ID] = true
	}
	res := &core.Result{Messages: slices.Clone(out.Messages)}
	total := req.Budget.Overhead
	for i := range res.Messages {
		m := &res.Messages[i]
		total += m.Tokens
		if m.ID == "" || m.Tokens != core.MessageTokens(req.Counter, *m) {
			t.Errorf("message %d, %q: got %d tokens, want an ID and %d tokens", i, m.ID, m.Tokens, core.MessageTokens(req.Counter, *m))
		}
		if !known[m.ID] {
			m.ID = ""
		}
	}
	if err := core.Verify(req, res); err != nil {
		t.Errorf("the answer breaks a rule: %v", err)
	}
	if out.TokensBefore != req.Tokens() || out.TokensAfter != total || out.TokensAfter > out.TokensBefore {
		t.Errorf("got %d tokens that became %d, want %d that became %d", out.TokensBefore, out.TokensAfter, req.Tokens(), total)
	}
}

// untouched fails the test if req is not as it was.
func untouched(t fataler, was, is *core.Request) {
	t.Helper()
	if diff := cmp.Diff(was, is, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the request was changed:\n%s", diff)
	}
}

// A chain survives every misbehaving provider: the next one gets the original messages.
func TestChainSurvivesMisbehavingProviders(t *testing.T) {
	for i, m := range misbehaving.All(nil) {
		t.Run(m.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer func() {
					close(release)
					time.Sleep(time.Hour) // for one that dawdles
				}()
				sinner := misbehaving.All(release)[i].Provider
				var asked [][]core.Message
				next := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
					asked = append(asked, req.Messages)
					return coretest.Truncates().Condense(ctx, req)
				})
				chain := chainOf(t, nil, sinner, next)
				req := coretest.HalfRequest(m.Session())
				was := req.Clone()
				for range 2 { // some misbehave only when asked again
					start := time.Now()
					out, err := chain.Run(t.Context(), req)
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(start); took > 30*time.Second+core.DefaultGrace {
						t.Errorf("took %s", took)
					}
					untouched(t, was, req)
					checkCondensed(t, req, out)
					first, second := out.Attempts[0], out.Attempts[1]
					if first.Outcome != m.Outcome {
						t.Errorf("got outcome %s, %s; want %s", first.Outcome, first.Reason, m.Outcome)
					}
					if first.Outcome == core.OutcomeRejected && !strings.Contains(rulesIn(t, first.Err), m.Rule) {
						t.Errorf("got %v, want a violation of %s", first.Err, m.Rule)
					}
					if m.Outcome != core.OutcomeInsufficient && !sameMessages(asked[len(asked)-1], req.Messages) {
						t.Error("the next candidate got another conversation")
					}
					if second.Outcome != core.OutcomeApplied || out.TokensAfter > req.Budget.Target {
						t.Errorf("got %s with %d tokens from the next candidate; want %s", second.Outcome, out.TokensAfter, core.OutcomeApplied)
					}
				}
			})
		})
	}
}

// saves returns a provider that replaces the oldest n messages but the first by a
// summary.
func saves(n int) core.CondensationProvider {
	return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		m := slices.Concat(req.Messages[:1], messages{summary(core.Text("in short"))}, req.Messages[1+n:])
		return &core.Result{Messages: m, Usage: core.Usage{Calls: 1, InputTokens: 100, OutputTokens: 10, USD: 0.5}}, nil
	})
}

func fails(err error) core.CondensationProvider {
	return core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) {
		return &core.Result{Usage: core.Usage{Calls: 2}}, err
	})
}

// talk returns n messages of 100 tokens each, of users and a model by turns.
func talk(n int) []core.Message {
	var m []core.Message
	for i := range n {
		text := core.Text(fmt.Sprintf("%-384d", i))
		m = append(m, core.Message{Role: []core.Role{core.RoleUser, core.RoleAssistant}[i%2], Parts: []core.Part{text}})
	}
	return coretest.Conversation(m...)
}

func TestChainOutcomes(t *testing.T) {
	// Ten messages are 1,000 tokens; a summary is 6.
	on := func(target, limit int) *core.Request {
		req := coretest.Request(talk(10), target)
		req.Budget.Limit = limit
		return req
	}
	type attempt struct {
		outcome       core.Outcome
		reason        string
		before, after int
	}
	skipped := func(n int) attempt { return attempt{core.OutcomeSkipped, "not needed", n, n} }
	tests := []struct {
		name      string
		req       *core.Request
		providers []core.CondensationProvider
		want      []attempt
		provider  string
		ids       string
	}{
		{
			"the first is enough", on(500, 500),
			[]core.CondensationProvider{saves(7), saves(8)},
			[]attempt{{core.OutcomeApplied, "", 1000, 306}, skipped(306)},
			"p1", "m1 n1 m9 m10",
		},
		{
			"exactly on target", on(306, 306),
			[]core.CondensationProvider{saves(7)},
			[]attempt{{core.OutcomeApplied, "", 1000, 306}},
			"p1", "m1 n1 m9 m10",
		},
		{
			"one token above", on(305, 306),
			[]core.CondensationProvider{saves(7)},
			[]attempt{{core.OutcomeInsufficient, "1 token above the target of 305", 1000, 306}},
			"p1", "m1 n1 m9 m10",
		},
		{
			"the second goes on where the first stopped", on(500, 500),
			[]core.CondensationProvider{saves(3), saves(4), saves(1)},
			[]attempt{{core.OutcomeInsufficient, "206 tokens above the target of 500", 1000, 706}, {core.OutcomeApplied, "", 706, 406}, skipped(406)},
			"p2", "m1 n2 m8 m9 m10",
		},
		{
			"what was saved stays though the second fails", on(500, 800),
			[]core.CondensationProvider{saves(3), fails(errors.New("no money"))},
			[]attempt{{core.OutcomeInsufficient, "206 tokens above the target of 500", 1000, 706}, {core.OutcomeFailed, "no money", 706, 706}},
			"p1", "m1 n1 m5 m6 m7 m8 m9 m10",
		},
		{
			"nothing changed", on(500, 2000),
			[]core.CondensationProvider{coretest.Keeps()},
			[]attempt{{core.OutcomeNoOp, "nothing changed", 1000, 1000}},
			"", "m1 m2 m3 m4 m5 m6 m7 m8 m9 m10",
		},
		{
			"on target before", on(1000, 1000),
			[]core.CondensationProvider{coretest.Keeps()},
			[]attempt{{core.OutcomeNoOp, "already on target", 1000, 1000}},
			"", "m1 m2 m3 m4 m5 m6 m7 m8 m9 m10",
		},
		{
			"changes without gain", on(500, 2000),
			[]core.CondensationProvider{core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				req.Messages[1].Parts = []core.Part{core.Text(fmt.Sprintf("%384d", 1))}
				return &core.Result{Messages: req.Messages}, nil
			})},
			[]attempt{{core.OutcomeNoOp, "the changes save no tokens", 1000, 1000}},
			"", "m1 m2 m3 m4 m5 m6 m7 m8 m9 m10",
		},
		{
			"one rule broken", on(500, 2000),
			[]core.CondensationProvider{misbehaving.Named("ReturnsNothing")},
			[]attempt{{core.OutcomeRejected, "answer: all 10 messages are gone", 1000, 1000}},
			"", "m1 m2 m3 m4 m5 m6 m7 m8 m9 m10",
		},
		{
			"many rules broken", on(500, 2000),
			[]core.CondensationProvider{core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) {
				return &core.Result{Messages: messages{assistant("who"), system("m1", hi)}}, nil
			})},
			[]attempt{{core.OutcomeRejected, "known-ids: message who: the request has no such message (and 4 more violations)", 1000, 1000}},
			"", "m1 m2 m3 m4 m5 m6 m7 m8 m9 m10",
		},
		{
			"not able to work", on(500, 500),
			[]core.CondensationProvider{
				fails(fmt.Errorf("no key: %w", core.ErrUnavailable)),
				fails(fmt.Errorf("pictures: %w", errors.ErrUnsupported)), saves(7),
			},
			[]attempt{
				{core.OutcomeSkipped, "no key: unavailable", 1000, 1000},
				{core.OutcomeSkipped, "pictures: unsupported operation", 1000, 1000},
				{core.OutcomeApplied, "", 1000, 306},
			},
			"p3", "m1 n1 m9 m10",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			opts := &core.ChainOptions{NewID: func() string { n++; return fmt.Sprintf("n%d", n) }}
			was := tt.req.Clone()
			out, err := chainOf(t, opts, tt.providers...).Run(t.Context(), tt.req)
			if err != nil {
				t.Fatal(err)
			}
			untouched(t, was, tt.req)
			checkCondensed(t, tt.req, out)
			var got []attempt
			for i, a := range out.Attempts {
				got = append(got, attempt{a.Outcome, a.Reason, a.TokensBefore, a.TokensAfter})
				if want := fmt.Sprintf("p%d", i+1); a.Provider != want {
					t.Errorf("attempt %d: got provider %s, want %s", i, a.Provider, want)
				}
				if bad := a.Outcome == core.OutcomeFailed || a.Outcome == core.OutcomeRejected || a.Reason != "not needed" && a.Outcome == core.OutcomeSkipped; bad != (a.Err != nil) {
					t.Errorf("attempt %d: got outcome %s with the error %v", i, a.Outcome, a.Err)
				}
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(attempt{})); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			if out.Provider != tt.provider {
				t.Errorf("got provider %q, want %q", out.Provider, tt.provider)
			}
			if got := idsOf(out.Messages); got != tt.ids {
				t.Errorf("got messages %s, want %s", got, tt.ids)
			}
		})
	}
}

func TestChainExhausted(t *testing.T) {
	errMoney := errors.New("no money")
	req := coretest.Request(talk(10), 100)
	_, err := chainOf(t, nil, fails(errMoney), misbehaving.Named("ReturnsNothing"), saves(3), coretest.Keeps(), misbehaving.Named("Panics")).Run(t.Context(), req)
	exhausted, ok := errors.AsType[*core.ExhaustedError](err)
	if !ok {
		t.Fatalf("got %v, want an ExhaustedError", err)
	}
	if exhausted.Tokens != 706 || exhausted.Limit != 100 || len(exhausted.Attempts) != 5 {
		t.Errorf("got %d tokens, limit %d, %d attempts; want 706, 100, 5", exhausted.Tokens, exhausted.Limit, len(exhausted.Attempts))
	}
	want := "no provider brought the conversation to its limit of 100 tokens; it still has 706; " +
		"p1: failed, no money; p2: rejected, answer: all 10 messages are gone; " +
		"p3: insufficient, 606 tokens above the target of 100; p4: no-op, nothing changed; " +
		"p5: failed, panic: a provider's bug at misbehaving.go:"
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %s\nwant %s…", err, want)
	}
	if !errors.Is(err, errMoney) {
		t.Error("want it to unwrap to the error of a provider")
	}
	if v, ok := errors.AsType[*core.ViolationError](err); !ok || v.Rule != "answer" {
		t.Errorf("got violation %v, want one of answer", v)
	}
}

func TestChainRefusesInvalidRequests(t *testing.T) {
	valid := func() *core.Request { return coretest.Request(talk(3), 100) }
	tests := []struct {
		name   string
		change func(*core.Request)
		want   string
	}{
		{"no counter", func(r *core.Request) { r.Counter = nil }, "no counter"},
		{"target above limit", func(r *core.Request) { r.Budget.Limit = 99 }, "target of 100 tokens above the limit of 99"},
		{"no ID", func(r *core.Request) { r.Messages[1].ID = "" }, "message 1 has no ID"},
		{"ID twice", func(r *core.Request) { r.Messages[2].ID = "m1" }, `message 2 has the ID "m1" of an earlier one`},
		{"not measured", func(r *core.Request) { r.Messages[2].Tokens = 0 }, "message m3 is not measured"},
		{"negative size", func(r *core.Request) { r.Messages[2].Tokens = -1 }, "message m3 is not measured"},
		{"nil part", func(r *core.Request) { r.Messages[0].Parts = []core.Part{hi, nil} }, "message m1: part 1: <nil> is not a part"},
		{"pointer", func(r *core.Request) { r.Messages[0].Parts = []core.Part{new(hi)} }, "message m1: part 0: *core.Text is not a part"},
		{"nested call", func(r *core.Request) { r.Messages[0].Parts = []core.Part{result("a", hi, call("b"))} }, "message m1: part 0: content 1: a tool call inside a tool result"},
	}
	asked := core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) {
		t.Error("a provider was asked")
		return nil, nil
	})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := valid()
			tt.change(req)
			_, err := chainOf(t, nil, asked).Run(t.Context(), req)
			if want := "invalid request: " + tt.want; !errors.Is(err, core.ErrInvalidRequest) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	if _, err := chainOf(t, nil, asked).Run(t.Context(), nil); !errors.Is(err, core.ErrInvalidRequest) {
		t.Errorf("nil: got %v, want %v", err, core.ErrInvalidRequest)
	}
}

func TestChainWithoutMessages(t *testing.T) {
	out, err := chainOf(t, nil, coretest.Truncates()).Run(t.Context(), coretest.Request(nil, 0))
	if err != nil || len(out.Messages) != 0 || !out.Edit.Empty() {
		t.Errorf("got %+v, %v; want nothing", out, err)
	}
}

func TestNewChainRefuses(t *testing.T) {
	keeps := coretest.Keeps()
	for want, candidates := range map[string][]core.NamedProvider{
		"chain: no providers":           nil,
		"chain: provider 1 has no name": {{Name: "a", Provider: keeps}, {Provider: keeps}},
		`chain: duplicate provider "a"`: {{Name: "a", Provider: keeps}, {Name: "a", Provider: keeps}},
		`chain: provider "a" is nil`:    {{Name: "a"}},
	} {
		if _, err := core.NewChain(candidates, nil); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

type closer struct {
	core.CondensationProvider
	err error
}

func (c closer) Close() error { return c.err }

func TestChainClose(t *testing.T) {
	keeps := coretest.Keeps()
	chain := chainOf(t, nil, keeps, closer{keeps, io.ErrClosedPipe}, closer{keeps, nil}, closer{keeps, io.ErrUnexpectedEOF})
	err := chain.Close()
	if want := "close p2: io: read/write on closed pipe\nclose p4: unexpected EOF"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := chainOf(t, nil, keeps, closer{keeps, nil}).Close(); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

// TestChainsNest runs a chain as a provider of another one.
func TestChainsNest(t *testing.T) {
	req := coretest.Request(talk(20), 650)
	inner := chainOf(t, nil, saves(3), saves(4))
	flat, err := chainOf(t, nil, saves(3), saves(4), coretest.Truncates()).Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	out, err := chainOf(t, nil, inner, coretest.Truncates()).Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	checkCondensed(t, req, out)
	if out.TokensAfter != flat.TokensAfter || len(out.Messages) != len(flat.Messages) {
		t.Errorf("nested: %d messages, %d tokens; want those of the flat chain, %d and %d",
			len(out.Messages), out.TokensAfter, len(flat.Messages), flat.TokensAfter)
	}
	if steps := out.Attempts[0].Steps; len(steps) != 2 || steps[0].Name != "p1" || steps[1].Name != "p2" {
		t.Errorf("got the steps %+v, want one for each provider", steps)
	}
}

func TestNestedChainFails(t *testing.T) {
	unavailable := fails(core.ErrUnavailable)
	for _, tt := range []struct {
		name    string
		inner   []core.CondensationProvider
		outcome core.Outcome
	}{
		{"one failed", []core.CondensationProvider{unavailable, fails(errors.New("broke"))}, core.OutcomeFailed},
		{"none can work", []core.CondensationProvider{unavailable, unavailable}, core.OutcomeSkipped},
		{"nothing saved", []core.CondensationProvider{coretest.Keeps()}, core.OutcomeNoOp},
		{"one failed, the other saved something", []core.CondensationProvider{fails(errors.New("broke")), saves(2)}, core.OutcomeInsufficient},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := coretest.Request(talk(20), 650)
			out, err := chainOf(t, nil, chainOf(t, nil, tt.inner...), coretest.Truncates()).Run(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got := out.Attempts[0]; got.Outcome != tt.outcome {
				t.Errorf("got %s (%s), want %s", got.Outcome, got.Reason, tt.outcome)
			}
			checkCondensed(t, req, out)
		})
	}
}

// TestChainIsAProvider holds a chain to the contract of providers.
func TestChainIsAProvider(t *testing.T) {
	coretest.Run(t, func(t *testing.T) core.CondensationProvider {
		return chainOf(t, nil, coretest.Keeps(), coretest.Truncates())
	})
}
