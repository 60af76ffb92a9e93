package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/model"
)

// A request is the body of a request.
type request struct {
	Model      string            `json:"model"`
	MaxTokens  int               `json:"max_tokens"`
	System     string            `json:"system,omitempty"`
	Tools      []json.RawMessage `json:"tools,omitempty"`
	ToolChoice json.RawMessage   `json:"tool_choice,omitempty"`
	Messages   []json.RawMessage `json:"messages"`
	Stream     bool              `json:"stream"`

	Temperature *float64      `json:"temperature,omitempty"`
	Output      *outputConfig `json:"output_config,omitempty"`
}

// Source: "Structured outputs" and "Effort", platform.claude.com/docs/en/build-with-claude.
type outputConfig struct {
	Format *format `json:"format,omitempty"`
	Effort string  `json:"effort,omitempty"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

func body(p *model.Prompt, o *remote.Options, refused remote.Refused) ([]byte, error) {
	system, encoded := apimessage.EncodeAnthropic(remote.Input(p))
	var err error
	// A conversion to runes makes invalid UTF-8 the same bytes in the system prompt as in messages.
	r := request{Model: o.ID, MaxTokens: maxTokens(p, o.MaxOutput), System: string([]rune(system)), Messages: encoded, Stream: true}
	r.Temperature = p.Temperature
	if p.Effort != "" || p.Schema != "" {
		r.Output = &outputConfig{Effort: p.Effort}
	}
	if p.Schema != "" {
		r.Output.Format = &format{"json_schema", json.RawMessage(p.Schema)}
	}
	if r.Tools, err = tools(p, encoded); err != nil {
		return nil, err
	}
	if len(r.Tools) > 0 && !p.Cached && !refused("tool_choice") {
		r.ToolChoice = json.RawMessage(`{"type":"none"}`) // a change of it would miss the cache
	}
	if p.Cached && !refused("cache_control") {
		if r.Messages, err = mark(encoded, p); err != nil {
			return nil, err
		}
	}
	return rawjson.Encode(r)
}

// A definition is a tool in this API's form.
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
}

// tools returns the definitions to send: the prompt's or, if it has none but calls tools, definitions with their
// names only, because the API refuses calls of undefined tools.
func tools(p *model.Prompt, sent []json.RawMessage) ([]json.RawMessage, error) {
	known, err := remote.ParseTools(p.Tools)
	if err != nil {
		return nil, err
	}
	all := make([]json.RawMessage, 0, len(known))
	for _, t := range known {
		if t.Form == "openai" {
			if t.Raw, err = json.Marshal(definition{t.Name, t.Description, t.Schema}); err != nil {
				return nil, err
			}
		}
		all = append(all, t.Raw)
	}
	if len(all) > 0 || !remote.HasCalls(p) {
		return all, nil
	}
	var names []string
	for _, m := range sent {
		content, err := blocks(m)
		if err != nil {
			return nil, err
		}
		for _, b := range content {
			var call struct{ Type, Name string }
			if err := json.Unmarshal(b, &call); err != nil {
				return nil, err
			}
			if call.Type == "tool_use" && !slices.Contains(names, call.Name) {
				names = append(names, call.Name)
			}
		}
	}
	for _, name := range names {
		one, err := json.Marshal(definition{Name: name, Schema: remote.AnySchema})
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// blocks returns the content of a message as blocks.
func blocks(message json.RawMessage) ([]json.RawMessage, error) {
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return nil, err
	}
	if len(m.Content) > 0 && m.Content[0] == '"' {
		one, err := json.Marshal(map[string]json.RawMessage{"type": json.RawMessage(`"text"`), "text": m.Content})
		return []json.RawMessage{one}, err
	}
	var all []json.RawMessage
	err := json.Unmarshal(m.Content, &all)
	return all, err
}

// mark makes the API cache everything that was sent before: all but the last message of p, which may be merged with
// the message before it.
func mark(sent []json.RawMessage, p *model.Prompt) ([]json.RawMessage, error) {
	if len(p.Messages) < 2 {
		return sent, nil
	}
	skip := 0 // blocks of the last message of p
	for _, part := range p.Messages[len(p.Messages)-1].Parts {
		if t, ok := part.(core.Text); !ok || strings.TrimSpace(string(t)) != "" {
			skip++
		}
	}
	sent = slices.Clone(sent)
	for i := len(sent) - 1; i >= 0; i-- {
		all, err := blocks(sent[i])
		if err != nil {
			return nil, err
		}
		for k := len(all) - 1; k >= 0; k-- {
			if skip > 0 {
				skip--
				continue
			}
			marked, err := cached(all[k])
			if err != nil {
				return nil, err
			}
			if marked == nil {
				continue // try the previous block
			}
			all[k] = marked
			var head struct {
				Role core.Role `json:"role"`
			}
			if err := json.Unmarshal(sent[i], &head); err != nil {
				return nil, err
			}
			sent[i], err = json.Marshal(map[string]any{"role": head.Role, "content": all})
			return sent, err
		}
	}
	return sent, nil
}

// cached returns a block with the mark, or nil if it is of a kind that cannot have it.
func cached(raw json.RawMessage) (json.RawMessage, error) {
	var b map[string]json.RawMessage
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, err
	}
	switch string(b["type"]) {
	case `"text"`, `"image"`, `"tool_use"`, `"tool_result"`, `"document"`:
		b["cache_control"] = json.RawMessage(`{"type":"ephemeral"}`)
		return json.Marshal(b)
	}
	return nil, nil
}
