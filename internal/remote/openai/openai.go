// Package openai is the client of OpenAI's Chat Completions API, which most others speak
// too: Ollama, vLLM, llama.cpp, LM Studio, OpenRouter, Gemini's compatible endpoint,
// gateways.
package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/model"
)

// New returns the client of a model; see [remote.New]. A base URL is the part before /chat/completions, for most
// servers ending with /v1. Without one the model is OpenAI's own, with the key in OPENAI_API_KEY unless the options
// name another place.
func New(o remote.Options) (*remote.Client, error) { return remote.New(&vendor, o) }

const (
	baseURL = "https://api.openai.com/v1"
	keyEnv  = "OPENAI_API_KEY"
)

var vendor = remote.Vendor{
	BaseURL:  baseURL,
	KeyEnv:   keyEnv,
	Path:     "/chat/completions",
	Sign:     sign,
	Body:     body,
	Optional: []string{newLimit, oldLimit, "stream_options", "tool_choice"},
	Event:    event,
	Whole:    whole,
	Clean:    withoutThoughts,

	Compaction: &compaction, Compacts: "responses", Embedding: &embedding,
}

func sign(header http.Header, key string) {
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
}

// A completion is an answer, or a piece of one.
type completion struct {
	Choices []struct {
		Delta   said    `json:"delta"`
		Message said    `json:"message"`
		Finish  *string `json:"finish_reason"`
		Usage   *usage  `json:"usage"` // of Moonshot
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// said is the content of an answer. Reasoning has separate fields, which are ignored.
type said struct {
	Content json.RawMessage `json:"content"`
	Refusal string          `json:"refusal"`
	Calls   []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// usage is the usage of an answer. Cached tokens are part of the prompt's.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Hit int `json:"prompt_cache_hit_tokens"` // of DeepSeek
}

func event(r *remote.Reply, _ string, data []byte) error {
	if data = bytes.TrimSpace(data); string(data) == "[DONE]" {
		r.Ended, r.Done = true, true
		return nil
	}
	var c completion
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("an event is not its JSON: %w", err)
	}
	return take(r, &c, data)
}

func whole(r *remote.Reply, data []byte) error {
	var c completion
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	if err := take(r, &c, data); err != nil {
		return err
	}
	if len(c.Choices) == 0 {
		return fmt.Errorf("no choices in %.100q", data)
	}
	r.Ended, r.Done = true, true
	return nil
}

func take(r *remote.Reply, c *completion, data []byte) error {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		if e := remote.Reported(0, data); e != nil {
			return e
		}
	}
	meter(r, c.Usage)
	if len(c.Choices) == 0 {
		return nil
	}
	first := c.Choices[0]
	meter(r, first.Usage)
	for _, s := range []said{first.Delta, first.Message} {
		if err := hear(r, s); err != nil {
			return err
		}
	}
	if first.Finish != nil && *first.Finish != "" {
		r.Ended = true
		switch *first.Finish {
		case "length":
			r.Truncated = true
		case "content_filter":
			r.Refused, r.Silence = true, "a content filter stopped it"
		}
	}
	return nil
}

func hear(r *remote.Reply, s said) error {
	text, err := textOf(s.Content)
	if err != nil {
		return err
	}
	r.Text.WriteString(text)
	if s.Refusal != "" {
		r.Refused, r.Silence = true, "it refused"
	}
	for _, call := range s.Calls {
		if call.Function.Name != "" {
			r.Silence = fmt.Sprintf("it called the tool %.64q", call.Function.Name)
		}
	}
	return nil
}

// textOf returns the text in content: a string, null, or an array of parts, with which
// Mistral separates text from reasoning.
func textOf(content json.RawMessage) (string, error) {
	if len(content) == 0 || string(content) == "null" {
		return "", nil
	}
	if content[0] != '[' {
		var s string
		err := json.Unmarshal(content, &s)
		return s, err
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(content, &parts); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String(), nil
}

func meter(r *remote.Reply, u *usage) {
	if u == nil || u.Prompt <= 0 && u.Completion <= 0 {
		return
	}
	r.Metered = true
	r.Usage.InputTokens, r.Usage.OutputTokens = max(0, u.Prompt), max(0, u.Completion)
	r.Usage.CachedTokens = min(max(0, u.Details.Cached, u.Hit), r.Usage.InputTokens)
}

// embedding is the request for vectors, which Ollama, vLLM, LM Studio and Gemini's compatible endpoint have, too.
// Source: "Create embeddings", developers.openai.com/api/reference/resources/embeddings.
var embedding = remote.Vendor{
	BaseURL: baseURL,
	KeyEnv:  keyEnv,
	Path:    "/embeddings",
	Sign:    sign,
	Body: func(p *model.Prompt, o *remote.Options, _ remote.Refused) ([]byte, error) {
		input := make([]string, len(p.Messages))
		for i, m := range p.Messages {
			text, _ := m.Parts[0].(core.Text)
			if input[i] = string(text); strings.TrimSpace(input[i]) == "" {
				input[i] = "." // an empty text is refused
			}
		}
		return rawjson.Encode(map[string]any{"model": o.ID, "input": input})
	},
	Event: compaction.Event,
	Whole: func(r *remote.Reply, data []byte) error {
		if e := remote.Reported(0, data); e != nil {
			return e
		}
		var m struct {
			Data []struct {
				Index     int             `json:"index"`
				Embedding json.RawMessage `json:"embedding"`
			} `json:"data"`
			Usage *usage `json:"usage"`
		}
		err := json.Unmarshal(data, &m)
		vectors := make([][]byte, len(m.Data))
		for _, d := range m.Data {
			if d.Index < 0 || d.Index >= len(vectors) || !rawjson.IsArray(d.Embedding) {
				return fmt.Errorf("number %d of data is no vector", d.Index)
			}
			vectors[d.Index] = d.Embedding
		}
		if err != nil {
			return err
		}
		r.Text.Write(rawjson.Array(vectors))
		meter(r, m.Usage)
		r.Ended, r.Done = true, true
		return nil
	},
}
