package benchdata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/condensehq/condense/core"
)

// WriteAnthropic writes the conversation of n messages as the JSON array of Anthropic's Messages API, one
// message a line. It does not use the program's encoder, so that the peers' benchmarks are independent of
// it.
func WriteAnthropic(out io.Writer, n int) error {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, m := range Messages(n) {
		if i > 0 {
			b.WriteString(",\n ")
		}
		line, err := json.Marshal(message{string(m.Role), blocks(m.Parts)})
		if err != nil {
			return fmt.Errorf("message %s: %w", m.ID, err)
		}
		b.Write(line)
	}
	b.WriteString("]\n")
	_, err := b.WriteTo(out)
	return err
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []block         `json:"content,omitempty"`
}

func blocks(parts []core.Part) []block {
	out := make([]block, 0, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			out = append(out, block{Type: "text", Text: string(p)})
		case core.ToolCall:
			out = append(out, block{Type: "tool_use", ID: p.ID, Name: p.Name, Input: json.RawMessage(p.Args)})
		case core.ToolResult:
			out = append(out, block{Type: "tool_result", ToolUseID: p.CallID, Content: blocks(p.Content)})
		case core.Image, core.Reasoning, core.Opaque: // the conversation has none
		}
	}
	return out
}
