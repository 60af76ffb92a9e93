package plugincmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/lab/judge"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// A heardPlugin is a plugin whose last answer is known.
type heardPlugin struct {
	judge.Plugin

	ingest bool // it is asked to shorten new results
	answer *core.Result
}

// Condense implements [core.CondensationProvider].
func (h *heardPlugin) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	asked := core.CondensationProvider(h.Plugin)
	if h.ingest {
		asked = coretest.Ingest(h.Plugin)
	}
	res, err := asked.Condense(ctx, req)
	h.answer = res
	return res, err
}

// The most lines that printEdits shows, in all and of an edit.
const (
	maxDiff      = 150
	maxEditLines = 4
)

// printEdits prints the changes of an answer to the messages of a request, and the lines that texts lose and get.
func printEdits(w io.Writer, req *core.Request, res *core.Result) {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	lines := func(sign rune, all []string) {
		all = slices.DeleteFunc(all, func(line string) bool { return strings.TrimSpace(line) == "" })
		for i, line := range all[:min(len(all), maxEditLines+1)] {
			if i == maxEditLines {
				line = fmt.Sprintf("… %s more", size.Plural(len(all)-i, "line"))
			}
			say("  %c %s", sign, plain.First(line, 100))
		}
	}
	tokens := func(m *core.Message) string { return size.Group(core.MessageTokens(req.Counter, *m)) }
	after, kept := "the beginning", map[string]*core.Message{}
	for i := range res.Messages {
		m := &res.Messages[i]
		if kept[m.ID] = m; m.ID != "" {
			after = m.ID
			continue
		}
		say("new        after %s: %s, %s tokens", after, m.Role, tokens(m))
		lines('+', strings.Split(textOf(m.Parts), "\n"))
	}
	for i := range req.Messages {
		was := &req.Messages[i]
		switch m := kept[was.ID]; {
		case m == nil:
			say("hidden     %s %s, %s tokens", was.ID, was.Role, tokens(was))
			lines('-', strings.Split(textOf(was.Parts), "\n")[:1])
		case !core.EqualParts(was.Parts, m.Parts):
			say("rewritten  %s %s, %s -> %s tokens", m.ID, m.Role, tokens(was), tokens(m))
			gone, added := changedLines(textOf(was.Parts), textOf(m.Parts))
			lines('-', gone)
			lines('+', added)
		}
	}
	if more := len(out) - maxDiff; more > 0 {
		out = append(out[:maxDiff], fmt.Sprintf("… %s more", size.Plural(more, "line")))
	}
	for _, line := range out {
		term.Printf(w, "    %s\n", line)
	}
}

// textOf returns what parts say.
func textOf(parts []core.Part) string {
	var all []string
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			all = append(all, string(p))
		case core.ToolCall:
			all = append(all, p.Name+" "+p.Args)
		case core.ToolResult:
			all = append(all, textOf(p.Content))
		case core.Reasoning:
			all = append(all, p.Text)
		default:
			all = append(all, fmt.Sprintf("[%T]", p))
		}
	}
	return strings.Join(all, "\n")
}
