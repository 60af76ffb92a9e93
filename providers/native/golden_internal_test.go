package native

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/prefix"
	"github.com/condensehq/condense/internal/testkit/golden"
	"github.com/condensehq/condense/internal/testkit/roo"
)

// rooHistory is an input of Roo-Code's messages.
type rooHistory []*roo.Message

func (h *rooHistory) UnmarshalJSON(data []byte) (err error) {
	*h, err = roo.Parse(data)
	return err
}

// A rooReader turns Roo-Code's messages into the provider's and back. What the provider
// makes no difference of, such as a text alone and one in a list, is written back as it
// was read: none of it is the provider's business.
type rooReader struct {
	alone map[string]bool            // texts that were no list
	raw   map[string]json.RawMessage // texts whose blocks have further members
}

func newRooReader() *rooReader {
	return &rooReader{alone: map[string]bool{}, raw: map[string]json.RawMessage{}}
}

func (r *rooReader) read(messages []*roo.Message) []core.Message {
	out := make([]core.Message, len(messages))
	for i, m := range messages {
		out[i] = core.Message{ID: fmt.Sprintf("m%d", i+1), Role: core.Role(m.Role()), Tokens: 1, Parts: r.parts(m.Content())}
		switch {
		case m.IsSummary():
			out[i].Kind = core.KindSummary
		case m.IsTruncationMarker():
			out[i].Kind = core.KindMarker
		}
	}
	return out
}

// wholeContent is the kind of content that is neither a text nor a list.
const wholeContent = "content"

func (r *rooReader) parts(content json.RawMessage) []core.Part {
	if text, ok := stringOf(content); ok {
		r.alone[text] = true
		return []core.Part{core.Text(text)}
	}
	if blocks, ok := listOf(content); ok {
		return r.blocks(blocks)
	}
	return []core.Part{core.Opaque{Kind: wholeContent, JSON: string(content)}}
}

func stringOf(raw json.RawMessage) (string, bool) {
	var s *string
	err := json.Unmarshal(raw, &s)
	if err != nil || s == nil {
		return "", false
	}
	return *s, true
}

func listOf(raw json.RawMessage) ([]json.RawMessage, bool) {
	var l []json.RawMessage
	err := json.Unmarshal(raw, &l)
	return l, err == nil && l != nil
}

func truthy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "false", "null", "0", `""`:
		return false
	}
	return true
}

// inResult marks, in rooReader.alone, a text that was all that a tool answered.
const inResult = "result: "

func (r *rooReader) blocks(blocks []json.RawMessage) []core.Part {
	parts := make([]core.Part, 0, len(blocks))
	for _, raw := range blocks {
		parts = append(parts, r.part(raw))
	}
	return parts
}

func (r *rooReader) part(raw json.RawMessage) core.Part {
	var b map[string]json.RawMessage
	if json.Unmarshal(raw, &b) != nil {
		return core.Opaque{JSON: string(raw)}
	}
	kind, _ := stringOf(b["type"])
	switch kind {
	case "text":
		if text, ok := stringOf(b["text"]); ok {
			if len(b) > 2 {
				r.raw[text] = raw
			}
			return core.Text(text)
		}
	case "image":
		return core.Image{Data: string(raw)}
	case "tool_use":
		id, _ := stringOf(b["id"])
		name, ok := stringOf(b["name"])
		if !ok {
			name = "undefined"
		}
		return core.ToolCall{ID: id, Name: name, Args: string(b["input"])}
	case "tool_result":
		id, _ := stringOf(b["tool_use_id"])
		result := core.ToolResult{CallID: id, IsError: truthy(b["is_error"])}
		if text, ok := stringOf(b["content"]); ok {
			r.alone[inResult+text] = true
			result.Content = []core.Part{core.Text(text)}
		} else if items, ok := listOf(b["content"]); ok {
			result.Content = r.blocks(items)
		}
		return result
	}
	return core.Opaque{Kind: kind, JSON: string(raw)}
}

// content returns parts as Roo-Code writes them.
func (r *rooReader) content(parts []core.Part) any {
	if len(parts) == 1 {
		switch p := parts[0].(type) {
		case core.Text:
			if r.alone[string(p)] {
				return string(p)
			}
		case core.Opaque:
			if p.Kind == wholeContent {
				return json.RawMessage(cmp.Or(p.JSON, "null"))
			}
		case core.Image, core.ToolCall, core.ToolResult, core.Reasoning:
		}
	}
	return r.write(parts)
}

// write returns parts as a list of blocks.
func (r *rooReader) write(parts []core.Part) []any {
	blocks := make([]any, 0, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			if raw, ok := r.raw[string(p)]; ok {
				blocks = append(blocks, raw)
				continue
			}
			blocks = append(blocks, map[string]any{"type": "text", "text": string(p)})
		case core.Image:
			blocks = append(blocks, json.RawMessage(p.Data))
		case core.ToolCall:
			b := map[string]any{"type": "tool_use", "id": p.ID, "name": p.Name}
			if p.Args != "" {
				b["input"] = json.RawMessage(p.Args)
			}
			blocks = append(blocks, b)
		case core.ToolResult:
			b := map[string]any{"type": "tool_result", "tool_use_id": p.CallID}
			if p.Content != nil {
				b["content"] = r.write(p.Content)
			}
			if len(p.Content) == 1 {
				if t, ok := p.Content[0].(core.Text); ok && (r.alone[inResult+string(t)] || t == prefix.Deferred) {
					b["content"] = string(t)
				}
			}
			if p.IsError {
				b["is_error"] = true
			}
			blocks = append(blocks, b)
		case core.Opaque:
			blocks = append(blocks, json.RawMessage(p.JSON))
		case core.Reasoning:
			panic("the reader makes none")
		}
	}
	return blocks
}

func TestGoldenToolUseToText(t *testing.T) {
	t.Parallel()
	type input struct {
		Block json.RawMessage `json:"block"`
	}
	replay := func(in input) (any, error) {
		shape := &rooShaper{}
		return shape.shape([]core.Message{{Role: core.RoleUser, Parts: newRooReader().blocks([]json.RawMessage{in.Block})}})[0].Parts[0], nil
	}
	golden.Run(t, "toolUseToText", replay, nil)
	golden.Run(t, "toolResultToText", replay, nil)
}

func TestGoldenConvertToolBlocksToText(t *testing.T) {
	t.Parallel()
	type input struct {
		Content json.RawMessage `json:"content"`
	}
	golden.Run(t, "convertToolBlocksToText", func(in input) (any, error) {
		r := newRooReader()
		shape := &rooShaper{shaper: shaper{images: true}}
		return r.content(shape.shape([]core.Message{{Role: core.RoleUser, Parts: r.parts(in.Content)}})[0].Parts), nil
	}, nil)
}

func TestGoldenTransformMessages(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages []map[string]json.RawMessage `json:"messages"`
	}
	golden.Run(t, "transformMessagesForCondensing", func(in input) (any, error) {
		r := newRooReader()
		shape := &rooShaper{shaper: shaper{images: true}}
		out := make([]map[string]any, len(in.Messages))
		for i, m := range in.Messages {
			out[i] = map[string]any{}
			for k, v := range m {
				out[i][k] = v
			}
			parts := r.parts(m["content"])
			out[i]["content"] = r.content(shape.shape([]core.Message{{Role: core.RoleUser, Parts: parts}})[0].Parts)
		}
		return out, nil
	}, nil)
}

func TestGoldenInjectSyntheticToolResults(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages rooHistory `json:"messages"`
	}
	type output struct {
		Messages []any `json:"messages"`
		Same     bool  `json:"messagesSame"`
	}
	golden.Run(t, "injectSyntheticToolResults", func(in input) (any, error) {
		r := newRooReader()
		messages := r.read(in.Messages)
		with := prefix.WithResults(messages)
		out := output{Messages: []any{}, Same: len(with) == len(messages)}
		for i := range messages {
			out.Messages = append(out.Messages, in.Messages[i])
		}
		for _, m := range with[len(messages):] {
			out.Messages = append(out.Messages, map[string]any{"role": m.Role, "content": r.write(m.Parts), "ts": recordedNow})
		}
		return out, nil
	}, nil)
}

func TestGoldenExtractCommandBlocks(t *testing.T) {
	t.Parallel()
	type input struct {
		Message json.RawMessage `json:"message"`
	}
	golden.Run(t, "extractCommandBlocks", func(in input) (any, error) {
		m, err := roo.ParseMessage(in.Message)
		if err != nil {
			return nil, err
		}
		r := newRooReader()
		return commandBlocks(&r.read([]*roo.Message{m})[0]), nil
	}, nil)
}

// recordedNow is what Date.now() was when the vectors were recorded.
const recordedNow = 1_700_000_000_000
