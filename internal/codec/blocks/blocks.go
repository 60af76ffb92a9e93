// Package blocks reads and patches Anthropic's messages and content blocks, which several
// tools store unchanged. A block is one part and a part is one block, so either is found by
// the other's index.
package blocks

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
)

// Decode returns the parts of the value of "content": a string, an array of
// blocks, null or nothing. The offset in an error counts from the start of raw.
func Decode(raw []byte) ([]core.Part, *syntax.Error) {
	return DecodeList(raw, "a string or an array of blocks", decodeBlock)
}

// DecodeList is [Decode] for the elements of another format.
func DecodeList(raw []byte, want string, decode func([]byte) (core.Part, *syntax.Error)) ([]core.Part, *syntax.Error) {
	switch {
	case raw == nil || rawjson.IsNull(raw):
		return nil, nil
	case rawjson.IsString(raw):
		return Text(raw), nil
	case !rawjson.IsArray(raw):
		return nil, &syntax.Error{Found: syntax.Describe(raw) + ` as "content"`, Want: want}
	}
	var parts []core.Part
	for element := range rawjson.Elements(raw) {
		p, err := decode(element)
		if err != nil {
			err.Offset += rawjson.Offset(raw, element)
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// Text returns the string raw as parts; an empty string has none.
func Text(raw []byte) []core.Part {
	if s := rawjson.Unquote(raw); s != "" {
		return []core.Part{core.Text(s)}
	}
	return nil
}

// A block is the raw fields of a block that a part is made of.
type block struct {
	kind, text, id, name, input, callID, content []byte
	isError, source, thinking, signature, data   []byte
}

var blockFields = []string{
	"type", "text", "id", "name", "input", "tool_use_id", "content", "is_error", "source", "thinking", "signature", "data",
}

func splitBlock(raw []byte) block {
	var b block
	rawjson.Pick(raw, blockFields, &b.kind, &b.text, &b.id, &b.name, &b.input, &b.callID, &b.content, &b.isError, &b.source,
		&b.thinking, &b.signature, &b.data)
	return b
}

// decodeBlock returns the part that the block raw is. A block of an unknown kind is opaque; so
// is one nested where it is not allowed.
func decodeBlock(raw []byte) (core.Part, *syntax.Error) {
	if !rawjson.IsObject(raw) {
		return nil, &syntax.Error{Found: syntax.Describe(raw) + " as a block of content", Want: "an object"}
	}
	b := splitBlock(raw)
	kind := rawjson.Text(b.kind)
	switch kind {
	case "text":
		if !rawjson.IsString(b.text) {
			return nil, syntax.Missing(raw, kind, "text", "a string")
		}
		return core.Text(rawjson.Unquote(b.text)), nil
	case "tool_use":
		switch {
		case !rawjson.IsString(b.id):
			return nil, syntax.Missing(raw, kind, "id", "a string")
		case !rawjson.IsString(b.name):
			return nil, syntax.Missing(raw, kind, "name", "a string")
		}
		return core.ToolCall{ID: rawjson.Unquote(b.id), Name: rawjson.Unquote(b.name), Args: string(b.input)}, nil
	case "tool_result":
		return decodeToolResult(raw, b)
	case "image":
		if img, ok := decodeSource(b.source); ok {
			return img, nil
		}
	case "thinking":
		return core.Reasoning{Text: rawjson.Text(b.thinking), Signature: rawjson.Text(b.signature)}, nil
	case "redacted_thinking":
		return core.Reasoning{Encrypted: rawjson.Text(b.data)}, nil
	case "":
		return nil, syntax.Missing(raw, "", "type", "a string that is not empty")
	}
	return core.Opaque{Kind: kind, JSON: string(raw)}, nil
}

func decodeToolResult(raw []byte, b block) (core.Part, *syntax.Error) {
	if !rawjson.IsString(b.callID) {
		return nil, syntax.Missing(raw, "tool_result", "tool_use_id", "a string")
	}
	r := core.ToolResult{CallID: rawjson.Unquote(b.callID), IsError: rawjson.IsTrue(b.isError)}
	switch {
	case b.content == nil || rawjson.IsNull(b.content):
	case rawjson.IsString(b.content):
		r.Content = Text(b.content)
	case rawjson.IsArray(b.content):
		for inner := range rawjson.Elements(b.content) {
			p, err := decodeInner(inner)
			if err != nil {
				err.Offset += rawjson.Offset(raw, inner)
				return nil, err
			}
			r.Content = append(r.Content, p)
		}
	default:
		return nil, syntax.Missing(raw, "tool_result", "content", "a string or an array of blocks")
	}
	return r, nil
}

// decodeInner decodes a block inside a tool result. All but text and images are opaque there.
func decodeInner(raw []byte) (core.Part, *syntax.Error) {
	p, err := decodeBlock(raw)
	if err != nil {
		return nil, err
	}
	switch p.(type) {
	case core.ToolCall, core.ToolResult, core.Reasoning:
		return core.Opaque{Kind: rawjson.Text(rawjson.Field(raw, "type")), JSON: string(raw)}, nil
	case core.Text, core.Image, core.Opaque:
	}
	return p, nil
}

// decodeSource decodes the source of an image. It reports false for other kinds, such as a
// reference to an uploaded file.
func decodeSource(raw []byte) (core.Image, bool) {
	var kind, media, data, url []byte
	rawjson.Pick(raw, []string{"type", "media_type", "data", "url"}, &kind, &media, &data, &url)
	img := core.Image{MediaType: rawjson.Text(media), Data: rawjson.Text(data), URL: rawjson.Text(url)}
	switch of := rawjson.Text(kind); {
	case of == "base64" && img.Data != "" && img.URL == "":
		return img, true
	case of == "url" && img.URL != "" && img.Data == "":
		return img, true
	}
	return core.Image{}, false
}

// DecodeMessage returns a message in Anthropic's form. Roles are the API's, including "system". The offset in an
// error counts from the start of raw.
func DecodeMessage(raw []byte) (core.Message, *syntax.Error) {
	var m core.Message
	if !rawjson.IsObject(raw) {
		return m, &syntax.Error{Found: syntax.Describe(raw), Want: "an object with role and content"}
	}
	var role, content, id []byte
	rawjson.Pick(raw, []string{"role", "content", "id", "uuid"}, &role, &content, &id, &id)
	m.ID = rawjson.Text(id)
	switch s := rawjson.Text(role); s {
	case "user", "assistant", "system":
		m.Role = core.Role(s)
	default:
		return m, syntax.WrongRole(raw, role, "user or assistant")
	}
	if content == nil {
		return m, syntax.NoContent()
	}
	parts, err := Decode(content)
	if err != nil {
		err.Offset += rawjson.Offset(raw, content)
		return m, err
	}
	m.Parts = parts
	return m, nil
}

// Join returns the texts among parts, separated by empty lines.
func Join(parts []core.Part) string {
	var all []string
	for _, p := range parts {
		if t, ok := p.(core.Text); ok && t != "" {
			all = append(all, string(t))
		}
	}
	return strings.Join(all, "\n\n")
}

// OrEmpty returns the string raw, or an empty string if it is something else.
func OrEmpty(raw []byte) []byte {
	if rawjson.IsString(raw) {
		return raw
	}
	return []byte(`""`)
}
