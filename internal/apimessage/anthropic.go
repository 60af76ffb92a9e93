package apimessage

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// AnthropicMessage returns a message in Anthropic's shape.
func AnthropicMessage(role core.Role, parts []core.Part) []byte {
	return rawjson.Append(nil, `{"role":?,"content":?}`, string(Speaker(role)), BlockContent(parts))
}

// BlockContent returns parts as the value of "content": a string if they are one text,
// else an array of blocks.
func BlockContent(parts []core.Part) []byte { return encodeList(parts, AppendBlock) }

// encodeList returns parts as a string if they are one text, else as an array of the elements
// that add appends.
func encodeList(parts []core.Part, add func([]byte, core.Part) []byte) []byte {
	if len(parts) == 1 {
		if t, ok := parts[0].(core.Text); ok {
			return rawjson.AppendQuote(nil, string(t))
		}
	}
	out := []byte{'['}
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = add(out, p)
	}
	return append(out, ']')
}

// textBlock is a text in the shape that both vendors share.
const textBlock = `{"type":"text","text":?}`

// AppendBlock appends p as a block. Opaque parts are written unchanged.
func AppendBlock(out []byte, p core.Part) []byte {
	switch p := p.(type) {
	case core.Text:
		return rawjson.Append(out, textBlock, string(p))
	case core.ToolCall:
		return rawjson.Append(out, `{"type":"tool_use","id":?,"name":?,"input":?}`, p.ID, p.Name, Args(p.Args))
	case core.ToolResult:
		out = rawjson.Append(out, `{"type":"tool_result","tool_use_id":?`, p.CallID)
		if len(p.Content) > 0 {
			out = rawjson.Append(out, `,"content":?`, BlockContent(p.Content))
		}
		if p.IsError {
			out = append(out, `,"is_error":true`...)
		}
		return append(out, '}')
	case core.Image:
		if p.URL != "" {
			return rawjson.Append(out, `{"type":"image","source":{"type":"url","url":?}}`, p.URL)
		}
		return rawjson.Append(out, `{"type":"image","source":{"type":"base64","media_type":?,"data":?}}`, p.MediaType, p.Data)
	case core.Reasoning:
		if p.Encrypted != "" {
			return rawjson.Append(out, `{"type":"redacted_thinking","data":?}`, p.Encrypted)
		}
		return rawjson.Append(out, `{"type":"thinking","thinking":?,"signature":?}`, p.Text, p.Signature)
	case core.Opaque:
		if rawjson.IsObject([]byte(p.JSON)) && json.Valid([]byte(p.JSON)) {
			return append(out, p.JSON...)
		}
		return rawjson.Append(out, textBlock, p.JSON)
	}
	return append(out, '}')
}

// Args returns the arguments of a call as the object that Anthropic requires. A value that is not an object is
// wrapped in one; empty arguments are an empty object.
func Args(args string) []byte {
	raw := []byte(args)
	if at := rawjson.SkipSpace(raw, 0); at == len(raw) {
		return []byte("{}")
	} else if raw[at] == '{' && json.Valid(raw) {
		return raw
	}
	return rawjson.Append(nil, `{"arguments":?}`, args)
}

// Speaker returns the role that role has in a request: tools, and roles that an API does
// not know, speak as the user.
func Speaker(role core.Role) core.Role {
	switch role {
	case core.RoleSystem, core.RoleAssistant:
		return role
	case core.RoleUser, core.RoleTool:
	}
	return core.RoleUser
}

// Messages returns turns as Anthropic sends them: the results of a turn's calls are
// at the head of the user's next message.
func Messages(turns []Turn) []Turn {
	out := make([]Turn, 0, len(turns))
	var results []core.ToolResult
	id := ""
	for _, t := range turns {
		if len(results) > 0 {
			parts := resultParts(results)
			if t.Role == core.RoleUser {
				t.Parts = append(parts, t.Parts...)
			} else {
				out = append(out, Turn{ID: id, Role: core.RoleUser, Parts: parts})
			}
		}
		results, id = t.Results, t.ID
		out = append(out, t)
	}
	if len(results) > 0 {
		out = append(out, Turn{ID: id, Role: core.RoleUser, Parts: resultParts(results)})
	}
	return out
}

// resultParts returns results as parts.
func resultParts(results []core.ToolResult) []core.Part {
	return plain.Each(results, func(r core.ToolResult) core.Part { return r })
}

// EncodeAnthropic returns a conversation as Anthropic's API takes it: the system prompt and
// the messages.
func EncodeAnthropic(in *Input) (system string, messages []json.RawMessage) {
	turns, system := Anthropic.Turns(in)
	messages = append(messages, plain.Each(Messages(turns), func(t Turn) json.RawMessage { return AnthropicMessage(t.Role, t.Parts) })...)
	return system, messages
}

// ImageOf returns the image that url refers to, or holds if it is a data URL.
func ImageOf(url string) core.Image {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return core.Image{URL: url}
	}
	kind, data, ok := strings.Cut(rest, ";base64,")
	if !ok || kind == "" || data == "" || strings.Contains(kind, ";") {
		return core.Image{URL: url}
	}
	return core.Image{MediaType: kind, Data: data}
}

// ImageURL is the opposite of ImageOf.
func ImageURL(img core.Image) string {
	if img.URL != "" {
		return img.URL
	}
	return "data:" + img.MediaType + ";base64," + img.Data
}

// imageTypes are the kinds of images that both vendors take, and how each begins in
// base64.
var imageTypes = []struct{ mediaType, magic string }{
	{"image/png", "iVBORw0KGgo"},
	{"image/jpeg", "/9j/"},
	{"image/gif", "R0lGOD"},
	{"image/webp", "UklGR"},
}

// Sendable returns img as a vendor's API would take it; false if none would.
func Sendable(img core.Image) (core.Image, bool) {
	if img.URL != "" {
		return img, strings.HasPrefix(img.URL, "https://") || strings.HasPrefix(img.URL, "http://")
	}
	if _, err := base64.StdEncoding.DecodeString(img.Data); err != nil || img.Data == "" {
		return img, false
	}
	for _, t := range imageTypes {
		if img.MediaType == t.mediaType || img.MediaType == "" && strings.HasPrefix(img.Data, t.magic) {
			img.MediaType = t.mediaType
			return img, true
		}
	}
	return img, false
}

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
		messages = append(messages, plain.Each(OpenAIMessages(role, parts), func(raw []byte) json.RawMessage { return raw })...)
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
