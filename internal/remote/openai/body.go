package openai

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/model"
)

// The parameter for the longest answer has two names. OpenAI's newer models refuse the old
// one; other servers do not know the new one, or ignore it.
const (
	newLimit = "max_completion_tokens"
	oldLimit = "max_tokens"
)

// A request is the body of a request.
type request struct {
	Model         string            `json:"model"`
	NewLimit      int               `json:"max_completion_tokens,omitempty"`
	OldLimit      int               `json:"max_tokens,omitempty"`
	Messages      []json.RawMessage `json:"messages"`
	Tools         []json.RawMessage `json:"tools,omitempty"`
	ToolChoice    string            `json:"tool_choice,omitempty"`
	Stream        bool              `json:"stream"`
	StreamOptions *streamOptions    `json:"stream_options,omitempty"`

	Temperature *float64        `json:"temperature,omitempty"`
	Effort      string          `json:"reasoning_effort,omitempty"`
	Format      json.RawMessage `json:"response_format,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

func body(p *model.Prompt, o *remote.Options, refused remote.Refused) ([]byte, error) {
	if !p.Cached { // else it would not be found in the cache
		plain := *p
		plain.Messages = turns(p.Messages)
		p = &plain
	}
	var err error
	r := request{Model: o.ID, Messages: apimessage.EncodeOpenAI(remote.Input(p)), Stream: true, Temperature: p.Temperature, Effort: p.Effort}
	if p.Schema != "" { // see "Structured model outputs", developers.openai.com/api/docs/guides/structured-outputs
		r.Format = rawjson.Append(nil, `{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":?}}`, []byte(p.Schema))
	}
	limit := p.MaxOutput
	if o.MaxOutput > 0 {
		limit = min(limit, o.MaxOutput)
	}
	switch {
	case refused(newLimit) && refused(oldLimit):
	case refused(oldLimit), ofOpenAI(o.BaseURL) && !refused(newLimit):
		r.NewLimit = limit
	default:
		r.OldLimit = limit
	}
	if !refused("stream_options") {
		r.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if r.Tools, err = tools(p); err != nil {
		return nil, err
	}
	if len(r.Tools) > 0 && !p.Cached && !refused("tool_choice") {
		r.ToolChoice = "none"
	}
	return rawjson.Encode(r)
}

// ofOpenAI reports whether base is OpenAI's own service.
func ofOpenAI(base string) bool {
	at, err := url.Parse(base)
	return base == "" || err == nil && at.Hostname() == "api.openai.com"
}

// tools returns the definitions of the prompt in OpenAI's form.
func tools(p *model.Prompt) ([]json.RawMessage, error) {
	known, err := remote.ParseTools(p.Tools)
	if err != nil {
		return nil, err
	}
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	all := make([]json.RawMessage, 0, len(known))
	for _, t := range known {
		switch t.Form {
		case "":
			continue // one that another vendor runs itself
		case "anthropic":
			t.Raw, err = json.Marshal(map[string]any{"type": "function", "function": function{t.Name, t.Description, t.Schema}})
			if err != nil {
				return nil, err
			}
		}
		all = append(all, t.Raw)
	}
	return all, nil
}

// withoutThoughts returns text without the reasoning that local servers leave at its front,
// between the tags of DeepSeek R1 and Qwen 3. Without an end tag, all text is reasoning.
func withoutThoughts(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "<think>")
	if !ok {
		return text
	}
	_, said, _ := strings.Cut(rest, "</think>")
	return strings.TrimSpace(said)
}

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
