package plugincmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/judge"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// A heardPlugin is a plugin whose last answer is known.
type heardPlugin struct {
	judge.Plugin

	answer *core.Result
}

// Condense implements [core.CondensationProvider].
func (h *heardPlugin) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	res, err := h.Plugin.Condense(ctx, req)
	h.answer = res
	return res, err
}

// What printEdits shows at most: edits of an answer, and lines of an edit.
const (
	maxEdits     = 40
	maxEditLines = 4
)

// printEdits prints what an answer does to the messages of a request, and the lines that texts lose and get.
func printEdits(w io.Writer, req *core.Request, res *core.Result) {
	tokens := func(m *core.Message) string { return size.Group(core.MessageTokens(req.Counter, *m)) }
	left := maxEdits
	edit := func(format string, args ...any) bool {
		if left--; left >= 0 {
			term.Printf(w, "    "+format+"\n", args...)
		}
		return left >= 0
	}
	kept := map[string]bool{}
	for i := range res.Messages {
		kept[res.Messages[i].ID] = true
	}
	before := 0 // messages of the request that were passed
	pass := func(id string) *core.Message {
		for ; before < len(req.Messages); before++ {
			m := &req.Messages[before]
			if m.ID == id {
				before++
				return m
			}
			if !kept[m.ID] && edit("hidden     %s %s, %s tokens", m.ID, m.Role, tokens(m)) {
				printLines(w, '-', strings.Split(textOf(m.Parts), "\n")[:1])
			}
		}
		return nil
	}
	for i := range res.Messages {
		m := &res.Messages[i]
		if m.ID == "" {
			if edit("new        %s, %s tokens", m.Role, tokens(m)) {
				printLines(w, '+', strings.Split(textOf(m.Parts), "\n"))
			}
			continue
		}
		was := pass(m.ID)
		if was != nil && !core.EqualParts(was.Parts, m.Parts) && edit("rewritten  %s %s, %s -> %s tokens", m.ID, m.Role, tokens(was), tokens(m)) {
			gone, added := changedLines(textOf(was.Parts), textOf(m.Parts))
			printLines(w, '-', gone)
			printLines(w, '+', added)
		}
	}
	pass("")
	if left < 0 {
		term.Printf(w, "    and %s\n", size.Plural(-left, "more edit"))
	}
}

// printLines prints the first lines of a text, and how many follow.
func printLines(w io.Writer, sign rune, lines []string) {
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
	for i, line := range lines {
		if i == maxEditLines {
			term.Printf(w, "      %c … %s more\n", sign, size.Plural(len(lines)-i, "line"))
			return
		}
		term.Printf(w, "      %c %s\n", sign, plain.First(line, 100))
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
