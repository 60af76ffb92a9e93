package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
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

// compaction is Anthropic's compaction on demand: an ordinary request with one more field, answered with a signed
// block in place of a reply. Source: "Compaction on demand",
// platform.claude.com/docs/en/build-with-claude/compaction-on-demand.
var compaction = remote.Vendor{
	BaseURL: baseURL, KeyEnv: keyEnv, Path: path,
	Sign: func(header http.Header, key string) {
		sign(header, key)
		header.Set("anthropic-beta", compactionBeta)
	},
	Body:  compactionBody,
	Event: compactionEvent,
	Whole: compactionWhole,
}

const compactionBeta = "compact-2026-09-04"

func compactionBody(p *model.Prompt, o *remote.Options, _ remote.Refused) ([]byte, error) {
	in := remote.Input(p)
	in.Foreign = false // the agent's own vendor is asked: the thinking is its own
	system, encoded := apimessage.EncodeAnthropic(in)
	type summarize struct {
		Type         string `json:"type"`
		Instructions string `json:"instructions,omitempty"`
	}
	r := struct {
		request

		Compaction summarize `json:"compaction"`
	}{
		request{Model: o.ID, MaxTokens: maxTokens(p, o.MaxOutput), System: string([]rune(system)), Messages: encoded, Stream: true},
		summarize{"summarize", p.Instructions},
	}
	var err error
	if r.Tools, err = tools(p, encoded); err != nil {
		return nil, err
	}
	return rawjson.Encode(r)
}

// iterations are the usage of a compaction; the numbers above them are zero.
type iterations struct {
	Iterations []usage `json:"iterations"`
}

func (u *iterations) meter(r *remote.Reply) {
	for i := range u.Iterations {
		meter(r, &u.Iterations[i])
	}
}

func compactionEvent(r *remote.Reply, _ string, data []byte) error {
	var e struct {
		Type    string `json:"type"`
		Message struct {
			Usage iterations `json:"usage"`
		} `json:"message"`
		Block json.RawMessage `json:"content_block"`
		Delta struct {
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage iterations `json:"usage"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("an event is not its JSON: %w", err)
	}
	switch e.Type {
	case "message_start":
		e.Message.Usage.meter(r)
	case "content_block_start":
		return keep(r, e.Block)
	case "message_delta":
		e.Usage.meter(r)
		compacted(r, e.Delta.StopReason)
	default:
		return event(r, "", data)
	}
	return nil
}

func compactionWhole(r *remote.Reply, data []byte) error {
	if e := remote.Reported(0, data); e != nil {
		return e
	}
	var m struct {
		Content    []json.RawMessage `json:"content"`
		StopReason string            `json:"stop_reason"`
		Usage      iterations        `json:"usage"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	for _, b := range m.Content {
		if err := keep(r, b); err != nil {
			return err
		}
	}
	m.Usage.meter(r)
	compacted(r, m.StopReason)
	r.Done = true
	return nil
}

// keep takes the block of a compaction, which must be sent back as it came.
func keep(r *remote.Reply, raw json.RawMessage) error {
	var b struct{ Type, Signature string }
	if err := json.Unmarshal(raw, &b); err != nil {
		return err
	}
	if b.Type != "compaction" {
		return nil
	}
	if b.Signature == "" || r.Text.Len() > 0 {
		return fmt.Errorf("want one signed compaction, got %.100q", raw)
	}
	r.Text.WriteByte('[')
	r.Text.Write(raw)
	r.Text.WriteByte(']')
	return nil
}

// compacted records why the vendor stopped. All reasons but one mean that there is no summary.
func compacted(r *remote.Reply, reason string) {
	if reason == "" {
		return
	}
	stop(r, reason)
	if r.Ended = true; reason != "compaction" {
		r.Refused, r.Silence = true, fmt.Sprintf("there is no summary: the vendor stopped because of %.40q", reason)
	}
}
