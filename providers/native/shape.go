package native

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/roo"
	"github.com/condensehq/condense/internal/toolcall"
)

// A shaper turns messages into the form for a model.
type shaper struct {
	images bool // the model can read them
	native bool // calls and results stay calls and results
}

// shape returns messages that every model can read: only users and assistants speak, in
// turn, the user first; no reasoning, no block that only one vendor knows.
func (s *shaper) shape(messages []core.Message) []core.Message {
	var tools map[partAt]toolUse
	if s.native {
		tools = pairTools(messages)
	}
	var out []core.Message
	add := func(role core.Role, parts ...core.Part) {
		if len(parts) == 0 {
			return
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Parts = append(out[last].Parts, parts...)
			return
		}
		out = append(out, core.Message{Role: role, Parts: parts})
	}
	for i := range messages {
		m := &messages[i]
		role := core.RoleUser
		if m.Role == core.RoleAssistant {
			role = core.RoleAssistant
		}
		if m.Kind == core.KindMarker && m.Role == core.RoleAssistant {
			continue // an acknowledgement of ours
		}
		var parts, answers []core.Part
		if m.Role == core.RoleSystem {
			parts = append(parts, core.Text("[System message]"))
		}
		again := summarizes(m)
		for j, p := range m.Parts {
			switch use := tools[partAt{i, j}]; {
			case use.moved, again && renewed(p):
			case use.answer != nil:
				parts = append(parts, p)
				answers = append(answers, s.result(*use.answer))
			default:
				parts = s.part(parts, p)
			}
		}
		if m.Role == core.RoleSystem && len(parts) == 1 {
			continue
		}
		add(role, parts...)
		add(core.RoleUser, answers...)
	}
	return withUserFirst(out)
}

// beginning precedes an assistant who speaks first.
const beginning = core.Text("[The conversation begins before this point.]")

func withUserFirst(messages []core.Message) []core.Message {
	if len(messages) > 0 && messages[0].Role != core.RoleUser {
		messages = slices.Insert(messages, 0, core.Message{Role: core.RoleUser, Parts: []core.Part{beginning}})
	}
	return messages
}

// summarizes reports whether m is a summary, or holds one in a format that does not record it.
func summarizes(m *core.Message) bool {
	return m.Kind == core.KindSummary || m.Role == core.RoleUser && slices.ContainsFunc(m.Parts, func(p core.Part) bool {
		t, ok := p.(core.Text)
		return ok && dialog.Inserted(string(t))
	})
}

// renewed reports whether p was added to an earlier summary and is written again for the next
// one, so that no model needs to read it.
func renewed(p core.Part) bool {
	text, ok := p.(core.Text)
	begins := []string{reminderOpen + outline.FileHead, reminderOpen + workflowsHead, toolcall.DetailsOpen}
	return ok && slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(string(text), begin) })
}

// part appends the replacement of p to parts.
func (s *shaper) part(parts []core.Part, p core.Part) []core.Part {
	switch p := p.(type) {
	case core.Text:
		if strings.TrimSpace(string(p)) != "" {
			parts = append(parts, p)
		}
	case core.ToolCall:
		parts = append(parts, core.Text(roo.ToolUseText(p.Name, p.Args)))
	case core.ToolResult:
		parts = append(parts, core.Text(s.resultText(p)))
		if s.images {
			for _, c := range p.Content {
				if i, ok := c.(core.Image); ok {
					parts = append(parts, i)
				}
			}
		}
	case core.Image:
		parts = append(parts, s.image(p))
	case core.Reasoning: // it is the model's own, and signed for one vendor
	case core.Opaque:
		parts = append(parts, core.Text(describeOpaque(p)))
	}
	return parts
}

// result returns r with nothing in it that the model cannot read.
func (s *shaper) result(r core.ToolResult) core.ToolResult {
	r.Content = slices.Clone(r.Content)
	for i, c := range r.Content {
		switch c := c.(type) {
		case core.Image:
			r.Content[i] = s.image(c)
		case core.Opaque:
			r.Content[i] = core.Text(describeOpaque(c))
		case core.Text, core.ToolCall, core.ToolResult, core.Reasoning:
		}
	}
	return r
}

func (s *shaper) resultText(r core.ToolResult) string {
	var items []string
	if r.Content != nil {
		items = make([]string, 0, len(r.Content))
	}
	for _, c := range r.Content {
		switch c := c.(type) {
		case core.Text:
			items = append(items, string(c))
		case core.Image:
			items = append(items, "[Image]")
		case core.Opaque:
			items = append(items, "["+c.Kind+"]")
		case core.ToolCall, core.ToolResult, core.Reasoning: // not in a result
		}
	}
	return roo.ToolResultText(r.IsError, items)
}

// image returns i if the model can see it, else a description.
func (s *shaper) image(i core.Image) core.Part {
	if s.images {
		return i
	}
	kind := i.MediaType
	kind = cmp.Or(kind, "image")
	if i.URL != "" {
		return core.Text(fmt.Sprintf("[Referenced image in conversation: %s, %s; not shown here]", kind, i.URL))
	}
	return core.Text(fmt.Sprintf("[Referenced image in conversation: %s, %d kB; not shown here]", kind, (len(i.Data)*3/4+1023)/1024))
}

func describeOpaque(o core.Opaque) string {
	return fmt.Sprintf("[A block of kind %q, %d bytes; not shown here]", o.Kind, len(o.JSON))
}
