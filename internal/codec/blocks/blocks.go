// Package blocks reads and patches Anthropic's messages and content blocks, which several
// tools store unchanged. A block is one part and a part is one block, so either is found by
// the other's index.
package blocks

import (
	"bytes"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
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

// decodeBlock returns the part that the block raw is. A block of an unknown kind is opaque; so
// is one nested where it is not allowed.
func decodeBlock(raw []byte) (core.Part, *syntax.Error) {
	if !rawjson.IsObject(raw) {
		return nil, &syntax.Error{Found: syntax.Describe(raw) + " as a block of content", Want: "an object"}
	}
	var b block
	rawjson.Pick(raw, blockFields, &b.kind, &b.text, &b.id, &b.name, &b.input, &b.callID, &b.content, &b.isError, &b.source,
		&b.thinking, &b.signature, &b.data)
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

// PatchMessage returns the message was, in Anthropic's shape, with its content changed to
// parts. All other fields of the message, the blocks that did not change, and the other fields
// of blocks that did are kept byte for byte.
func PatchMessage(was []byte, parts []core.Part) []byte {
	return rawjson.SetField(was, "content", patchContent(rawjson.Field(was, "content"), parts))
}

// patchContent returns the value was of "content" changed to parts.
func patchContent(was []byte, parts []core.Part) []byte {
	if !rawjson.IsArray(was) {
		return apimessage.BlockContent(parts)
	}
	var blocks [][]byte
	var old []core.Part
	for block := range rawjson.Elements(was) {
		p, err := decodeBlock(block)
		if err != nil {
			p = nil // equal to nothing, so it is dropped
		}
		blocks, old = append(blocks, block), append(old, p)
	}
	out := []byte{'['}
	match := Match(old, parts)
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		if j := match[i]; j >= 0 {
			out = append(out, patchBlock(blocks[j], old[j], p)...)
		} else {
			out = apimessage.AppendBlock(out, p)
		}
	}
	return append(out, ']')
}

// Match returns for each part of parts the index of its counterpart in old, or -1: the equal
// part, or the call or result with the same ID, or the text at the same position. No old part
// is used twice, and one that is nil never.
func Match(old, parts []core.Part) []int {
	equal := make(map[any][]int, len(old)) // by identity
	for j, o := range old {
		if o != nil {
			equal[identity(o)] = append(equal[identity(o)], j)
		}
	}
	match := make([]int, len(parts))
	used := make([]bool, len(old))
	for i, p := range parts {
		match[i] = -1
		key := identity(p)
		for n, j := range equal[key] {
			if core.EqualParts(old[j:j+1], parts[i:i+1]) {
				match[i], used[j] = j, true
				equal[key] = slices.Delete(equal[key], n, n+1)
				break
			}
		}
	}
	revised := make(map[any][]int, len(old)) // calls and results, which have IDs
	for j, o := range old {
		if id := reference(o); id != nil && !used[j] {
			revised[id] = append(revised[id], j)
		}
	}
	for i, p := range parts {
		if match[i] >= 0 {
			continue
		}
		if id := reference(p); id != nil && len(revised[id]) > 0 {
			match[i], revised[id] = revised[id][0], revised[id][1:]
		} else if _, ok := p.(core.Text); ok && i < len(old) && !used[i] {
			if _, ok := old[i].(core.Text); ok {
				match[i] = i
			}
		}
	}
	return match
}

// identity is the same for equal parts and usually differs for others.
func identity(p core.Part) any {
	if r, ok := p.(core.ToolResult); ok {
		return reference(r) // not comparable
	}
	return p
}

// reference identifies a call or a result; it is nil for other parts.
func reference(p core.Part) any {
	type call struct{ id string }
	type result struct{ id string }
	switch p := p.(type) {
	case core.ToolCall:
		return call{p.ID}
	case core.ToolResult:
		return result{p.CallID}
	case core.Text, core.Image, core.Reasoning, core.Opaque:
	}
	return nil
}

// patchBlock returns the block was, which is old, changed to p.
func patchBlock(was []byte, old, p core.Part) []byte {
	switch p := p.(type) {
	case core.Text:
		if o, ok := old.(core.Text); ok && o != p {
			// Citations point into the text by position.
			return rawjson.SetField(rawjson.DropField(was, "citations"), "text", rawjson.AppendQuote(nil, string(p)))
		}
	case core.ToolCall:
		o, ok := old.(core.ToolCall)
		if ok && o.Name != p.Name {
			was = rawjson.SetField(was, "name", rawjson.AppendQuote(nil, p.Name))
		}
		if ok && o.Args != p.Args {
			was = rawjson.SetField(was, "input", apimessage.Args(p.Args))
		}
	case core.ToolResult:
		o, ok := old.(core.ToolResult)
		if ok && !core.EqualParts(o.Content, p.Content) {
			was = rawjson.SetField(was, "content", patchContent(rawjson.Field(was, "content"), p.Content))
		}
		if ok && o.IsError != p.IsError {
			value := "false"
			if p.IsError {
				value = "true"
			}
			was = rawjson.SetField(was, "is_error", []byte(value))
		}
	case core.Image, core.Reasoning, core.Opaque: // they have no counterpart unless they are equal
	}
	return bytes.Clone(was)
}
