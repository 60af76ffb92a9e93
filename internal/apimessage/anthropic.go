package apimessage

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/condensehq/condense/core"
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
	parts := make([]core.Part, len(results))
	for i, r := range results {
		parts[i] = r
	}
	return parts
}

// EncodeAnthropic returns a conversation as Anthropic's API takes it: the system prompt and
// the messages.
func EncodeAnthropic(in *Input) (system string, messages []json.RawMessage) {
	turns, system := Anthropic.Turns(in)
	for _, t := range Messages(turns) {
		messages = append(messages, AnthropicMessage(t.Role, t.Parts))
	}
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
