package transcript

import (
	"encoding/json"

	"github.com/condensehq/condense/core"
)

// This file holds Anthropic's content blocks, which several tools store as they are. A
// block is one part and a part is one block, so that either can be found by the other's
// index.

// decodeContent returns the parts of the value of "content": a string, an array of
// blocks, null or nothing. The offset in an error counts from the start of raw.
func decodeContent(raw []byte) ([]core.Part, *fault) {
	return decodeList(raw, "a string or an array of blocks", decodeBlock)
}

// decodeList is decodeContent for a vendor's own kind of element.
func decodeList(raw []byte, want string, decode func([]byte) (core.Part, *fault)) ([]core.Part, *fault) {
	switch {
	case raw == nil || isNull(raw):
		return nil, nil
	case isString(raw):
		return textParts(raw), nil
	case !isArray(raw):
		return nil, &fault{Found: describe(raw) + ` as "content"`, Want: want}
	}
	var parts []core.Part
	for element := range elements(raw) {
		p, err := decode(element)
		if err != nil {
			err.Offset += offsetIn(raw, element)
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// textParts returns the string raw as parts; an empty one says nothing.
func textParts(raw []byte) []core.Part {
	if s := unquote(raw); s != "" {
		return []core.Part{core.Text(s)}
	}
	return nil
}

// A block is the raw fields of a block that say something.
type block struct {
	kind, text, id, name, input, callID, content []byte
	isError, source, thinking, signature, data   []byte
}

func splitBlock(raw []byte) block {
	var b block
	for k, v := range fields(raw) {
		switch string(k) {
		case "type":
			b.kind = v
		case "text":
			b.text = v
		case "id":
			b.id = v
		case "name":
			b.name = v
		case "input":
			b.input = v
		case "tool_use_id":
			b.callID = v
		case "content":
			b.content = v
		case "is_error":
			b.isError = v
		case "source":
			b.source = v
		case "thinking":
			b.thinking = v
		case "signature":
			b.signature = v
		case "data":
			b.data = v
		}
	}
	return b
}

// decodeBlock returns what the block raw says. A block of a kind that the package does
// not know is opaque; so is one nested where it cannot stand.
func decodeBlock(raw []byte) (core.Part, *fault) {
	if !isObject(raw) {
		return nil, &fault{Found: describe(raw) + " as a block of content", Want: "an object"}
	}
	b := splitBlock(raw)
	kind := text(b.kind)
	switch kind {
	case "text":
		if !isString(b.text) {
			return nil, missing(raw, kind, "text", "a string")
		}
		return core.Text(unquote(b.text)), nil
	case "tool_use":
		switch {
		case !isString(b.id):
			return nil, missing(raw, kind, "id", "a string")
		case !isString(b.name):
			return nil, missing(raw, kind, "name", "a string")
		}
		return core.ToolCall{ID: unquote(b.id), Name: unquote(b.name), Args: string(b.input)}, nil
	case "tool_result":
		return decodeToolResult(raw, b)
	case "image":
		if img, ok := decodeSource(b.source); ok {
			return img, nil
		}
	case "thinking":
		return core.Reasoning{Text: text(b.thinking), Signature: text(b.signature)}, nil
	case "redacted_thinking":
		return core.Reasoning{Encrypted: text(b.data)}, nil
	case "":
		return nil, missing(raw, "", "type", "a string that is not empty")
	}
	return core.Opaque{Kind: kind, JSON: string(raw)}, nil
}

func decodeToolResult(raw []byte, b block) (core.Part, *fault) {
	if !isString(b.callID) {
		return nil, missing(raw, "tool_result", "tool_use_id", "a string")
	}
	r := core.ToolResult{CallID: unquote(b.callID), IsError: isTrue(b.isError)}
	switch {
	case b.content == nil || isNull(b.content):
	case isString(b.content):
		r.Content = textParts(b.content)
	case isArray(b.content):
		for inner := range elements(b.content) {
			p, err := decodeInner(inner)
			if err != nil {
				err.Offset += offsetIn(raw, inner)
				return nil, err
			}
			r.Content = append(r.Content, p)
		}
	default:
		return nil, missing(raw, "tool_result", "content", "a string or an array of blocks")
	}
	return r, nil
}

// decodeInner decodes a block inside a tool result, where only text and images are
// more than opaque.
func decodeInner(raw []byte) (core.Part, *fault) {
	p, err := decodeBlock(raw)
	if err != nil {
		return nil, err
	}
	switch p.(type) {
	case core.ToolCall, core.ToolResult, core.Reasoning:
		return core.Opaque{Kind: text(field(raw, "type")), JSON: string(raw)}, nil
	case core.Text, core.Image, core.Opaque:
	}
	return p, nil
}

// decodeSource decodes the source of an image; false if it is of another kind, such as
// a reference to an uploaded file.
func decodeSource(raw []byte) (core.Image, bool) {
	var kind string
	var img core.Image
	for k, v := range fields(raw) {
		switch string(k) {
		case "type":
			kind = text(v)
		case "media_type":
			img.MediaType = text(v)
		case "data":
			img.Data = text(v)
		case "url":
			img.URL = text(v)
		}
	}
	switch {
	case kind == "base64" && img.Data != "" && img.URL == "":
		return img, true
	case kind == "url" && img.URL != "" && img.Data == "":
		return img, true
	}
	return core.Image{}, false
}

// encodeContent returns parts as the value of "content": a string if they are one text,
// else an array of blocks.
func encodeContent(parts []core.Part) []byte { return encodeList(parts, appendBlock) }

// encodeList is encodeContent for a vendor's own kind of element.
func encodeList(parts []core.Part, add func([]byte, core.Part) []byte) []byte {
	if len(parts) == 1 {
		if t, ok := parts[0].(core.Text); ok {
			return appendQuoted(nil, string(t))
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

// appendBlock appends p as a block. Opaque parts are written as they are.
func appendBlock(out []byte, p core.Part) []byte {
	switch p := p.(type) {
	case core.Text:
		out = append(out, `{"type":"text","text":`...)
		out = appendQuoted(out, string(p))
	case core.ToolCall:
		out = append(out, `{"type":"tool_use","id":`...)
		out = appendQuoted(out, p.ID)
		out = append(out, `,"name":`...)
		out = appendQuoted(out, p.Name)
		out = append(out, `,"input":`...)
		out = append(out, argsObject(p.Args)...)
	case core.ToolResult:
		out = append(out, `{"type":"tool_result","tool_use_id":`...)
		out = appendQuoted(out, p.CallID)
		if len(p.Content) > 0 {
			out = append(out, `,"content":`...)
			out = append(out, encodeContent(p.Content)...)
		}
		if p.IsError {
			out = append(out, `,"is_error":true`...)
		}
	case core.Image:
		out = append(out, `{"type":"image","source":`...)
		if p.URL != "" {
			out = append(out, `{"type":"url","url":`...)
			out = appendQuoted(out, p.URL)
		} else {
			out = append(out, `{"type":"base64","media_type":`...)
			out = appendQuoted(out, p.MediaType)
			out = append(out, `,"data":`...)
			out = appendQuoted(out, p.Data)
		}
		out = append(out, '}')
	case core.Reasoning:
		if p.Encrypted != "" {
			out = append(out, `{"type":"redacted_thinking","data":`...)
			out = appendQuoted(out, p.Encrypted)
			break
		}
		out = append(out, `{"type":"thinking","thinking":`...)
		out = appendQuoted(out, p.Text)
		out = append(out, `,"signature":`...)
		out = appendQuoted(out, p.Signature)
	case core.Opaque:
		if isObject([]byte(p.JSON)) && json.Valid([]byte(p.JSON)) {
			return append(out, p.JSON...)
		}
		out = append(out, `{"type":"text","text":`...)
		out = appendQuoted(out, p.JSON)
	}
	return append(out, '}')
}

// argsObject returns the arguments of a call as the object that Anthropic wants. What
// is no object is wrapped in one; nothing at all is an empty one.
func argsObject(args string) []byte {
	raw := []byte(args)
	if at := skipSpace(raw, 0); at == len(raw) {
		return []byte("{}")
	} else if raw[at] == '{' && json.Valid(raw) {
		return raw
	}
	return append(appendQuoted([]byte(`{"arguments":`), args), '}')
}
