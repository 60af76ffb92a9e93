//go:build unix

package pluginexamples_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/model"
)

// TestTricks runs all instructions of the plugin tricks, in every language, with the SDK of today and the one of version 1. One
// process must survive all of them.
func TestTricks(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			testTricks(t, l, l.tricks)
		})
		t.Run(l.name+" of version 1", func(t *testing.T) {
			t.Parallel()
			testTricks(t, l, l.v1)
		})
	}
}

func testTricks(t *testing.T, l *language, f folder) {
	t.Helper()
	p := open(t, f, "")
	for _, test := range []struct {
		name string
		run  func(t *testing.T, l *language, p *plugin)
	}{
		{"description", testDescription},
		{"errors", testErrors},
		{"request", testRequest},
		{"sizes", testSizes},
		{"many", testMany},
		{"hide the rest", testHideRest},
		{"cancel", testCancel},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, l, p) })
	}
	if s := p.Status(); s.Starts != 1 || s.Crashes != 0 {
		t.Errorf("the process was replaced: %+v", s)
	}
}

// TestAdditions tries what was added to version 1: the model and its price, the host, estimates, and settings under former names.
func TestAdditions(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := open(t, l.tricks, `{"word": "hi"}`, func(_ *supervise.Spec, o *supervise.Options) { o.Client.Host = "condense v1.2.3" })
			req := request("about")
			req.Model, req.Price = "anthropic/claude", core.Price{Input: 3.5, CacheRead: 0.25}
			if got, want := ask(t, p, req), "anthropic/claude 3.5 0.25 condense v1.2.3 hi"; len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %s", got, want)
			}
			testState(t, p)
			usage, err := p.EstimateCost(t.Context(), req)
			if want := (core.Usage{Calls: 1, InputTokens: req.Tokens() - req.Budget.Overhead, USD: 3.5}); err != nil || usage != want {
				t.Errorf("estimated %+v, %v; want %+v", usage, err, want)
			}
			both := open(t, l.tricks, `{"word": "hi", "greeting": "hello"}`)
			if _, err := both.Describe(t.Context()); err == nil || !strings.Contains(err.Error(), "word: is the former name of greeting, which is set as well") {
				t.Errorf("both names: %v", err)
			}
			// One of version 1 is not asked what it would cost: it would do the work.
			old := open(t, l.v1, "")
			if _, err := old.Describe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := old.EstimateCost(t.Context(), req); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("version 1: got %v", err)
			}
		})
	}
}

// testState checks that a state comes and is left, and that a call may wait.
func testState(t *testing.T, p *plugin) {
	t.Helper()
	again := request("remember")
	again.Conversation, again.State = "c1", []byte("was")
	if got := ask(t, p, again); len(got) != 1 || got[0] != "c1: was" {
		t.Errorf("got the state %q", got)
	}
	if res, err := p.Condense(t.Context(), again); err != nil || string(res.State) != "was\xff" {
		t.Errorf("left %q, %v", res.State, err)
	}
	waits := request("later")
	waits.MayWait = true
	if res, err := p.Condense(t.Context(), waits); err != nil || res.Later != "not now, true" || len(res.Messages) != len(waits.Messages) {
		t.Errorf("got %+v, %v", res, err)
	}
}

func request(instructions string, messages ...core.Message) *core.Request {
	if messages == nil {
		messages = []core.Message{coretest.User(core.Text("a question")), coretest.Assistant(core.Text("an answer"))}
	}
	req := coretest.HalfRequest(coretest.Conversation(messages...))
	req.Instructions = instructions
	return req
}

// ask returns the texts of the answer, one for each message.
func ask(t *testing.T, p core.CondensationProvider, req *core.Request) []string {
	t.Helper()
	res, err := p.Condense(t.Context(), req)
	if err != nil {
		t.Fatalf("%s: %v", req.Instructions, err)
	}
	var texts []string
	for _, m := range res.Messages {
		for _, part := range m.Parts {
			text, _ := part.(core.Text)
			texts = append(texts, string(text))
		}
	}
	return texts
}

func testDescription(t *testing.T, l *language, p *plugin) {
	t.Helper()
	d, err := p.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "tricks" || d.Version != "1.2.3" || d.Doc != "Does what it is told." || !strings.HasPrefix(d.SDK, "condense-"+l.name) {
		t.Errorf("got %+v", d)
	}
	var got []string
	for _, s := range d.Settings {
		got = append(got, strings.Join([]string{s.Name, s.Type, string(s.Default), s.Doc, strings.Join(s.Enum, "|")}, " "))
	}
	want := `greeting string "hello" What to say. ; share number 0.5 Between 0 and 1. ; style string "plain" How. plain|fancy`
	if got := strings.Join(got, "; "); got != want {
		t.Errorf("settings: got %s\nwant %s", got, want)
	}
}

// testErrors checks how the errors of a strategy arrive.
// Those of a bug have the author's file and line.
func testErrors(t *testing.T, l *language, p *plugin) {
	t.Helper()
	source := filepath.Join("testdata", l.tricks.program)
	line := 0
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range strings.Split(string(text), "\n") {
		if strings.Contains(s, "Error('boom')") || strings.Contains(s, `Error("boom")`) {
			line = i + 1
		}
	}
	for _, tt := range []struct {
		trick, text string
		is          error
	}{
		{"fail", "boom at " + filepath.Base(source) + ":" + strconv.Itoa(line), nil},
		{"invalid", "cannot be answered", core.ErrInvalidRequest},
		{"unavailable", "not today", core.ErrUnavailable},
		{"unsupported", "not my kind of work", errors.ErrUnsupported},
		{"count_wrong", `there is no message "nobody"`, nil},
	} {
		_, err := p.Condense(t.Context(), request(tt.trick))
		if err == nil || !strings.Contains(err.Error(), tt.text) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: got %v, want an error that is %v and says %q", tt.trick, err, tt.is, tt.text)
		}
		if remote := new(caller.RemoteError); !errors.As(err, &remote) || tt.is == nil && remote.Code != codes.Unknown {
			t.Errorf("%s: got %#v", tt.trick, err)
		}
		if want := tt.is == nil; plugins.Broken(err) != want {
			t.Errorf("%s: broken %t, want %t: an exception that nobody catches is a fault", tt.trick, !want, want)
		}
	}
	if log := p.log.String(); !strings.Contains(log, "tricks") || !strings.Contains(log, "the strategy failed") {
		t.Error("the log does not say where it failed")
	}
}

// TestCrash ends the process during a call: the error describes it, and the next call has a new process.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := open(t, l.tricks, "", func(_ *supervise.Spec, o *supervise.Options) {
				o.Restart.Min = time.Millisecond
			})
			tricks := map[string]string{"exit": "exit status 3"}
			if l.name == "node" {
				tricks["crash"] = "Error: nobody catches this at tricks.mjs:"
				tricks["reject"] = "Error: nobody waits for this at tricks.mjs:"
				tricks["reject_text"] = `a promise that nobody waits for was rejected: "of text"`
			}
			for trick, want := range tricks {
				_, err := p.Condense(t.Context(), request(trick))
				if crash := new(supervise.CrashError); !errors.As(err, &crash) || !strings.Contains(err.Error(), want) || !plugins.Broken(err) {
					t.Errorf("%s: got %v, want a crash with %q", trick, err, want)
				}
				if got := ask(t, p, request("nothing")); len(got) != 2 {
					t.Errorf("after %s: got %q", trick, got)
				}
			}
			if s := p.Status(); s.Starts != 1+len(tricks) || s.Crashes != len(tricks) {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// testCancel cancels running calls: the strategy stops within a second, and the process goes on.
func testCancel(t *testing.T, _ *language, p *plugin) {
	t.Helper()
	var callers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 { // of the four allowed
		callers.Go(func() {
			if _, err := p.Condense(ctx, request("wait")); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that it was cancelled", err)
			}
		})
	}
	wait := func(want string) {
		t.Helper()
		for end := time.Now().Add(testkit.Patience(t)); ; time.Sleep(5 * time.Millisecond) {
			got := ask(t, p, request("waiting"))[0]
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	}
	wait("3 calls")
	cancel()
	callers.Wait()
	wait("0 calls")
}

// testSizes sends texts in both directions that exceed the size of a message on the stream, of
// bytes that are not UTF-8.
func testSizes(t *testing.T, _ *language, p *plugin) {
	t.Helper()
	for _, size := range []int{1, 3<<20 - 100, 3 << 20, 10<<20 + 1} {
		text := string(bytes.Repeat([]byte{0xff, 0, '\n', 'x'}, size/4+1)[:size])
		got := ask(t, p, request("echo", coretest.User(core.Text(text)), coretest.User(core.Text("more"))))
		if len(got) != 1 || got[0] != text {
			t.Errorf("%d bytes: they did not come back", size)
		}
	}
}

// testMany rewrites and counts more messages and parts than one message on the stream may have,
// with IDs that are not UTF-8.
func testMany(t *testing.T, _ *language, p *plugin) {
	t.Helper()
	messages := make([]core.Message, 100)
	parts := make([]core.Part, 2000) // more than 131,072 together
	for i := range parts {
		parts[i] = core.Text(strconv.Itoa(i))
	}
	for i := range messages {
		messages[i] = coretest.User(parts...)
		messages[i].ID = strings.Repeat("\xff", i+1)
	}
	want := slices.Clone(parts)
	slices.Reverse(want)
	res, err := p.Condense(t.Context(), request("keep_parts", messages...))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range res.Messages {
		if m.ID != messages[i].ID || !core.EqualParts(m.Parts, want) {
			t.Fatalf("message %d: got %q with %d parts", i, m.ID, len(m.Parts))
		}
	}
	if got := ask(t, p, request("count_many"))[0]; got != "50000" {
		t.Errorf("%s of 50,000 items were counted", got)
	}
}

// testRequest checks what a plugin receives.
func testRequest(t *testing.T, _ *language, p *plugin) {
	t.Helper()
	req := request("start")
	req.Trigger, req.Profile, req.Mode = core.TriggerOverflow, "sonnet", "code"
	req.System, req.Environment, req.FilesRead = "system é", "environment", []string{"b.go", "a.go"}
	req.Budget.Target, req.NoRecall = 42, true
	req.API = "anthropic"
	if got, want := ask(t, p, req)[0], "overflow sonnet code system é environment b.go a.go 42 1 anthropic"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHost checks the callbacks to the host.
func TestHost(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			var said []caller.Progress
			p := open(t, l.tricks, ` {"greeting": "good morning", "share": 1, "style": "fancy"} `, func(_ *supervise.Spec, o *supervise.Options) {
				o.Client.Progress = func(_ context.Context, p caller.Progress) { said = append(said, p) }
			})
			req := request("count")
			want := "14 3 2" // by coretest's counter, four bytes a token, and four a message for framing
			if got := ask(t, p, req)[0]; got != want {
				t.Errorf("count: got %q, want %q", got, want)
			}
			if got := ask(t, p, request("generate"))[0]; got != "CODE_UNSUPPORTED" {
				t.Errorf("generate: got %q", got)
			}
			lent := lentTo(t, l)
			if got, want := ask(t, lent, request("generate"))[0], "Be brief. 2 messages after 9"; got != want {
				t.Errorf("generate: got %q, want %q", got, want)
			}
			if got := ask(t, lent, request("generate"))[0]; got != "CODE_UNAVAILABLE" {
				t.Errorf("generate without a key: got %q", got)
			}
			if _, err := lent.Condense(t.Context(), request("ask")); !errors.As(err, new(*caller.RemoteError)) || plugins.Broken(err) {
				t.Errorf("a failed model that the plugin does not catch: got %v, want that it declines", err)
			}
			res, err := p.Condense(t.Context(), request("tell"))
			if err != nil {
				t.Fatal(err)
			}
			if want := (core.Usage{Calls: 1, InputTokens: 10, OutputTokens: 2, USD: 0.5}); res.Usage != want {
				t.Errorf("usage: got %+v, want %+v", res.Usage, want)
			}
			steps := []core.Step{
				{Name: "first", Looked: 3, Changed: 2, Saved: map[string]int{"user": 7}, TokensBefore: 9, TokensAfter: 2, Duration: 1500 * time.Microsecond, Note: "as said"},
				{Name: "second"},
			}
			if diff := cmp.Diff(steps, res.Steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if len(said) != 1 || said[0] != (caller.Progress{Fraction: 0.5, Text: "half"}) {
				t.Errorf("progress: got %+v", said)
			}
			for _, want := range []string{`level=WARN msg=attention plugin=acme n=7 greeting="good morning"`, `level=DEBUG msg="in detail"`, "to standard output"} {
				// Standard output goes to the log separately.
				for end := time.Now().Add(testkit.Patience(t)); !strings.Contains(p.log.String(), want); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Errorf("the log lacks %s", want)
						break
					}
				}
			}
		})
	}
}

// lentTo returns the plugin under a host with a model that answers once.
func lentTo(t *testing.T, l *language) *plugin {
	t.Helper()
	return open(t, l.tricks, `{}`, func(_ *supervise.Spec, o *supervise.Options) {
		m := &once{}
		o.Client.Model = func(*core.Request, string) (model.Generator, error) { return m, nil }
	})
}

// A once is a model that loses its key after the first answer.
type once struct{ asked atomic.Int64 }

func (m *once) Generate(_ context.Context, p *model.Prompt) (*model.Answer, error) {
	if m.asked.Add(1) > 1 {
		return nil, core.ErrUnavailable
	}
	return &model.Answer{Text: fmt.Sprintf("%s %d messages", p.System, len(p.Messages)), Usage: core.Usage{Calls: 1, InputTokens: 9}}, nil
}

func (m *once) Info() model.Info { return model.Info{} }

// testHideRest checks the tool groups of the SDKs against the rules, on random histories. The SDK of version 1 does not know the
// newest request, which is a later rule: the host refuses an answer that hides it.
func testHideRest(t *testing.T, _ *language, p *plugin) {
	t.Helper()
	former := strings.HasSuffix(path.Dir(t.Name()), "_of_version_1")
	hidden := 0
	for seed := range uint64(200) {
		messages := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
		if len(messages) == 0 {
			continue
		}
		req := coretest.HalfRequest(messages)
		req.Instructions = "hide_rest"
		res, err := p.Condense(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := core.Verify(req, res); err != nil {
			for fault := range strings.SplitSeq(err.Error(), "\n") {
				if !former || !strings.HasPrefix(fault, "keep-request: ") {
					t.Errorf("seed %d: %s", seed, fault)
				}
			}
		}
		if gone := len(messages) - len(res.Messages); !former && covered(messages, res.Steps[0].Note) != gone {
			t.Errorf("seed %d: %d messages are hidden, and the ranges are %s", seed, gone, res.Steps[0].Note)
		}
		hidden += len(messages) - len(res.Messages)
	}
	if hidden < 1000 {
		t.Errorf("only %d messages were hidden", hidden)
	}
}

// covered returns how many messages are in ranges of IDs.
func covered(messages []core.Message, ranges string) (n int) {
	at := func(id string) int {
		return slices.IndexFunc(messages, func(m core.Message) bool { return m.ID == id })
	}
	for r := range strings.SplitSeq(ranges, ",") {
		if first, last, ok := strings.Cut(r, " "); ok {
			n += at(last) - at(first) + 1
		}
	}
	return n
}
