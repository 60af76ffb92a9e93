package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/model"
)

// TestRooScenario is Roo-Code's condensing as its documentation tells it, step by step.
func TestRooScenario(t *testing.T) {
	t.Parallel()
	gen := &fake{answer: say("1. Goal\nA server that answers.")}
	l := newLife(t, 20_000, open(t, `{}`, gen))
	l.req.Environment = "<environment_details>\nopen tabs: serve.go\n</environment_details>"
	l.req.Dir, l.req.FilesRead = t.TempDir(), []string{"serve.go"}
	source := "package serve\n\n// Serve answers.\nfunc Serve(port int) error {\n\treturn listen(port)\n}\n"
	if err := os.WriteFile(filepath.Join(l.req.Dir, "serve.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	l.say(coretest.User(core.Text(`<task>Build a server.</task> <command name="review">Run the linter before every commit.</command>`)))
	for range 4 {
		l.turn("Add a handler.", 3000)
	}
	before := l.view()

	// Automatic: due above 90 % of the window less what is reserved for the answer, which is
	// 172,000 of 200,000 tokens if the answer may have 8,000; or at the threshold.
	large := rooRule(200_000)
	large.MaxOutput = 8000
	for used, want := range map[int]bool{172_000: false, 172_001: true} {
		if d := large.Decide(policy.Size{Messages: used}, policy.State{}, core.TriggerAutomatic); d.Act != want {
			t.Errorf("at %d tokens: %s", used, d)
		}
	}
	rule := rooRule(20_000)
	if d := rule.Decide(policy.Size{Messages: l.tokens() + 10_000}, policy.State{}, core.TriggerAutomatic); !d.Act {
		t.Errorf("not due: %s", d)
	}
	l.condense(core.TriggerAutomatic)

	// The whole view is one message of the user; the rest is hidden, not deleted.
	if got, want := shape(l.view()), "summary:user"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if got, want := len(l.journal.Timeline()), len(before)+1; got != want {
		t.Errorf("%d messages in the journal, want %d", got, want)
	}
	parts := l.view()[0].Parts
	wantAll(t, "the first part", string(parts[0].(core.Text)), "## Conversation Summary\n1. Goal\nA server that answers.")
	wantAll(t, "the second part", string(parts[1].(core.Text)), "## Active Workflows", `<command name="review">Run the linter before every commit.</command>`)
	wantAll(t, "the signatures of what was read", allText(l.view()), "<system-reminder>\n## File Context: serve.go\n", "4--6 | func Serve(port int) error")
	wantNone(t, "the signatures of what was read", allText(l.view()), "listen(port)")
	wantAll(t, "the last part", string(parts[len(parts)-1].(core.Text)), "open tabs: serve.go")

	// The model was shown tools as text, told that this is no request of the user, and had
	// no tools.
	ask := gen.asks[0]
	wantAll(t, "the system prompt", ask.System, "system operation", "no tools")
	wantAll(t, "what the model read", allText(ask.Messages), "[Tool Use: read_file]\npath: src/call1.go", "[Tool Result]\nfunc x() {}")
	if ask.Tools != "" || ask.Cached {
		t.Errorf("got tools %q, cached %v, want none", ask.Tools, ask.Cached)
	}

	// At once again: refused, and nothing is asked.
	asked := len(gen.asks)
	if got := outcome(l.condense(core.TriggerManual)); got != core.OutcomeNoOp || len(gen.asks) != asked {
		t.Errorf("got %s after %d more calls, want a no-op without any", got, len(gen.asks)-asked)
	}

	// Later, by hand: the summary is folded into the next, directives survive, and the
	// environment is left out, because the next message brings a fresh one.
	l.turn("Add a test.", 6000)
	l.condense(core.TriggerManual)
	if got, want := shape(l.view()), "summary:user"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	wantAll(t, "the second request", allText(gen.asks[len(gen.asks)-1].Messages), "## Conversation Summary\n1. Goal")
	wantNone(t, "the second request", allText(gen.asks[len(gen.asks)-1].Messages), "## Active Workflows", "## File Context", "open tabs")
	wantAll(t, "the second summary", allText(l.view()), "Run the linter before every commit.", "Build a server.", "Add a test.")
	wantNone(t, "the second summary", allText(l.view()), "open tabs")
	if n := strings.Count(allText(l.view()), "Run the linter"); n != 1 {
		t.Errorf("the directive stands %d times, want once", n)
	}

	// Rewound to before the condensations, everything is back, byte for byte.
	if err := l.journal.Rewind(before[len(before)-1].ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, l.view()); diff != "" {
		t.Errorf("after the rewind (-before +after):\n%s", diff)
	}

	// In the middle of a turn, with a call without a result: it is kept, so that its
	// result finds it, and the model does not read of it.
	l.say(coretest.Assistant(core.ToolCall{ID: "open", Name: "run_tests", Args: `{}`}))
	l.condense(core.TriggerAutomatic)
	if got, want := shape(l.view()), "summary:user assistant"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	wantNone(t, "the third request", allText(gen.asks[len(gen.asks)-1].Messages), "run_tests")
	l.say(coretest.User(coretest.Result("open", "all pass")))
	if err := l.journal.Rewind(before[len(before)-1].ID); err != nil {
		t.Fatal(err)
	}

	// The model fails: truncation does it.
	gen.answer = func(context.Context, *model.Prompt) (*model.Answer, error) { return nil, errors.New("529 overloaded") }
	done := l.condense(core.TriggerOverflow)
	if outcome(done) != core.OutcomeFailed || done.Provider != "truncation" {
		t.Errorf("got %s by %s, want a failure and truncation", outcome(done), done.Provider)
	}
	if l.tokens() > l.req.Budget.Limit {
		t.Errorf("%d tokens are left, limit %d", l.tokens(), l.req.Budget.Limit)
	}
}

// TestRippleScenario is Ripple's compaction as its documentation tells it, step by step.
func TestRippleScenario(t *testing.T) {
	t.Parallel()
	const window = 32_768
	gen := &fake{answer: say("- Goals: a parser. - State: half done.")}
	l := newLife(t, window, open(t, `{"preset":"rolling"}`, gen))
	l.req.Originals = "history/part-1.jsonl"
	rule := policy.Default(window)
	rule.Threshold, rule.MaxOutput = 85, 1000
	due := func() bool {
		return rule.Decide(policy.Size{Messages: l.tokens()}, policy.State{}, core.TriggerAutomatic).Act
	}

	// Below 85 % of the window nothing happens.
	for i := 0; !due(); i++ {
		if i > 40 {
			t.Fatal("the conversation never becomes too large")
		}
		l.turn("Go on with the parser.", 1500)
	}
	if got := l.tokens() * 100 / window; got < 80 || got > 95 {
		t.Errorf("due at %d %% of the window, want about 85", got)
	}
	before := l.view()
	if got := outcome(l.condense(core.TriggerAutomatic)); got != core.OutcomeApplied {
		t.Fatalf("got %s", got)
	}

	// Summary, acknowledgement, tail; the roles alternate.
	check := func() []core.Message {
		t.Helper()
		view := l.view()
		if got := shape(view[:2]); got != "summary:user marker:assistant" {
			t.Fatalf("the view begins with %s: %s", got, shape(view))
		}
		tail := view[2:]
		size := 0
		for i, m := range tail {
			size += m.Tokens
			if m.Role == view[i+1].Role {
				t.Errorf("two messages of %s in a row", m.Role)
			}
		}
		switch {
		case len(tail) == 0 || len(tail) > 6:
			t.Errorf("the tail has %d messages, want 1 to 6", len(tail))
		case size > window/4:
			t.Errorf("the tail has %d tokens, a quarter of the window is %d", size, window/4)
		case tail[0].Role != core.RoleUser || text(tail[0]) != "Go on with the parser.\n":
			t.Errorf("the tail begins with %s: %s", tail[0].Role, text(tail[0]))
		}
		wantAll(t, "the summary", text(view[0]), "Summary of the conversation so far", "a parser", "history/part-1.jsonl")
		return tail
	}
	tail := check()
	wantNone(t, "the first summary", text(l.view()[0]), "lower numbers")
	if diff := cmp.Diff(before[len(before)-len(tail):], tail); diff != "" {
		t.Errorf("the tail is not word for word (-before +after):\n%s", diff)
	}
	wantNone(t, "the request", allText(gen.asks[0].Messages[len(gen.asks[0].Messages)-1:]), "Done with: Go on")

	// Rolling: each summary takes up the one before, and the shape stays.
	for range 3 {
		for !due() {
			l.turn("Go on with the parser.", 1500)
		}
		l.condense(core.TriggerAutomatic)
		check()
		wantAll(t, "a later summary", text(l.view()[0]), "the files beside it with lower numbers")
		ask := gen.asks[len(gen.asks)-1]
		wantAll(t, "what the model read", allText(ask.Messages), "Goals: a parser")
		wantNone(t, "what the model read", allText(ask.Messages), "Understood. I continue")
	}

	// A summary that is not smaller than what it replaces changes nothing.
	l.turn("Go on with the parser.", 1500)
	gen.answer = say(strings.Repeat("blah ", 40_000))
	gen.asks = nil
	done := l.condense(core.TriggerManual)
	if got := outcome(done); got != core.OutcomeFailed {
		t.Errorf("got %s, want a failure", got)
	}
	wantAll(t, "the reason", done.Attempts[0].Reason, "saves nothing")

	// By hand at any time, however small.
	gen.answer = say("- Goals: a parser. - State: nearly done.")
	for l.tokens() < 8000 {
		l.turn("Go on with the parser.", 1500)
	}
	if got := l.tokens(); got > l.req.Budget.Target {
		t.Fatalf("%d tokens, too large for this step", got)
	}
	if got := outcome(l.condense(core.TriggerManual)); got != core.OutcomeApplied {
		t.Errorf("got %s by hand", got)
	}
	check()
}

// TestRippleSingleTurn holds that a single request with a long chain of calls can be
// condensed, which Ripple documents as a limit of its own.
func TestRippleSingleTurn(t *testing.T) {
	t.Parallel()
	l := newLife(t, 32_768, open(t, `{"preset":"rolling"}`, new(fake)))
	l.say(coretest.User(core.Text("Port the whole program.")))
	for i := range 40 {
		id := "c" + string(rune('a'+i))
		l.say(
			coretest.Assistant(core.ToolCall{ID: id, Name: "read_file", Args: `{"path":"a.go"}`}),
			coretest.Tool(coretest.Result(id, strings.Repeat("x := 1\n", 400))),
		)
	}
	if got := outcome(l.condense(core.TriggerAutomatic)); got != core.OutcomeApplied {
		t.Fatalf("got %s", got)
	}
	view := l.view()
	if got := shape(view); got != "summary:user assistant tool assistant tool assistant tool" {
		t.Errorf("got %s", got)
	}
	wantAll(t, "the summary", text(view[0]), "Port the whole program.")
}

// TestNesting holds that condensations of condensations, of every preset, lose no rule and
// that all can be undone.
func TestNesting(t *testing.T) {
	forEachPreset(t, func(t *testing.T, name string) {
		t.Parallel()
		l := newLife(t, 20_000, open(t, `{"preset":"`+name+`"}`, new(fake)))
		l.say(coretest.User(core.Text("Build it. Never touch the folder vendor.")), coretest.Assistant(core.Text("Understood.")))
		for range 6 {
			for l.tokens() < 16_000 {
				l.turn("Another one.", 1200)
			}
			if done := l.condense(core.TriggerAutomatic); outcome(done) != core.OutcomeApplied {
				t.Fatalf("got %s: %s", outcome(done), done.Attempts[0].Reason)
			}
			wantAll(t, "the view", allText(l.view()), "Never touch the folder vendor.")
		}
		for _, c := range l.journal.Condensations() {
			if err := l.journal.Undo(c.ID); err != nil {
				t.Fatal(err)
			}
		}
		if got := shape(l.view()); strings.Contains(got, "summary") || len(l.view()) != l.said {
			t.Errorf("after undoing all, %d of %d messages: %s", len(l.view()), l.said, got)
		}
		if _, err := json.Marshal(l.view()); err != nil {
			t.Error(err)
		}
	})
}

// rooRule returns the rule of the preset roo, with a threshold of 100 %.
func rooRule(window int) policy.Rule {
	return policy.Rule{
		Window: window, Buffer: 10, Auto: true, Threshold: 100,
		Exceptions: policy.Exceptions{UnknownReserve: 8192, StopAtLimit: true, IgnoreFixed: true, Eager: true, Unchecked: true},
	}
}
