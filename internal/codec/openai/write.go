package openai

import (
	"bytes"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/rawjson"
)

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
