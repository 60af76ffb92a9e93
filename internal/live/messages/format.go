// Package messages reads the messages of requests as transcripts.
package messages

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript"
)

// Read reads messages.
func Read(api wire.API, messages [][]byte) (*transcript.Document, error) {
	return transcript.Read(bytes.NewReader(rawjson.Array(messages)), &transcript.ReadOptions{Format: wire.Of(api).Format})
}

// Raw returns the JSON of messages as in the request.
func Raw(messages []wire.Message) [][]byte {
	raw := make([][]byte, len(messages))
	for i := range messages {
		raw[i] = messages[i].Raw
	}
	return raw
}

// Identity returns a key that is equal for messages with the same content, whatever the model's thinking, images and
// opaque parts.
func Identity(m core.Message) string {
	var b bytes.Buffer
	b.WriteString(string(m.Role))
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.ToolCall:
			fmt.Fprintf(&b, "\x00call %s %s %s", p.ID, p.Name, p.Args)
		case core.ToolResult:
			fmt.Fprintf(&b, "\x00result %s %s", p.CallID, Text(p.Content))
		case core.Text:
			b.WriteString("\x00" + string(p))
		case core.Image, core.Reasoning, core.Opaque:
		}
	}
	return b.String()
}

// Text returns the text of parts, including the arguments of calls and the text of results.
func Text(parts []core.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			b.WriteString(string(p) + "\n")
		case core.ToolCall:
			b.WriteString(p.Args + "\n")
		case core.ToolResult:
			b.WriteString(Text(p.Content))
		case core.Image, core.Reasoning, core.Opaque:
		}
	}
	return b.String()
}
