package openai

import (
	"bytes"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/blocks"
	"github.com/condensehq/condense/transcript/internal/codec"
	"github.com/condensehq/condense/transcript/internal/convert"
)

// encode returns the messages that say parts: one for each tool result, with its
// images behind all of them because a tool message holds only text, then one for the
// rest.
func encode(role core.Role, parts []core.Part) [][]byte {
	var out [][]byte
	var rest, calls []core.Part
	var images []core.Part
	for _, p := range parts {
		switch p := p.(type) {
		case core.ToolResult:
			raw, moved := encodeResult(p)
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
	raw := rawjson.AppendQuote([]byte(`{"role":`), string(blocks.Speaker(role)))
	for _, p := range rest {
		if r, ok := p.(core.Reasoning); ok {
			raw = append(raw, `,"reasoning_content":`...)
			raw = rawjson.AppendQuote(raw, r.Text)
			break
		}
	}
	rest = slices.DeleteFunc(rest, func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok })
	raw = append(raw, `,"content":`...)
	if len(rest) == 0 && len(calls) > 0 {
		raw = append(raw, "null"...)
	} else {
		raw = append(raw, encodeContent(rest)...)
	}
	if len(calls) > 0 {
		raw = append(raw, `,"tool_calls":`...)
		raw = append(raw, encodeCalls(calls)...)
	}
	return append(out, append(raw, '}'))
}

// encodeResult returns a tool message, and what must follow in a user message.
func encodeResult(r core.ToolResult) (raw []byte, moved []core.Part) {
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
	raw = rawjson.AppendQuote([]byte(`{"role":"tool","tool_call_id":`), r.CallID)
	raw = append(raw, `,"content":`...)
	raw = append(raw, encodeContent(content)...)
	return append(raw, '}'), moved
}

// encodeContent returns parts as the value of "content": a string if they are at
// most one text, else an array.
func encodeContent(parts []core.Part) []byte {
	if len(parts) == 0 {
		return []byte(`""`)
	}
	return blocks.EncodeList(parts, appendPart)
}

func appendPart(out []byte, p core.Part) []byte {
	switch p := p.(type) {
	case core.Image:
		out = append(out, `{"type":"image_url","image_url":{"url":`...)
		out = rawjson.AppendQuote(out, blocks.URL(p))
		return append(out, '}', '}')
	case core.Opaque:
		if rawjson.IsObject([]byte(p.JSON)) {
			return append(out, p.JSON...)
		}
		return appendPart(out, core.Text(p.JSON))
	case core.Text:
		out = append(out, `{"type":"text","text":`...)
		out = rawjson.AppendQuote(out, string(p))
	case core.ToolCall, core.ToolResult, core.Reasoning: // have places of their own
		out = append(out, `{"type":"text","text":""`...)
	}
	return append(out, '}')
}

func encodeCalls(calls []core.Part) []byte {
	out := []byte{'['}
	for i, p := range calls {
		if i > 0 {
			out = append(out, ',')
		}
		c, _ := p.(core.ToolCall)
		out = append(out, `{"id":`...)
		out = rawjson.AppendQuote(out, c.ID)
		out = append(out, `,"type":"function","function":{"name":`...)
		out = rawjson.AppendQuote(out, c.Name)
		out = append(out, `,"arguments":`...)
		out = rawjson.AppendQuote(out, c.Args)
		out = append(out, '}', '}')
	}
	return append(out, ']')
}

func joinRecords(raw [][]byte) []byte { return bytes.Join(raw, []byte{','}) }

// patch returns the message was changed to say parts. Fields that did not change
// and unknown ones are kept byte for byte.
func patch(was []byte, parts []core.Part) []byte {
	w := split(was)
	if roleOf[rawjson.Text(w.role)] == core.RoleTool {
		if len(parts) != 1 {
			return joinRecords(encode(core.RoleTool, parts))
		}
		r, ok := parts[0].(core.ToolResult)
		if !ok {
			return joinRecords(encode(core.RoleTool, parts))
		}
		return rawjson.SetField(was, "content", patchContent(w.content, r.Content))
	}
	var content, calls []core.Part
	reasoning, audio := false, false
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
		return encodeContent(parts)
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
			out = appendPart(out, parts[i])
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
			one := encodeCalls(calls[i : i+1])
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
	turns, _ := convert.Turns(f, &convert.OpenAI, out)
	var all [][]byte
	for _, t := range turns {
		if textBehindCall(t.Parts) {
			out.Warn(t.ID, "text behind a tool call was moved before it: openai has no order of the two")
		}
		all = append(all, encode(t.Role, t.Parts)...)
		if slices.ContainsFunc(t.Results, hasImage) {
			out.Warn(t.ID, "images in a tool result were moved to a user message behind it: openai takes only text there")
		}
		if len(t.Results) > 0 {
			all = append(all, encode(core.RoleTool, convert.Results(t.Results))...)
		}
	}
	out.AddString("[")
	out.Add(joinRecords(all))
	out.AddString("]\n")
	return nil
}

func textBehindCall(parts []core.Part) bool {
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

func hasImage(r core.ToolResult) bool {
	return slices.ContainsFunc(r.Content, func(p core.Part) bool { _, ok := p.(core.Image); return ok })
}
