// Package messages writes prompts in the form that a vendor's API accepts, with the
// encoders that package transcript has for files: tool calls are paired and answered,
// roles take turns, names and IDs are lawful, nothing is empty.
package messages

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/transcript"
)

// A Request is the part of a request that says what the model reads.
type Request struct {
	System   string // only where it stands apart
	Messages []json.RawMessage
}

// Encode returns the messages of p in a format of package transcript, "anthropic" or
// "openai". Reasoning is left out unless p is cached, for only then is it certain that
// the vendor that is asked has signed it.
func Encode(p *model.Prompt, format string) (*Request, error) {
	d := &transcript.Document{Journal: history.New(), System: p.System}
	prompt := make([]core.Message, 0, len(p.Messages))
	for i, m := range p.Messages {
		m = core.Message{ID: strconv.Itoa(i + 1), Role: m.Role, Parts: m.Parts}
		if !p.Cached {
			m.Parts = withoutReasoning(m.Parts)
		}
		prompt = append(prompt, m)
	}
	if err := d.Journal.Append(prompt...); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if _, err := d.Write(&out, format); err != nil { // warnings are about content that no API takes
		return nil, err
	}
	r := &Request{}
	if raw := bytes.TrimSpace(out.Bytes()); len(raw) > 0 && raw[0] == '[' {
		return r, json.Unmarshal(raw, &r.Messages)
	}
	return r, json.Unmarshal(out.Bytes(), r)
}

func withoutReasoning(parts []core.Part) []core.Part {
	var kept []core.Part
	for _, p := range parts {
		if _, ok := p.(core.Reasoning); !ok {
			kept = append(kept, p)
		}
	}
	return kept
}

// Calls reports whether a message of p holds a tool call.
func Calls(p *model.Prompt) bool {
	for _, m := range p.Messages {
		for _, part := range m.Parts {
			if _, ok := part.(core.ToolCall); ok {
				return true
			}
		}
	}
	return false
}
