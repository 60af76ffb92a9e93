// Package openai reads and writes messages of OpenAI's Chat Completions API.
package openai

import (
	"bytes"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/codec/request"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "openai",
	Doc:     "OpenAI Chat Completions: an array of messages, or a request object with messages, tools …",
	Vendor:  codec.OpenAI,
	Request: true,
	Detect:  func(data []byte) bool { return request.VendorOf(data) == codec.OpenAI },
	Read:    read,
	Write:   write,
	Convert: convertFile,
}

func read(data []byte, f *codec.File) error {
	if err := request.ReadArray(f, data, "messages", decode); err != nil {
		return err
	}
	for k, v := range rawjson.Fields(data) {
		switch string(k) {
		case "tools", "functions":
			if !rawjson.IsNull(v) {
				f.Tools = slices.Clip(v)
			}
		case "model":
			f.Model = rawjson.Text(v)
		case "max_completion_tokens":
			f.MaxOutput = rawjson.Int(v)
		case "max_tokens": // its older name
			if f.MaxOutput == 0 {
				f.MaxOutput = rawjson.Int(v)
			}
		case "system": // some tools keep the prompt apart from OpenAI's messages
			f.System = rawjson.Text(v)
		}
	}
	return nil
}

func write(f *codec.File, out *codec.Output) error {
	request.Write(f, out, f.View(), true, func(m *core.Message, was []byte) []byte {
		if was != nil {
			return patch(was, m.Parts)
		}
		return joinRecords(apimessage.OpenAIMessages(m.Role, m.Parts))
	})
	return nil
}

// roleOf maps OpenAI's roles to ours.
var roleOf = map[string]core.Role{
	"system":    core.RoleSystem,
	"developer": core.RoleSystem, // the name for newer models
	"user":      core.RoleUser,
	"assistant": core.RoleAssistant,
	"tool":      core.RoleTool,
	"function":  core.RoleTool, // before there were parallel calls
}

// fields are the raw fields of a message.
type fields struct {
	role, id, name, callID             []byte
	content, refusal, reasoning, audio []byte
	images                             []byte // that the model made, of OpenRouter
	toolCalls, functionCall            []byte
	reasoningField                     string // the server's name for it
}

// messageFields are those fields. DeepSeek and compatible servers write reasoning_content, OpenRouter and vLLM reasoning.
var messageFields = []string{
	"role", "id", "name", "tool_call_id", "content", "refusal", "audio", "images", "tool_calls", "function_call",
	"reasoning_content", "reasoning",
}

func split(raw []byte) fields {
	var w fields
	var other []byte
	rawjson.Pick(raw, messageFields, &w.role, &w.id, &w.name, &w.callID, &w.content, &w.refusal, &w.audio, &w.images, &w.toolCalls,
		&w.functionCall, &w.reasoning, &other)
	if w.reasoningField = messageFields[len(messageFields)-2]; w.reasoning == nil {
		w.reasoning, w.reasoningField = other, messageFields[len(messageFields)-1]
	}
	return w
}

// decode returns a message. The order of its parts is: reasoning, content, refusal, audio, images, calls.
func decode(raw []byte) (core.Message, *syntax.Error) {
	var m core.Message
	if !rawjson.IsObject(raw) {
		return m, &syntax.Error{Found: syntax.Describe(raw), Want: "an object with role and content"}
	}
	w := split(raw)
	role, ok := roleOf[rawjson.Text(w.role)]
	if !ok {
		return m, syntax.WrongRole(raw, w.role, "system, developer, user, assistant, tool or function")
	}
	m.Role, m.ID = role, rawjson.Text(w.id)
	if !slices.ContainsFunc([][]byte{w.content, w.toolCalls, w.functionCall, w.refusal, w.audio, w.images, w.reasoning}, notNil) {
		return m, syntax.NoContent()
	}
	content, err := decodeContent(w.content)
	if err != nil {
		err.Offset += rawjson.Offset(raw, w.content)
		return m, err
	}
	if role == core.RoleTool {
		r := core.ToolResult{CallID: rawjson.Text(w.callID), Content: content}
		if w.callID == nil && rawjson.Text(w.role) == "function" {
			r.CallID = functionID(rawjson.Text(w.name))
		} else if !rawjson.IsString(w.callID) {
			return m, &syntax.Error{Found: `a tool message without "tool_call_id"`, Want: "the ID of the call that it answers"}
		}
		m.Parts = []core.Part{r}
		return m, nil
	}
	if s := rawjson.Text(w.reasoning); s != "" {
		m.Parts = append(m.Parts, core.Reasoning{Text: s})
	}
	m.Parts = append(m.Parts, content...)
	if s := rawjson.Text(w.refusal); s != "" {
		m.Parts = append(m.Parts, core.Text(s))
	}
	if rawjson.IsObject(w.audio) {
		m.Parts = append(m.Parts, core.Opaque{Kind: "audio", JSON: string(w.audio)})
	}
	if rawjson.IsArray(w.images) {
		m.Parts = append(m.Parts, core.Opaque{Kind: "images", JSON: string(w.images)})
	}
	for call := range rawjson.Elements(w.toolCalls) {
		c, err := decodeCall(call)
		if err != nil {
			err.Offset += rawjson.Offset(raw, call)
			return m, err
		}
		m.Parts = append(m.Parts, c)
	}
	if rawjson.IsObject(w.functionCall) {
		name := rawjson.Text(rawjson.Field(w.functionCall, "name"))
		m.Parts = append(m.Parts, core.ToolCall{ID: functionID(name), Name: name, Args: arguments(w.functionCall)})
	}
	return m, nil
}

func notNil(raw []byte) bool { return raw != nil }

// functionID is the ID of a function call from the time before calls had IDs: each was
// answered at once, by name.
func functionID(name string) string { return "function:" + name }

// decodeContent returns one part for each part of raw. An empty string is none.
func decodeContent(raw []byte) ([]core.Part, *syntax.Error) {
	return blocks.DecodeList(raw, "a string, an array of parts, or null", decodePart)
}

func decodePart(raw []byte) (core.Part, *syntax.Error) {
	if rawjson.IsString(raw) { // some servers accept a string
		return core.Text(rawjson.Unquote(raw)), nil
	}
	if !rawjson.IsObject(raw) {
		return nil, &syntax.Error{Found: syntax.Describe(raw) + " as a part of content", Want: "an object"}
	}
	kind := rawjson.Text(rawjson.Field(raw, "type"))
	switch kind {
	case "text", "refusal":
		s := rawjson.Field(raw, kind)
		if !rawjson.IsString(s) {
			return nil, syntax.Missing(raw, kind, kind, "a string")
		}
		return core.Text(rawjson.Unquote(s)), nil
	case "image_url":
		v := rawjson.Field(raw, "image_url")
		if rawjson.IsObject(v) {
			v = rawjson.Field(v, "url")
		}
		if !rawjson.IsString(v) {
			return nil, syntax.Missing(raw, kind, "image_url", `an object with "url"`)
		}
		return apimessage.ImageOf(rawjson.Unquote(v)), nil
	case "":
		return nil, syntax.Missing(raw, "", "type", "a string")
	}
	return core.Opaque{Kind: kind, JSON: string(raw)}, nil
}

func decodeCall(raw []byte) (core.Part, *syntax.Error) {
	if !rawjson.IsObject(raw) {
		return nil, &syntax.Error{Found: syntax.Describe(raw) + " as a tool call", Want: "an object"}
	}
	c := core.ToolCall{ID: rawjson.Text(rawjson.Field(raw, "id"))}
	if f := rawjson.Field(raw, "custom"); rawjson.IsObject(f) {
		c.Name, c.Args = rawjson.Text(rawjson.Field(f, "name")), rawjson.Text(rawjson.Field(f, "input"))
		return c, nil
	}
	f := rawjson.Field(raw, "function")
	if !rawjson.IsObject(f) {
		return nil, &syntax.Error{Found: `a tool call without "function"`, Want: "an object with name and arguments"}
	}
	c.Name, c.Args = rawjson.Text(rawjson.Field(f, "name")), arguments(f)
	return c, nil
}

// arguments returns the arguments of the call raw: the text of a string, or the JSON that a
// server sent instead.
func arguments(raw []byte) string {
	v := rawjson.Field(raw, "arguments")
	if rawjson.IsString(v) {
		return rawjson.Unquote(v)
	}
	return string(v)
}

func joinRecords(raw [][]byte) []byte { return bytes.Join(raw, []byte{','}) }

// patch returns the message was changed to parts. Fields that did not change and unknown ones
// are kept byte for byte.
func patch(was []byte, parts []core.Part) []byte {
	w := split(was)
	if roleOf[rawjson.Text(w.role)] == core.RoleTool {
		if len(parts) != 1 {
			return joinRecords(apimessage.OpenAIMessages(core.RoleTool, parts))
		}
		r, ok := parts[0].(core.ToolResult)
		if !ok {
			return joinRecords(apimessage.OpenAIMessages(core.RoleTool, parts))
		}
		return rawjson.SetField(was, "content", patchContent(w.content, r.Content))
	}
	var content, calls []core.Part
	reasoning, audio, images := false, false, false
	for _, p := range parts {
		switch p := p.(type) {
		case core.ToolCall:
			calls = append(calls, p)
		case core.Reasoning:
			reasoning = true
		case core.Opaque:
			if p.Kind == "audio" && p.JSON == string(w.audio) {
				audio = true
				continue
			}
			if p.Kind == "images" && p.JSON == string(w.images) {
				images = true
				continue
			}
			content = append(content, p)
		case core.Text, core.Image:
			content = append(content, p)
		case core.ToolResult: // not in a message with one of these roles
		}
	}
	out := was
	if !reasoning && w.reasoning != nil {
		out = rawjson.DropField(out, w.reasoningField)
	}
	if !audio && w.audio != nil {
		out = rawjson.DropField(out, "audio")
	}
	if !images && w.images != nil {
		out = rawjson.DropField(out, "images")
	}
	if s := rawjson.Text(w.refusal); s != "" {
		if n := len(content); n > 0 && content[n-1] == core.Part(core.Text(s)) {
			content = content[:n-1]
		} else {
			out = rawjson.DropField(out, "refusal")
		}
	}
	if old, err := decodeContent(w.content); err != nil || !core.EqualParts(old, content) {
		out = rawjson.SetField(out, "content", patchContent(w.content, content))
	}
	return patchCalls(out, w, calls)
}

func patchContent(was []byte, parts []core.Part) []byte {
	if !rawjson.IsArray(was) {
		return apimessage.OpenAIContent(parts)
	}
	var raw [][]byte
	var old []core.Part
	for part := range rawjson.Elements(was) {
		p, err := decodePart(part)
		if err != nil {
			p = nil
		}
		raw, old = append(raw, part), append(old, p)
	}
	out := []byte{'['}
	for i, j := range blocks.Match(old, parts) {
		if i > 0 {
			out = append(out, ',')
		}
		switch {
		case j < 0:
			out = apimessage.AppendOpenAIPart(out, parts[i])
		case core.EqualParts(old[j:j+1], parts[i:i+1]):
			out = append(out, raw[j]...)
		default: // a text that changed
			t, _ := parts[i].(core.Text)
			kind := rawjson.Text(rawjson.Field(raw[j], "type"))
			out = append(out, rawjson.SetField(raw[j], kind, rawjson.AppendQuote(nil, string(t)))...)
		}
	}
	return append(out, ']')
}

// patchCalls returns the message was with its calls changed.
func patchCalls(was []byte, w fields, calls []core.Part) []byte {
	if rawjson.IsObject(w.functionCall) && len(calls) > 0 {
		last, _ := calls[len(calls)-1].(core.ToolCall)
		if last.ID == functionID(rawjson.Text(rawjson.Field(w.functionCall, "name"))) {
			if last.Args != arguments(w.functionCall) {
				f := rawjson.SetField(w.functionCall, "arguments", rawjson.AppendQuote(nil, last.Args))
				was = rawjson.SetField(was, "function_call", f)
			}
			calls = calls[:len(calls)-1]
		} else {
			was = rawjson.DropField(was, "function_call")
		}
	} else if w.functionCall != nil {
		was = rawjson.DropField(was, "function_call")
	}
	var raw [][]byte
	var old []core.Part
	for call := range rawjson.Elements(w.toolCalls) {
		c, err := decodeCall(call)
		if err != nil {
			c = nil
		}
		raw, old = append(raw, call), append(old, c)
	}
	if core.EqualParts(old, calls) {
		return was
	}
	if len(calls) == 0 {
		return rawjson.DropField(was, "tool_calls")
	}
	out := []byte{'['}
	for i, j := range blocks.Match(old, calls) {
		if i > 0 {
			out = append(out, ',')
		}
		if j < 0 {
			one := apimessage.OpenAICalls(calls[i : i+1])
			out = append(out, one[1:len(one)-1]...)
			continue
		}
		out = append(out, patchCall(raw[j], old[j], calls[i])...)
	}
	return rawjson.SetField(was, "tool_calls", append(out, ']'))
}

func patchCall(was []byte, old, p core.Part) []byte {
	o, _ := old.(core.ToolCall)
	c, _ := p.(core.ToolCall)
	inner, args := "function", "arguments"
	if rawjson.IsObject(rawjson.Field(was, "custom")) {
		inner, args = "custom", "input"
	}
	f := rawjson.Field(was, inner)
	if o.Name != c.Name {
		f = rawjson.SetField(f, "name", rawjson.AppendQuote(nil, c.Name))
	}
	if o.Args != c.Args {
		f = rawjson.SetField(f, args, rawjson.AppendQuote(nil, c.Args))
	}
	return rawjson.SetField(was, inner, f)
}

// convertFile writes an array of messages.
func convertFile(f *codec.File, out *codec.Output) error {
	messages := apimessage.EncodeOpenAI(convert.Input(f, &apimessage.OpenAI, out))
	convert.WarnFields(f, f.View(), out)
	out.Add(rawjson.Array(messages), []byte{'\n'})
	return nil
}
