package openai

import (
	"encoding/json"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/model"
)

// compaction is the compaction of the Responses API: the items of a conversation are answered with the items to send in
// their place. Source: "Compact a response", developers.openai.com/api/reference/resources/responses/methods/compact.
var compaction = remote.Vendor{
	BaseURL: baseURL,
	KeyEnv:  keyEnv,
	Path:    "/responses/compact",
	Sign:    sign,
	Body:    compactionBody,
	Event: func(_ *remote.Reply, _ string, data []byte) error {
		return fmt.Errorf("want an answer that is no stream, got %.100q", data)
	},
	Whole: compactionWhole,
}

func compactionBody(p *model.Prompt, o *remote.Options, _ remote.Refused) ([]byte, error) {
	in := remote.Input(p)
	in.System, in.Foreign = "", false // the agent's own vendor is asked: the reasoning is its own
	turns, _ := apimessage.Responses.Turns(in)
	var input []json.RawMessage
	for i := range turns {
		input = append(input, items(&turns[i])...)
	}
	return rawjson.Encode(struct {
		Model        string            `json:"model"`
		Instructions string            `json:"instructions,omitempty"`
		Input        []json.RawMessage `json:"input"`
	}{o.ID, p.System, input})
}

// items returns a turn as items of the Responses API.
func items(t *apimessage.Turn) []json.RawMessage {
	var out []json.RawMessage
	var said [][]byte
	role, text := string(t.Role), `{"type":"input_text","text":?}`
	switch t.Role {
	case core.RoleAssistant:
		text = `{"type":"output_text","text":?}`
	case core.RoleSystem:
		role = "developer"
	case core.RoleUser, core.RoleTool:
	}
	flush := func() {
		if len(said) > 0 {
			out = append(out, rawjson.Append(nil, `{"type":"message","role":?,"content":?}`, role, rawjson.Array(said)))
			said = nil
		}
	}
	for _, p := range t.Parts {
		switch p := p.(type) {
		case core.Text:
			said = append(said, rawjson.Append(nil, text, string(p)))
		case core.Image:
			said = append(said, rawjson.Append(nil, `{"type":"input_image","image_url":?}`, apimessage.ImageURL(p)))
		case core.Opaque:
			if p.Kind == "input_file" {
				said = append(said, []byte(p.JSON))
				continue
			}
			flush()
			out = append(out, json.RawMessage(p.JSON))
		case core.Reasoning:
			flush()
			out = append(out, rawjson.Append(nil, `{"type":"reasoning","summary":?,"encrypted_content":?}`, apimessage.Summary(p), rawjson.QuoteOrNull(p.Encrypted)))
		case core.ToolCall:
			flush()
			out = append(out, rawjson.Append(nil, `{"type":"function_call","name":?,"arguments":?,"call_id":?}`, p.Name, p.Args, p.ID))
		case core.ToolResult: // a turn has them apart
		}
	}
	flush()
	for _, r := range t.Results {
		out = append(out, rawjson.Append(nil, `{"type":"function_call_output","call_id":?,"output":?}`, r.CallID, output(r.Content)))
	}
	return out
}

// output is the text of a result, or its texts, images and files.
func output(content []core.Part) []byte {
	if len(content) == 1 {
		if t, ok := content[0].(core.Text); ok {
			return rawjson.AppendQuote(nil, string(t))
		}
	}
	all := [][]byte{}
	for _, p := range content {
		switch p := p.(type) {
		case core.Text:
			all = append(all, rawjson.Append(nil, `{"type":"input_text","text":?}`, string(p)))
		case core.Image:
			all = append(all, rawjson.Append(nil, `{"type":"input_image","image_url":?}`, apimessage.ImageURL(p)))
		case core.Opaque:
			all = append(all, []byte(p.JSON))
		case core.ToolCall, core.ToolResult, core.Reasoning: // in no result
		}
	}
	if len(all) == 0 {
		return []byte(`""`)
	}
	return rawjson.Array(all)
}

func compactionWhole(r *remote.Reply, data []byte) error {
	if e := remote.Reported(0, data); e != nil {
		return e
	}
	var m struct {
		Output json.RawMessage `json:"output"`
		Usage  struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	if !rawjson.IsArray(m.Output) {
		return fmt.Errorf("no output in %.100q", data)
	}
	r.Text.Write(m.Output)
	u := usage{Prompt: m.Usage.Input, Completion: m.Usage.Output}
	u.Details.Cached = m.Usage.Details.Cached
	meter(r, &u)
	r.Ended, r.Done = true, true
	return nil
}
