package openai

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// turns returns messages in the form that every server reads, even less lenient ones than OpenAI's: consecutive texts
// are joined, because DeepSeek requires a string if there is nothing but text, and so are consecutive messages of the
// user, because the templates of Mistral's, Gemma's and older Llama models refuse two.
func turns(messages []core.Message) []core.Message {
	out := make([]core.Message, 0, len(messages))
	for _, m := range messages {
		if last := len(out) - 1; last >= 0 && m.Role == core.RoleUser && out[last].Role == core.RoleUser {
			out[last].Parts = joined(append(out[last].Parts, m.Parts...))
			continue
		}
		m.Parts = joined(m.Parts)
		out = append(out, m)
	}
	return out
}

// joined returns a copy of parts in which no text follows another.
func joined(parts []core.Part) []core.Part {
	out := make([]core.Part, 0, len(parts))
	for i := 0; i < len(parts); i++ {
		switch p := parts[i].(type) {
		case core.Text:
			texts := []string{string(p)}
			for ; i+1 < len(parts); i++ {
				next, ok := parts[i+1].(core.Text)
				if !ok {
					break
				}
				if strings.TrimSpace(string(next)) != "" {
					texts = append(texts, string(next))
				}
			}
			out = append(out, core.Text(strings.Join(texts, "\n\n")))
		case core.ToolResult:
			p.Content = joined(p.Content)
			out = append(out, p)
		case core.ToolCall, core.Image, core.Reasoning, core.Opaque:
			out = append(out, p)
		}
	}
	return out
}
