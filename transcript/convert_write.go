package transcript

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// convertAnthropic writes an array of messages, or an object if there is a system
// prompt.
func convertAnthropic(f *File, out *Output) error {
	turns, system := convert(f, &anthropicWire, out)
	if system != "" {
		out.AddString(`{"system":`)
		out.Add(appendQuoted(nil, system))
		out.AddString(`,"messages":`)
	}
	out.AddString("[")
	for i, m := range messagesOf(turns) {
		if i > 0 {
			out.AddString(",")
		}
		out.Add(encodeAnthropic(m.role, m.parts))
	}
	out.AddString("]")
	if system != "" {
		out.AddString("}")
	}
	out.AddString("\n")
	return nil
}

// convertTrace writes what convertAnthropic would, as a recorded session.
func convertTrace(f *File, out *Output) error {
	turns, system := convert(f, &anthropicWire, out)
	out.AddString(`{"source":`)
	source := f.Origin
	if source == "" {
		source = "condense"
	}
	out.Add(appendQuoted(nil, source))
	if f.Model != "" {
		out.AddString(`,"model":`)
		out.Add(appendQuoted(nil, f.Model))
	}
	if system != "" {
		out.AddString(`,"system":`)
		out.Add(appendQuoted(nil, system))
	}
	out.AddString(`,"messages":[`)
	for i, m := range messagesOf(turns) {
		if i > 0 {
			out.AddString(",")
		}
		out.Add(encodeTrace(m.role, m.kind, m.parts))
	}
	out.AddString("]}\n")
	return nil
}

// messagesOf returns turns as Anthropic sends them: the results of a turn's calls stand
// at the head of the user's next message.
func messagesOf(turns []turn) []turn {
	out := make([]turn, 0, len(turns))
	var results []core.ToolResult
	id := ""
	for _, t := range turns {
		if len(results) > 0 {
			parts := resultParts(results)
			if t.role == core.RoleUser {
				t.parts = append(parts, t.parts...)
			} else {
				out = append(out, turn{id: id, role: core.RoleUser, parts: parts})
			}
		}
		results, id = t.results, t.id
		out = append(out, t)
	}
	if len(results) > 0 {
		out = append(out, turn{id: id, role: core.RoleUser, parts: resultParts(results)})
	}
	return out
}

func resultParts(results []core.ToolResult) []core.Part {
	parts := make([]core.Part, len(results))
	for i, r := range results {
		parts[i] = r
	}
	return parts
}

// convertOpenAI writes an array of messages.
func convertOpenAI(f *File, out *Output) error {
	turns, _ := convert(f, &openaiWire, out)
	var all [][]byte
	for _, t := range turns {
		if textBehindCall(t.parts) {
			out.Warn(t.id, "text behind a tool call was moved before it: openai has no order of the two")
		}
		all = append(all, encodeOpenAI(t.role, t.parts)...)
		if slices.ContainsFunc(t.results, hasImage) {
			out.Warn(t.id, "images in a tool result were moved to a user message behind it: openai takes only text there")
		}
		if len(t.results) > 0 {
			all = append(all, encodeOpenAI(core.RoleTool, resultParts(t.results))...)
		}
	}
	out.AddString("[")
	out.Add(joinRecords(all))
	out.AddString("]\n")
	return nil
}

func textBehindCall(parts []core.Part) bool {
	called := false
	for _, p := range parts {
		switch p.(type) {
		case core.ToolCall:
			called = true
		case core.Text:
			if called {
				return true
			}
		case core.ToolResult, core.Image, core.Reasoning, core.Opaque:
		}
	}
	return false
}

func hasImage(r core.ToolResult) bool {
	return slices.ContainsFunc(r.Content, func(p core.Part) bool { _, ok := p.(core.Image); return ok })
}
