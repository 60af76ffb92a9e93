package score_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
)

// labelledOf returns how much of what was needed the parts have, or lead to by labels.
func labelledOf(t *testing.T, s *score.Scorer, parts ...core.Part) float64 {
	t.Helper()
	v, ok := s.Score([]core.Message{{Role: core.RoleUser, Parts: parts}}).Labelled.Value()
	if !ok {
		t.Fatal("nothing was needed")
	}
	return v
}

// A handle counts if its label says what it leads to: the file, with the right lines if it has any, the command, or
// how a text begins.
func TestLabelledHandles(t *testing.T) {
	t.Parallel()
	s, read, call := reachCut(t)
	file := "h:" + core.Handle(read)
	from := "h:" + core.Handle(call) + "+"
	shell := core.ToolCall{ID: "c2", Name: "Bash", Args: `{"command":"cd /src && go test ./queue -run TestFlush"}`}
	output := core.ToolResult{CallID: "c2", Content: []core.Part{core.Text("the test wants flushIntervalMs of ten here")}}
	ran, _, _ := reachCut(t, core.Message{ID: "r1", Role: core.RoleAssistant, Parts: []core.Part{shell}}, core.Message{ID: "r2", Role: core.RoleTool, Parts: []core.Part{output}})
	ran2 := "h:" + core.Handle(output)
	said := core.Text("Queues are flushed late. The cause is flushIntervalMs, which is too long.")
	told, _, _ := reachCut(t, core.Message{ID: "t1", Role: core.RoleAssistant, Parts: []core.Part{said}})
	for name, c := range map[string]struct {
		view string
		want bool
		in   *score.Scorer
	}{
		"a header with the file":           {"¶ result read src/queue/flush.go " + file, true, s},
		"its name alone":                   {"¶ result read flush.go " + file, true, s},
		"an index with the lines":          {file + " queue/flush.go:40-60, read", true, s},
		"an index with other lines":        {file + " queue/flush.go:60-80, read", false, s},
		"a name cut short":                 {"¶ result read flush.g… " + file, false, s},
		"another file":                     {file + " queue/fill.go, read", false, s},
		"a bare handle":                    {"[… 100 lines " + file + "]", false, s},
		"a bare handle below its file":     {"see flush.go\n" + file, false, s},
		"a header and the call above":      {"¶ read\npath: src/queue/flush.go\n¶ result " + file, true, s},
		"the label of the handle above it": {"h:0123456789 flush.go\nread " + file, false, s},
		"what follows, with the file":      {from + " flush.go", true, s},
		"what follows, with another":       {from + " fill.go", false, s},
		"no handle":                        {"¶ result read src/queue/flush.go:1-100", false, s},
		"a command":                        {"¶ Bash go test ./queue -run… " + ran2, true, ran},
		"another command":                  {"¶ Bash go vet ./queue " + ran2, false, ran},
		"the folder that it is in":         {"¶ Bash cd /src " + ran2, false, ran},
		"how a text begins":                {"h:" + core.Handle(said) + " Queues are flushed late…", true, told},
		"who wrote it":                     {"¶ assistant h:" + core.Handle(said), false, told},
	} {
		got := labelledOf(t, c.in, core.Text(c.view))
		if (got > 0) != c.want {
			t.Errorf("%s: %g reached by label, want any: %v", name, got, c.want)
		}
	}
	// A result that was shortened in place is named by its call.
	if got := labelledOf(t, s, call, core.ToolResult{CallID: call.ID, Content: []core.Part{core.Text("[… 100 lines " + file + "]")}}); got == 0 {
		t.Error("a result below the call that it answers is not reached by label")
	}
}

// What is visible counts, and reach by label is never more than reach.
func TestLabelledIsBetweenThePanelAndReach(t *testing.T) {
	t.Parallel()
	s, read, call := reachCut(t)
	for _, parts := range [][]core.Part{
		{core.Text("the limit is flushIntervalMs for all of them")},
		{core.Text("nothing")},
		{call},
		{core.Text("h:" + core.Handle(read) + " flush.go")},
		{core.Text("h:" + core.Handle(read))},
	} {
		got := s.Score([]core.Message{{Role: core.RoleUser, Parts: parts}})
		panel, _ := got.Panel()
		labelled, ok := got.Labelled.Value()
		if reach, _ := got.Reach.Value(); !ok || labelled < panel || labelled > reach {
			t.Errorf("%v: panel %g, by label %g, reachable %g", parts, panel, labelled, reach)
		}
	}
}

// The sentences of the agent that state a cause, a choice or a finding are looked for as they were.
func TestDecisions(t *testing.T) {
	t.Parallel()
	before := []core.Message{
		user("I decided to rewrite the whole of the parser."),
		agent(core.Text("Let me look at the tests first, because they fail.\nThe reasons are these, because of which it fails:\n- It turns out that the lexer drops the last byte of a file. Shall we stop here because of that?\n```go\n// the cause is a missing flush of the writer\n```")),
		agent(core.Text("We ruled out the cache as a source of this.\nDer Fehler liegt daran, dass der Puffer zu klein ist.\n我们决定改用互斥锁来保护缓冲区。")),
	}
	for range 12 {
		before = append(before, user("go on"))
	}
	before[8] = agent(core.Text("I have found that the newest message says nothing new here."))
	s := cutAt(t, before, nil, nil)
	kept := func(view ...core.Message) (float64, float64) {
		got := s.Continuation(view).Decisions
		return got.Kept, got.Needed
	}
	if k, n := kept(before...); k != 4 || n != 4 {
		t.Errorf("of everything %g of %g are kept, want 4 of 4", k, n)
	}
	if k, _ := kept(user("quoted: It turns out that the\n  lexer drops the last byte of a file. And more.")); k != 1 {
		t.Errorf("a sentence that is broken into lines: %g kept, want 1", k)
	}
	if k, _ := kept(user("It turns out that the lexer drops bytes. We ruled out the cache.")); k != 0 {
		t.Errorf("other words for it: %g kept, want 0", k)
	}
	silent := cutAt(t, []core.Message{user("hello"), agent(core.Text(strings.Repeat("Reading on. ", 30)))}, nil, nil)
	if _, ok := silent.Continuation(nil).Decisions.Value(); ok {
		t.Error("without such sentences the measure is not defined")
	}
}
