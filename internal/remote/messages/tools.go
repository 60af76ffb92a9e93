package messages

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Tool is the definition of a tool, which vendors write differently.
type Tool struct {
	Form              string // whose form it has: "anthropic", "openai", or "" for a tool of a vendor's own
	Name, Description string
	Schema            json.RawMessage // of the arguments
	Raw               json.RawMessage // the definition as it stands
}

// Tools reads definitions in the form of either vendor; see [model.Prompt].
func Tools(definitions string) ([]Tool, error) {
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

// AnySchema is the schema of arguments of which nothing is known.
var AnySchema = json.RawMessage(`{"type":"object"}`)
