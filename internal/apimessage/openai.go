package apimessage

import (
	"encoding/json"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
)

// OpenAIMessages returns the messages that say parts: one for each tool result, with its
// images after all of them because a tool message holds only text, then one for the
// rest.
func OpenAIMessages(role core.Role, parts []core.Part) [][]byte {
	var out [][]byte
	var rest, calls []core.Part
	var images []core.Part
	for _, p := range parts {
		switch p := p.(type) {
		case core.ToolResult:
			raw, moved := openaiResult(p)
			out, images = append(out, raw), append(images, moved...)
		case core.ToolCall:
			calls = append(calls, p)
		case core.Text, core.Image, core.Reasoning, core.Opaque:
			rest = append(rest, p)
		}
	}
	rest = append(images, rest...)
	if len(rest) == 0 && len(calls) == 0 && len(out) > 0 {
		return out
	}
	raw := rawjson.Append(nil, `{"role":?`, string(Speaker(role)))
	for _, p := range rest {
		if r, ok := p.(core.Reasoning); ok {
			raw = rawjson.Append(raw, `,"reasoning_content":?`, r.Text)
			break
		}
	}
	rest = slices.DeleteFunc(rest, func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok })
	content := OpenAIContent(rest)
	if len(rest) == 0 && len(calls) > 0 {
		content = []byte("null")
	}
	raw = rawjson.Append(raw, `,"content":?`, content)
	if len(calls) > 0 {
		raw = rawjson.Append(raw, `,"tool_calls":?`, OpenAICalls(calls))
	}
	return append(out, append(raw, '}'))
}

// openaiResult returns a tool message, and the parts that must follow in a user message.
func openaiResult(r core.ToolResult) (raw []byte, moved []core.Part) {
	var content []core.Part
	for _, p := range r.Content {
		if _, ok := p.(core.Image); !ok {
			content = append(content, p)
			continue
		}
		if moved == nil {
			moved = append(moved, core.Text("From the result of tool call "+r.CallID+":"))
			content = append(content, core.Text("(The image follows in the next user message.)"))
		}
		moved = append(moved, p)
	}
	return rawjson.Append(nil, `{"role":"tool","tool_call_id":?,"content":?}`, r.CallID, OpenAIContent(content)), moved
}

// OpenAIContent returns parts as the value of "content": a string if they are at
// most one text, else an array.
func OpenAIContent(parts []core.Part) []byte {
	if len(parts) == 0 {
		return []byte(`""`)
	}
	return encodeList(parts, AppendOpenAIPart)
}

// AppendOpenAIPart appends p as a part of content.
func AppendOpenAIPart(out []byte, p core.Part) []byte {
	switch p := p.(type) {
	case core.Image:
		return rawjson.Append(out, `{"type":"image_url","image_url":{"url":?}}`, ImageURL(p))
	case core.Opaque:
		if rawjson.IsObject([]byte(p.JSON)) {
			return append(out, p.JSON...)
		}
		return rawjson.Append(out, textBlock, p.JSON)
	case core.Text:
		return rawjson.Append(out, textBlock, string(p))
	case core.ToolCall, core.ToolResult, core.Reasoning: // have places of their own
	}
	return rawjson.Append(out, textBlock, "")
}

// OpenAICalls returns the tool calls among calls as the value of "tool_calls".
func OpenAICalls(calls []core.Part) []byte {
	raw := make([][]byte, len(calls))
	for i, p := range calls {
		c, _ := p.(core.ToolCall)
		raw[i] = rawjson.Append(nil, `{"id":?,"type":"function","function":{"name":?,"arguments":?}}`, c.ID, c.Name, c.Args)
	}
	return rawjson.Array(raw)
}

// EncodeOpenAI returns a conversation as the messages that OpenAI's API takes. The system
// prompt is the first of them.
func EncodeOpenAI(in *Input) []json.RawMessage {
	turns, _ := OpenAI.Turns(in)
	warn := in.warn()
	var messages []json.RawMessage
	add := func(role core.Role, parts []core.Part) {
		for _, raw := range OpenAIMessages(role, parts) {
			messages = append(messages, raw)
		}
	}
	for _, t := range turns {
		if textAfterCall(t.Parts) {
			warn(t.ID, "text after a tool call was moved before it: openai has no order of the two")
		}
		add(t.Role, t.Parts)
		if slices.ContainsFunc(t.Results, func(r core.ToolResult) bool {
			return slices.ContainsFunc(r.Content, func(p core.Part) bool { _, ok := p.(core.Image); return ok })
		}) {
			warn(t.ID, "images in a tool result were moved to a user message after it: openai takes only text there")
		}
		if len(t.Results) > 0 {
			add(core.RoleTool, resultParts(t.Results))
		}
	}
	return messages
}

func textAfterCall(parts []core.Part) bool {
	called := false
	for _, p := range parts {
		switch p.(type) {
		case core.ToolCall:
			called = true
		case core.Text:
			if called {
				return true
			}
		case core.ToolResult, core.Image, core.Reasoning, core.Opaque:
		}
	}
	return false
}

// Summary returns the text of r as OpenAI's Responses API has it: an array.
func Summary(r core.Reasoning) []byte {
	if r.Text == "" {
		return []byte("[]")
	}
	return rawjson.Append(nil, `[{"type":"summary_text","text":?}]`, r.Text)
}
