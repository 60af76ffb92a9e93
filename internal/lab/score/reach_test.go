package score_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
)

// reachCut returns a session in which the agent reads a file with a name in line 50, goes on, and needs that
// name after the cut. Before the cut is more, if given.
func reachCut(t *testing.T, more ...core.Message) (s *score.Scorer, read core.ToolResult, call core.ToolCall) {
	t.Helper()
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("some plain text of number %d here", i+1))
	}
	lines[49] = "the limit is flushIntervalMs for all of them"
	call = core.ToolCall{ID: "c1", Name: "read", Args: `{"path":"src/queue/flush.go"}`}
	read = core.ToolResult{CallID: "c1", Content: []core.Part{core.Text(strings.Join(lines, "\n"))}}
	messages := []core.Message{
		{ID: "m1", Role: core.RoleUser, Parts: []core.Part{core.Text("Please look at the queue and tell me.")}},
		{ID: "m2", Role: core.RoleAssistant, Parts: []core.Part{call}},
		{ID: "m3", Role: core.RoleTool, Parts: []core.Part{read}},
	}
	messages = append(messages, more...)
	at := len(messages)
	for i := range 8 {
		text := "Going on."
		if i == 0 {
			text = "I change flushIntervalMs now."
		}
		messages = append(messages, core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.Text(text)}}, core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text("ok")}})
	}
	for i := range messages {
		messages[i].Tokens = 10
	}
	cut, ok := score.CutAt(&score.Session{Source: "here", Messages: messages}, "cut", at)
	if !ok {
		t.Fatal("no cut")
	}
	return score.NewScorer(cut, nil), read, call
}

func verdictOf(t *testing.T, s *score.Scorer, view ...core.Part) score.Verdict {
	t.Helper()
	messages := []core.Message{{Role: core.RoleUser, Parts: view}}
	for _, n := range s.Needs(messages) {
		if n.Text == "flushIntervalMs" {
			got, _ := s.Score(messages).CFRR.Value()
			if kept := n.Verdict == score.Kept || n.Verdict == score.Stale; kept != (got > 0) {
				t.Errorf("verdict %s, and %g of the names", n.Verdict, got)
			}
			return n.Verdict
		}
	}
	t.Fatal("flushIntervalMs was not needed")
	return ""
}

// Every need has one of five verdicts, and only what one recall or one read brings back is reachable.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	edit := func(args string) []core.Message {
		return []core.Message{
			{ID: "e1", Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: "e", Name: "edit", Args: args}}},
			{ID: "e2", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "e", Content: []core.Part{core.Text("done")}}}},
		}
	}
	plain, read, call := reachCut(t)
	handle := core.Handle(read)
	first := core.Handle(call)
	written, _, _ := reachCut(t, edit(`{"path":"src/queue/flush.go","new_string":"a line that says more","old_string":"some plain text of number 3 here"}`)...)
	shell, _, _ := reachCut(t, edit(`{"command":"sed -i s/a/b/ src/queue/flush.go"}`)...)
	replaced, _, _ := reachCut(t, edit(`{"path":"src/queue/flush.go","new_string":"the limit is something else for all of them","old_string":"the limit is flushIntervalMs for all of them"}`)...)
	patched, _, _ := reachCut(t, edit(`{"input":"*** Begin Patch\n*** Update File: src/queue/flush.go\n@@\n-the limit is flushIntervalMs for all of them\n+the limit is gone now\n*** End Patch"}`)...)
	line := core.Text("the limit is flushIntervalMs for all of them")
	huge, _, _ := reachCut(t, core.Message{ID: "h", Role: core.RoleAssistant, Parts: []core.Part{core.Text(strings.Repeat("x ", 9000))}})
	for name, test := range map[string]struct {
		in   *score.Scorer
		view []core.Part
		want score.Verdict
	}{
		"the line":                           {plain, []core.Part{line}, score.Kept},
		"nothing":                            {plain, []core.Part{core.Text("nothing")}, score.Missing},
		"only the name":                      {plain, []core.Part{core.Text("names: flushIntervalMs")}, score.Altered},
		"a handle":                           {plain, []core.Part{core.Text("[… 100 lines h:" + handle + "]")}, score.Reachable},
		"a handle next to the name":          {plain, []core.Part{core.Text("flushIntervalMs h:" + handle)}, score.Reachable},
		"another handle":                     {plain, []core.Part{core.Text("h:0123456789")}, score.Missing},
		"a handle in a longer word":          {plain, []core.Part{core.Text("0" + handle)}, score.Missing},
		"the part before, and what follows":  {plain, []core.Part{core.Text("h:" + first + "+")}, score.Reachable},
		"the part before alone":              {plain, []core.Part{core.Text("h:" + first)}, score.Missing},
		"what follows far behind":            {huge, []core.Part{core.Text("h:" + core.Handle(core.Text(strings.Repeat("x ", 9000))) + "+")}, score.Missing},
		"path and lines":                     {plain, []core.Part{core.Text("see queue/flush.go:40-60")}, score.Reachable},
		"path and other lines":               {plain, []core.Part{core.Text("see queue/flush.go:60-80")}, score.Missing},
		"path without lines":                 {plain, []core.Part{core.Text("see src/queue/flush.go")}, score.Missing},
		"another path":                       {plain, []core.Part{core.Text("see other/flush.go:40-60")}, score.Missing},
		"the call that reads it":             {plain, []core.Part{call}, score.Reachable},
		"the call, but the file changed":     {written, []core.Part{call}, score.Missing},
		"the lines, but the file changed":    {written, []core.Part{core.Text("flush.go:40-60")}, score.Missing},
		"a command that may have written":    {shell, []core.Part{call}, score.Missing},
		"the handle, of a changed file":      {written, []core.Part{core.Text("h:" + handle)}, score.Reachable},
		"a line that is not so any more":     {replaced, []core.Part{line}, score.Stale},
		"the same, and what it is now":       {replaced, []core.Part{line, core.Text("the limit is something else for all of them")}, score.Kept},
		"a line that a patch removed":        {patched, []core.Part{line}, score.Stale},
		"a line of a file changed elsewhere": {written, []core.Part{line}, score.Kept},
	} {
		if got := verdictOf(t, test.in, test.view...); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// What is kept counts as reachable, and what is reachable is not more than everything.
func TestReachableIsAtLeastThePanel(t *testing.T) {
	t.Parallel()
	s, read, _ := reachCut(t)
	for _, view := range []string{"", "h:" + core.Handle(read), "the limit is flushIntervalMs for all of them"} {
		got := s.Score([]core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text(view)}}})
		panel, _ := got.Panel()
		reach, ok := got.Reach.Value()
		if !ok || reach < panel || reach > 1 {
			t.Errorf("%q: panel %g, reachable %g", view, panel, reach)
		}
	}
}
