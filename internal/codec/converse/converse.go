// Package converse reads and writes requests of Amazon Bedrock's Converse API, and arrays of its messages.
//
// Source: the Smithy model of the service, bedrock-runtime-2023-09-30.
package converse

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/codec/request"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "bedrock-converse",
	Doc:     "Amazon Bedrock Converse: an array of messages, or a request with messages, system, toolConfig …",
	Request: true,
	Detect:  detect,
	Read:    read,
	Write:   write,
	Convert: convertFile,
}

// A block is named by its only member.
const (
	textBlock      = "text"
	callBlock      = "toolUse"
	resultBlock    = "toolResult"
	reasoningBlock = "reasoningContent"
	imageBlock     = "image"
	jsonBlock      = "json" // in results
	pointBlock     = "cachePoint"
)

var kinds = rawjson.Set(textBlock, callBlock, resultBlock, reasoningBlock, imageBlock, pointBlock, "document", "video", "audio",
	"guardContent", "citationsContent", "searchResult")

func detect(data []byte) bool {
	messages := data[rawjson.SkipSpace(data, 0):]
	if rawjson.IsObject(messages) {
		messages = rawjson.Field(messages, "messages")
	}
	for m := range rawjson.Elements(messages) {
		if !rawjson.IsObject(m) || roles[rawjson.Text(rawjson.Field(m, "role"))] == "" {
			return false
		}
		for b := range rawjson.Elements(rawjson.Field(m, "content")) {
			return rawjson.IsObject(b) && rawjson.Field(b, "type") == nil && kinds[kindOf(b)]
		}
		return false
	}
	return false
}

var roles = map[string]core.Role{"user": core.RoleUser, "assistant": core.RoleAssistant}

// kindOf returns the name of the first member of a block.
func kindOf(raw []byte) string {
	for k := range rawjson.Fields(raw) {
		return string(k)
	}
	return ""
}

func read(data []byte, f *codec.File) error {
	if err := request.ReadArray(f, data, "messages", decode); err != nil {
		return err
	}
	var system, tools, id, inference []byte
	rawjson.Pick(data, []string{"system", "toolConfig", "modelId", "inferenceConfig"}, &system, &tools, &id, &inference)
	var texts []core.Part
	for b := range rawjson.Elements(system) {
		if text := rawjson.Field(b, textBlock); rawjson.IsString(text) {
			texts = append(texts, core.Text(rawjson.Text(text)))
		}
	}
	f.System, f.Model, f.MaxOutput = blocks.Join(texts), rawjson.Text(id), rawjson.Int(rawjson.Field(inference, "maxTokens"))
	if tools = rawjson.Field(tools, "tools"); rawjson.IsArray(tools) {
		f.Tools = slices.Clip(tools)
	}
	return nil
}

func decode(raw []byte) (core.Message, *syntax.Error) {
	var m core.Message
	if !rawjson.IsObject(raw) {
		return m, &syntax.Error{Found: syntax.Describe(raw), Want: "an object with role and content"}
	}
	role := rawjson.Field(raw, "role")
	if m.Role = roles[rawjson.Text(role)]; m.Role == "" {
		return m, syntax.WrongRole(raw, role, "user or assistant")
	}
	content := rawjson.Field(raw, "content")
	if !rawjson.IsArray(content) {
		return m, syntax.Missing(raw, "message", "content", "an array")
	}
	for b := range rawjson.Elements(content) {
		part, err := decodeBlock(b)
		if err != nil {
			err.Offset += rawjson.Offset(raw, b)
			return m, err
		}
		if part != nil {
			m.Parts = append(m.Parts, part)
		}
	}
	return m, nil
}

// decodeBlock returns the part that a block is; nil for a cache marker.
func decodeBlock(raw []byte) (core.Part, *syntax.Error) {
	if !rawjson.IsObject(raw) {
		return nil, &syntax.Error{Found: syntax.Describe(raw) + " as a block of content", Want: "an object"}
	}
	kind := kindOf(raw)
	value := rawjson.Field(raw, kind)
	field := func(name string) []byte { return rawjson.Field(value, name) }
	switch kind {
	case pointBlock:
		return nil, nil //nolint:nilnil // no content
	case textBlock:
		if !rawjson.IsString(value) {
			return nil, syntax.Missing(raw, kind, "text", "a string")
		}
		return core.Text(rawjson.Unquote(value)), nil
	case callBlock:
		id, name := field("toolUseId"), field("name")
		if !rawjson.IsString(id) || !rawjson.IsString(name) {
			return nil, syntax.Missing(raw, kind, "toolUseId", "a string, and one as name")
		}
		return core.ToolCall{ID: rawjson.Unquote(id), Name: rawjson.Unquote(name), Args: string(field("input"))}, nil
	case resultBlock:
		return decodeResult(raw, value)
	case reasoningBlock:
		text := field("reasoningText")
		return core.Reasoning{
			Text: rawjson.Text(rawjson.Field(text, "text")), Signature: rawjson.Text(rawjson.Field(text, "signature")),
			Encrypted: rawjson.Text(field("redactedContent")),
		}, nil
	case imageBlock:
		if data := rawjson.Text(rawjson.Field(field("source"), "bytes")); data != "" {
			return core.Image{MediaType: "image/" + rawjson.Text(field("format")), Data: data}, nil
		}
	}
	kind = cmp.Or(kind, "block")
	return core.Opaque{Kind: kind, JSON: string(raw)}, nil
}

func decodeResult(raw, value []byte) (core.Part, *syntax.Error) {
	id, content := rawjson.Field(value, "toolUseId"), rawjson.Field(value, "content")
	if !rawjson.IsString(id) {
		return nil, syntax.Missing(raw, resultBlock, "toolUseId", "a string")
	}
	r := core.ToolResult{CallID: rawjson.Unquote(id), IsError: rawjson.Text(rawjson.Field(value, "status")) == "error"}
	for b := range rawjson.Elements(content) {
		if rawjson.IsObject(b) && kindOf(b) == jsonBlock {
			r.Content = append(r.Content, core.Text(rawjson.Field(b, jsonBlock)))
			continue
		}
		part, err := decodeBlock(b)
		if err != nil {
			err.Offset += rawjson.Offset(raw, b)
			return nil, err
		}
		switch part.(type) {
		case nil:
			continue
		case core.ToolCall, core.ToolResult, core.Reasoning:
			part = core.Opaque{Kind: kindOf(b), JSON: string(b)}
		case core.Text, core.Image, core.Opaque:
		}
		r.Content = append(r.Content, part)
	}
	return r, nil
}

func write(f *codec.File, out *codec.Output) error {
	request.Write(f, out, f.View(), true, func(m *core.Message, was []byte) []byte {
		if was == nil {
			return encode(m.Role, m.Parts)
		}
		read, _ := f.Journal.Message(m.ID)
		var raw [][]byte // of the parts
		raw = append(raw, plain.Only(slices.Collect(rawjson.Elements(rawjson.Field(was, "content"))),
			func(b []byte) bool { return kindOf(b) != pointBlock })...)
		parts := make([][]byte, len(m.Parts))
		for i, j := range blocks.Match(read.Parts, m.Parts) {
			if j < 0 || j >= len(raw) {
				parts[i] = encodePart(m.Parts[i])
			} else {
				parts[i] = patch(raw[j], read.Parts[j], m.Parts[i])
			}
		}
		return rawjson.SetField(was, "content", rawjson.Array(parts))
	})
	return nil
}

// patch returns a block that was old, changed to p.
func patch(was []byte, old, p core.Part) []byte {
	if core.EqualParts([]core.Part{old}, []core.Part{p}) {
		return was
	}
	switch p := p.(type) {
	case core.Text:
		return rawjson.SetField(was, textBlock, rawjson.AppendQuote(nil, string(p)))
	case core.ToolCall:
		return rawjson.SetField(was, callBlock, rawjson.SetField(rawjson.Field(was, callBlock), "input", apimessage.Args(p.Args)))
	case core.ToolResult:
		inner := plain.Each(p.Content, encodePart)
		return rawjson.SetField(was, resultBlock, rawjson.SetField(rawjson.Field(was, resultBlock), "content", rawjson.Array(inner)))
	case core.Image, core.Reasoning, core.Opaque:
	}
	return encodePart(p)
}

func encode(role core.Role, parts []core.Part) []byte {
	raw := plain.Each(parts, encodePart)
	if len(raw) == 0 {
		raw = [][]byte{[]byte(`{"text":"(empty)"}`)}
	}
	speaker := core.RoleUser
	if role == core.RoleAssistant {
		speaker = role
	}
	return rawjson.Append(nil, `{"role":?,"content":?}`, string(speaker), rawjson.Array(raw))
}

// formats are the images that the API takes.
var formats = []string{"png", "jpeg", "gif", "webp"}

func encodePart(p core.Part) []byte {
	switch p := p.(type) {
	case core.Text:
		return rawjson.Append(nil, `{"text":?}`, string(p))
	case core.Reasoning:
		switch {
		case p.Encrypted != "":
			return rawjson.Append(nil, `{"reasoningContent":{"redactedContent":?}}`, p.Encrypted)
		case p.Signature != "":
			return rawjson.Append(nil, `{"reasoningContent":{"reasoningText":{"text":?,"signature":?}}}`, p.Text, p.Signature)
		}
		return rawjson.Append(nil, `{"reasoningContent":{"reasoningText":{"text":?}}}`, p.Text)
	case core.Image:
		if format := strings.TrimPrefix(p.MediaType, "image/"); p.Data != "" && slices.Contains(formats, format) {
			return rawjson.Append(nil, `{"image":{"format":?,"source":{"bytes":?}}}`, format, p.Data)
		}
		return rawjson.Append(nil, `{"text":?}`, apimessage.Note("image"))
	case core.ToolCall:
		return rawjson.Append(nil, `{"toolUse":{"toolUseId":?,"name":?,"input":?}}`, p.ID, p.Name, apimessage.Args(p.Args))
	case core.ToolResult:
		inner := plain.Each(p.Content, encodePart)
		status := "success"
		if p.IsError {
			status = "error"
		}
		return rawjson.Append(nil, `{"toolResult":{"toolUseId":?,"content":?,"status":?}}`, p.CallID, rawjson.Array(inner), status)
	case core.Opaque:
		if raw := []byte(p.JSON); json.Valid(raw) && rawjson.IsObject(raw) && kinds[kindOf(raw)] {
			return raw
		}
		return rawjson.Append(nil, `{"text":?}`, apimessage.Note(p.Kind))
	}
	return []byte(`{"text":"(empty)"}`)
}

// convertFile writes a request without its model, which is in the path.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	messages := plain.Each(apimessage.Messages(turns), func(m apimessage.Turn) []byte { return encode(m.Role, m.Parts) })
	raw := rawjson.Array(messages)
	if system != "" {
		raw = rawjson.Append(nil, `{"system":[{"text":?}],"messages":?}`, system, raw)
	}
	out.Add(raw, []byte{'\n'})
	return nil
}
