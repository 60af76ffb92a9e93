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
func decodeContent(raw []byte) ([]core.Part, *SyntaxError) {
	switch {
	case raw == nil || isNull(raw):
		return nil, nil
	case isString(raw):
		return textParts(raw), nil
	case !isArray(raw):
		return nil, &SyntaxError{Found: describe(raw) + ` as "content"`, Want: "a string or an array of blocks"}
	}
	var parts []core.Part
	for block := range elements(raw) {
		p, err := decodeBlock(block)
		if err != nil {
			err.Offset += offsetIn(raw, block)
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

// decodeBlock returns what the block raw says. A block of a kind that the package does
// not know is opaque; so is one nested where it cannot stand.
func decodeBlock(raw []byte) (core.Part, *SyntaxError) {
	if !isObject(raw) {
		return nil, &SyntaxError{Found: describe(raw) + " as a block of content", Want: "an object"}
	}
	kind := text(field(raw, "type"))
	switch kind {
	case "text":
		s := field(raw, "text")
		if !isString(s) {
			return nil, missing(raw, kind, "text", "a string")
		}
		return core.Text(unquote(s)), nil
	case "tool_use":
		return decodeToolUse(raw)
	case "tool_result":
		return decodeToolResult(raw)
	case "image":
		if img, ok := decodeSource(field(raw, "source")); ok {
			return img, nil
		}
	case "thinking":
		return core.Reasoning{Text: text(field(raw, "thinking")), Signature: text(field(raw, "signature"))}, nil
	case "redacted_thinking":
		return core.Reasoning{Encrypted: text(field(raw, "data"))}, nil
	case "":
		return nil, missing(raw, "", "type", "a string")
	}
	return core.Opaque{Kind: kind, JSON: string(raw)}, nil
}

// missing reports that the block raw lacks a field or has it with another type.
func missing(raw []byte, kind, name, want string) *SyntaxError {
	e := &SyntaxError{Found: "a block", Want: want}
	if kind != "" {
		e.Found = "a " + kind + " block"
	}
	if v := field(raw, name); v != nil {
		e.Offset = offsetIn(raw, v)
		e.Found += ` with ` + describe(v) + ` as "` + name + `"`
	} else {
		e.Found += ` without "` + name + `"`
	}
	return e
}

func decodeToolUse(raw []byte) (core.Part, *SyntaxError) {
	var call core.ToolCall
	var id, name bool
	for k, v := range fields(raw) {
		switch string(k) {
		case "id":
			call.ID, id = text(v), isString(v)
		case "name":
			call.Name, name = text(v), isString(v)
		case "input":
			call.Args = string(v)
		}
	}
	switch {
	case !id:
		return nil, missing(raw, "tool_use", "id", "a string")
	case !name:
		return nil, missing(raw, "tool_use", "name", "a string")
	}
	return call, nil
}

func decodeToolResult(raw []byte) (core.Part, *SyntaxError) {
	var r core.ToolResult
	var id bool
	var content []byte
	for k, v := range fields(raw) {
		switch string(k) {
		case "tool_use_id":
			r.CallID, id = text(v), isString(v)
		case "is_error":
			r.IsError = isTrue(v)
		case "content":
			content = v
		}
	}
	if !id {
		return nil, missing(raw, "tool_result", "tool_use_id", "a string")
	}
	switch {
	case content == nil || isNull(content):
	case isString(content):
		r.Content = textParts(content)
	case isArray(content):
		for block := range elements(content) {
			p, err := decodeInner(block)
			if err != nil {
				err.Offset += offsetIn(raw, block)
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
func decodeInner(raw []byte) (core.Part, *SyntaxError) {
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
func encodeContent(parts []core.Part) []byte {
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
		out = appendBlock(out, p)
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
