// Package ollama reads and writes requests of Ollama's chat API.
//
// Source: docs/api.md and api/types.go of github.com/ollama/ollama.
package ollama

import (
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/blocks"
	"github.com/condensehq/condense/transcript/internal/codec"
	"github.com/condensehq/condense/transcript/internal/convert"
	"github.com/condensehq/condense/transcript/internal/request"
	"github.com/condensehq/condense/transcript/internal/syntax"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "ollama",
	Doc:     "Ollama: a request object of /api/chat with messages, tools, options …",
	Request: true,
	Detect:  detect,
	Read:    read,
	Write:   write,
	Convert: convertFile,
}

// detect reports whether a request has something that only Ollama's have: plain messages look the same in several
// APIs.
func detect(data []byte) bool {
	if !rawjson.IsObject(data[rawjson.SkipSpace(data, 0):]) || !rawjson.IsString(rawjson.Field(data, "model")) {
		return false
	}
	messages := rawjson.Field(data, "messages")
	only := rawjson.IsObject(rawjson.Field(data, "options")) || rawjson.Field(data, "keep_alive") != nil
	for m := range rawjson.Elements(messages) {
		if rawjson.Field(m, "tool_name") != nil {
			return true
		}
		for image := range rawjson.Elements(rawjson.Field(m, "images")) {
			return rawjson.IsString(image) // elsewhere they are objects
		}
		for call := range rawjson.Elements(rawjson.Field(m, "tool_calls")) {
			if rawjson.IsObject(rawjson.Field(rawjson.Field(call, "function"), "arguments")) {
				return true
			}
		}
	}
	return only && rawjson.IsArray(messages)
}

var roles = map[string]core.Role{"system": core.RoleSystem, "user": core.RoleUser, "assistant": core.RoleAssistant, "tool": core.RoleTool}

func read(data []byte, f *codec.File) error {
	var pairs request.Pairs
	one := func(raw []byte) (core.Message, *syntax.Error) { return decode(raw, &pairs) }
	if err := request.ReadArray(f, data, "messages", one); err != nil {
		return err
	}
	for k, v := range rawjson.Fields(data) {
		switch string(k) {
		case "tools":
			if !rawjson.IsNull(v) {
				f.Tools = slices.Clip(v)
			}
		case "model":
			f.Model = rawjson.Text(v)
		case "options":
			f.MaxOutput = max(0, rawjson.Int(rawjson.Field(v, "num_predict")))
		}
	}
	return nil
}

// decode returns a message. The order of its parts is: thinking, content, images, calls.
func decode(raw []byte, pairs *request.Pairs) (core.Message, *syntax.Error) {
	var m core.Message
	if !rawjson.IsObject(raw) {
		return m, &syntax.Error{Found: syntax.Describe(raw), Want: "an object with role and content"}
	}
	field := func(name string) []byte { return rawjson.Field(raw, name) }
	if m.Role = roles[rawjson.Text(field("role"))]; m.Role == "" {
		return m, syntax.WrongRole(raw, field("role"), "system, user, assistant or tool")
	}
	if c := field("content"); c != nil && !rawjson.IsString(c) && !rawjson.IsNull(c) {
		return m, syntax.Missing(raw, "message", "content", "a string")
	}
	text := blocks.Text(blocks.OrEmpty(field("content")))
	if m.Role == core.RoleTool {
		name := field("tool_name")
		if name == nil {
			name = field("name")
		}
		m.Parts = []core.Part{core.ToolResult{CallID: pairs.Result(rawjson.Text(field("tool_call_id")), rawjson.Text(name)), Content: text}}
		return m, nil
	}
	if s := rawjson.Text(field("thinking")); s != "" {
		m.Parts = append(m.Parts, core.Reasoning{Text: s})
	}
	m.Parts = append(m.Parts, text...)
	for image := range rawjson.Elements(field("images")) {
		m.Parts = append(m.Parts, core.Image{Data: rawjson.Text(image)})
	}
	if m.Role == core.RoleAssistant {
		pairs.Turn()
	}
	for call := range rawjson.Elements(field("tool_calls")) {
		f := rawjson.Field(call, "function")
		name := rawjson.Text(rawjson.Field(f, "name"))
		id := pairs.Call(rawjson.Text(rawjson.Field(call, "id")), name)
		m.Parts = append(m.Parts, core.ToolCall{ID: id, Name: name, Args: string(rawjson.Field(f, "arguments"))})
	}
	return m, nil
}

func write(f *codec.File, out *codec.Output) error {
	names := request.ToolNames(f)
	request.Write(f, out, f.View(), false, func(m *core.Message, was []byte) []byte {
		if was == nil {
			return encode(m.Role, m.Parts, names)
		}
		read, _ := f.Journal.Message(m.ID)
		return patch(was, read.Parts, m.Parts)
	})
	return nil
}

// pick returns the parts of one kind.
func pick[P core.Part](parts []core.Part) []P {
	var all []P
	for _, p := range parts {
		if one, ok := p.(P); ok {
			all = append(all, one)
		}
	}
	return all
}

// patch returns the message was, which had the parts old, changed to parts.
func patch(was []byte, old, parts []core.Part) []byte {
	if results := pick[core.ToolResult](parts); len(results) == 1 && len(parts) == 1 {
		return rawjson.SetField(was, "content", rawjson.AppendQuote(nil, blocks.Join(results[0].Content)))
	}
	if len(pick[core.Reasoning](parts)) == 0 {
		was = rawjson.CutField(was, "thinking")
	}
	was = rawjson.SetField(was, "content", rawjson.AppendQuote(nil, textOf(parts)))
	if images := pick[core.Image](parts); len(images) < len(pick[core.Image](old)) {
		was = rawjson.CutField(was, "images")
		if len(images) > 0 {
			was = rawjson.SetField(was, "images", imagesOf(images))
		}
	}
	var calls [][]byte
	raw, before := slices.Collect(rawjson.Elements(rawjson.Field(was, "tool_calls"))), pick[core.ToolCall](old)
	for _, c := range pick[core.ToolCall](parts) {
		i := slices.IndexFunc(before, func(o core.ToolCall) bool { return o.ID == c.ID })
		switch {
		case i < 0 || i >= len(raw):
			calls = append(calls, encodeCall(c))
		case before[i] == c:
			calls = append(calls, raw[i])
		default:
			f := rawjson.SetField(rawjson.Field(raw[i], "function"), "arguments", apimessage.Args(c.Args))
			calls = append(calls, rawjson.SetField(raw[i], "function", f))
		}
	}
	if len(calls) == 0 {
		return rawjson.CutField(was, "tool_calls")
	}
	return rawjson.SetField(was, "tool_calls", rawjson.Array(calls))
}

// textOf returns the texts among parts, with notes in place of parts that a message cannot have.
func textOf(parts []core.Part) string {
	var texts []core.Part
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			texts = append(texts, p)
		case core.Opaque:
			texts = append(texts, core.Text(apimessage.Note(p.Kind)))
		case core.Image:
			if p.Data == "" {
				texts = append(texts, core.Text(apimessage.Note("image")))
			}
		case core.Reasoning, core.ToolCall, core.ToolResult:
		}
	}
	return blocks.Join(texts)
}

func imagesOf(images []core.Image) []byte {
	var all [][]byte
	for _, image := range images {
		if image.Data != "" {
			all = append(all, rawjson.AppendQuote(nil, image.Data))
		}
	}
	return rawjson.Array(all)
}

func encodeCall(c core.ToolCall) []byte {
	return rawjson.Append(nil, `{"function":{"name":?,"arguments":?}}`, c.Name, apimessage.Args(c.Args))
}

// encode returns messages, several for several results, joined by commas.
func encode(role core.Role, parts []core.Part, names map[string]string) []byte {
	var out []byte
	for _, r := range pick[core.ToolResult](parts) {
		if out != nil {
			out = append(out, ',')
		}
		out = rawjson.Append(out, `{"role":"tool","tool_name":?,"content":?}`, names[r.CallID], blocks.Join(r.Content))
	}
	rest := slices.DeleteFunc(slices.Clone(parts), func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok })
	if len(rest) == 0 && out != nil {
		return out
	}
	if role == core.RoleTool {
		role = core.RoleUser
	}
	// A message has one text: further ones are messages of their own.
	for texts := pick[core.Text](rest); len(texts) > 1; texts = texts[1:] {
		if out != nil {
			out = append(out, ',')
		}
		out = rawjson.Append(out, `{"role":?,"content":?}`, string(role), string(texts[0]))
		first := slices.IndexFunc(rest, func(p core.Part) bool { _, ok := p.(core.Text); return ok })
		rest = slices.Delete(rest, first, first+1)
	}
	if out != nil {
		out = append(out, ',')
	}
	message := rawjson.Append(nil, `{"role":?,"content":?}`, string(role), textOf(rest))
	if images := pick[core.Image](rest); len(images) > 0 {
		message = rawjson.SetField(message, "images", imagesOf(images))
	}
	var calls [][]byte
	for _, c := range pick[core.ToolCall](rest) {
		calls = append(calls, encodeCall(c))
	}
	if len(calls) > 0 {
		message = rawjson.SetField(message, "tool_calls", rawjson.Array(calls))
	}
	return append(out, message...)
}

// convertFile writes a request without its model.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	names := request.ToolNames(f)
	var messages [][]byte
	if system != "" {
		messages = append(messages, rawjson.Append(nil, `{"role":"system","content":?}`, system))
	}
	for _, m := range apimessage.Messages(turns) {
		messages = append(messages, encode(m.Role, m.Parts, names))
	}
	out.Add(rawjson.Append(nil, `{"model":"","messages":?}`, rawjson.Array(messages)), []byte{'\n'})
	return nil
}
