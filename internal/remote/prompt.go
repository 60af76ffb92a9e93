package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/model"
)

// Input returns p for the encoders of package apimessage. Reasoning is left out unless p is
// cached: only then was it certainly signed by the vendor that is asked.
func Input(p *model.Prompt) *apimessage.Input {
	in := &apimessage.Input{System: p.System, Foreign: !p.Cached, Messages: make([]core.Message, len(p.Messages))}
	for i, m := range p.Messages {
		in.Messages[i] = core.Message{ID: strconv.Itoa(i + 1), Role: m.Role, Parts: m.Parts}
	}
	return in
}

// HasCalls reports whether a message of p holds a tool call.
func HasCalls(p *model.Prompt) bool {
	return slices.ContainsFunc(p.Messages, func(m core.Message) bool {
		return slices.ContainsFunc(m.Parts, func(part core.Part) bool {
			_, ok := part.(core.ToolCall)
			return ok
		})
	})
}

// A Tool is the definition of a tool, whose form depends on the vendor.
type Tool struct {
	Form              string // "anthropic", "openai", or "" for a tool that a vendor provides
	Name, Description string
	Schema            json.RawMessage // of the arguments
	Raw               json.RawMessage // the definition, verbatim
}

// ParseTools reads definitions in the form of either vendor; see [model.Prompt].
func ParseTools(definitions string) ([]Tool, error) {
	if strings.TrimSpace(definitions) == "" {
		return nil, nil
	}
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(definitions), &all); err != nil {
		return nil, fmt.Errorf("definitions of tools: %w", err)
	}
	tools := make([]Tool, 0, len(all))
	for i, raw := range all {
		var d struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
			Function    *struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, fmt.Errorf("definitions of tools: number %d: %w", i+1, err)
		}
		t := Tool{Name: d.Name, Description: d.Description, Schema: d.InputSchema, Raw: raw}
		switch f := d.Function; {
		case f != nil:
			t.Form, t.Name, t.Description, t.Schema = "openai", f.Name, f.Description, f.Parameters
			if t.Schema == nil {
				t.Schema = AnySchema
			}
		case t.Schema != nil:
			t.Form = "anthropic"
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// AnySchema is the schema of unknown arguments.
var AnySchema = json.RawMessage(`{"type":"object"}`)
