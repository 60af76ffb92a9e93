// Package geminiapi reads and writes requests of the Gemini API, and arrays of its contents.
//
// Sources: the discovery document of generativelanguage.googleapis.com, v1beta, and "Thought signatures",
// ai.google.dev/gemini-api/docs/thought-signatures.
package geminiapi

import (
	"bytes"
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
	Name:    "gemini-api",
	Doc:     "Gemini API: an array of contents, or a request object with contents, systemInstruction, tools …",
	Request: true,
	Detect:  detect,
	Read:    read,
	Write:   write,
	Convert: convertFile,
}

func detect(data []byte) bool {
	contents := data[rawjson.SkipSpace(data, 0):]
	if rawjson.IsObject(contents) {
		contents = rawjson.Field(contents, "contents")
	}
	for c := range rawjson.Elements(contents) {
		role := rawjson.Field(c, "role")
		for p := range rawjson.Elements(rawjson.Field(c, "parts")) {
			return rawjson.IsObject(p) && rawjson.Field(p, "type") == nil && (role == nil || roles[rawjson.Text(role)] != "")
		}
		return false
	}
	return false
}

var roles = map[string]core.Role{"user": core.RoleUser, "model": core.RoleAssistant, "function": core.RoleUser}

func read(data []byte, f *codec.File) error {
	var pairs request.Pairs
	one := func(raw []byte) (core.Message, *syntax.Error) { return decode(raw, &pairs) }
	if err := request.ReadArray(f, data, "contents", one); err != nil {
		return err
	}
	var system, tools, name, options []byte
	rawjson.Pick(data, []string{"systemInstruction", "system_instruction", "tools", "model", "generationConfig", "generation_config"},
		&system, &system, &tools, &name, &options, &options)
	texts := plain.Each(slices.Collect(rawjson.Elements(rawjson.Field(system, "parts"))),
		func(p []byte) core.Part { return core.Text(rawjson.Text(rawjson.Field(p, "text"))) })
	f.System, f.Model = blocks.Join(texts), strings.TrimPrefix(rawjson.Text(name), "models/")
	f.MaxOutput = rawjson.Int(either(options, "maxOutputTokens", "max_output_tokens"))
	if tools != nil && !rawjson.IsNull(tools) {
		f.Tools = slices.Clip(tools)
	}
	return nil
}

// either returns a member of an object by the name that the API writes, or by its other one.
func either(raw []byte, name, other string) []byte {
	if v := rawjson.Field(raw, name); v != nil {
		return v
	}
	return rawjson.Field(raw, other)
}

func decode(raw []byte, pairs *request.Pairs) (core.Message, *syntax.Error) {
	var m core.Message
	if !rawjson.IsObject(raw) {
		return m, &syntax.Error{Found: syntax.Describe(raw), Want: "an object with role and parts"}
	}
	role, parts := rawjson.Field(raw, "role"), rawjson.Field(raw, "parts")
	m.Role = core.RoleUser
	if role != nil && !rawjson.IsNull(role) {
		if m.Role = roles[rawjson.Text(role)]; m.Role == "" {
			return m, syntax.WrongRole(raw, role, "user or model")
		}
	}
	if !rawjson.IsArray(parts) {
		return m, syntax.Missing(raw, "content", "parts", "an array")
	}
	if m.Role == core.RoleAssistant {
		pairs.Turn()
	}
	for part := range rawjson.Elements(parts) {
		if !rawjson.IsObject(part) {
			return m, &syntax.Error{Offset: rawjson.Offset(raw, part), Found: syntax.Describe(part) + " as a part", Want: "an object"}
		}
		m.Parts = append(m.Parts, decodePart(part, pairs))
	}
	return m, nil
}

// decodePart returns a part as one part.
func decodePart(raw []byte, pairs *request.Pairs) core.Part {
	text := rawjson.Field(raw, "text")
	call, response := either(raw, "functionCall", "function_call"), either(raw, "functionResponse", "function_response")
	name := func(o []byte) (id, name string) {
		return rawjson.Text(rawjson.Field(o, "id")), rawjson.Text(rawjson.Field(o, "name"))
	}
	switch {
	case rawjson.IsObject(call):
		id, tool := name(call)
		return core.ToolCall{ID: pairs.Call(id, tool), Name: tool, Args: string(rawjson.Field(call, "args"))}
	case rawjson.IsObject(response):
		r := core.ToolResult{CallID: pairs.Result(name(response))}
		r.Content, r.IsError = content(response)
		for p := range rawjson.Elements(rawjson.Field(response, "parts")) { // only media are allowed there
			r.Content = append(r.Content, decodeMedium(p))
		}
		return r
	case rawjson.IsString(text) && rawjson.IsTrue(rawjson.Field(raw, "thought")):
		return core.Reasoning{Text: rawjson.Text(text)}
	case rawjson.IsString(text):
		return core.Text(rawjson.Text(text))
	}
	return decodeMedium(raw)
}

// decodeMedium returns a part that is no text, call or response.
func decodeMedium(raw []byte) core.Part {
	inline := either(raw, "inlineData", "inline_data")
	if mime := rawjson.Text(either(inline, "mimeType", "mime_type")); strings.HasPrefix(mime, "image/") {
		return core.Image{MediaType: mime, Data: rawjson.Text(rawjson.Field(inline, "data"))}
	}
	kind := "part"
	for k := range rawjson.Fields(raw) {
		kind = string(k)
		break
	}
	return core.Opaque{Kind: kind, JSON: string(raw)}
}

// outputs are the members of a response that hold the output of a tool as a text; an error is one, too.
var outputs = []string{"output", "result", "content"}

// content returns the content of a function's response, and whether the tool failed.
func content(of []byte) ([]core.Part, bool) {
	response := rawjson.Field(of, "response")
	fault := rawjson.Field(response, "error")
	switch name, said := output(of); {
	case rawjson.IsString(fault):
		return blocks.Text(fault), true
	case name != "":
		return blocks.Text(said), false
	case response == nil:
		return nil, false
	}
	return []core.Part{core.Text(response)}, false
}

// output returns the member that is the whole of a function's response, perhaps beside the function's name, which OpenCode and others on
// Vercel's AI SDK repeat there; no name if there is none.
func output(of []byte) (name string, value []byte) {
	n := 0
	for k, v := range rawjson.Fields(rawjson.Field(of, "response")) {
		if string(k) != "name" || !bytes.Equal(v, rawjson.Field(of, "name")) {
			n++
		}
		if rawjson.IsString(v) && slices.Contains(outputs, string(k)) {
			name, value = string(k), v
		}
	}
	if n != 1 {
		return "", nil
	}
	return name, value
}

func write(f *codec.File, out *codec.Output) error {
	names := request.ToolNames(f)
	request.Write(f, out, f.View(), false, func(m *core.Message, was []byte) []byte {
		if was == nil {
			return encode(m.Role, m.Parts, names)
		}
		read, _ := f.Journal.Message(m.ID)
		raw := slices.Collect(rawjson.Elements(rawjson.Field(was, "parts")))
		parts := make([][]byte, len(m.Parts))
		for i, j := range blocks.Match(read.Parts, m.Parts) {
			if j < 0 || j >= len(raw) {
				parts[i] = encodePart(m.Parts[i], names)
			} else {
				parts[i] = patch(raw[j], read.Parts[j], m.Parts[i])
			}
		}
		return rawjson.SetField(was, "parts", rawjson.Array(parts))
	})
	return nil
}

// patch returns a part that was old, changed to p. Its signature stays.
func patch(was []byte, old, p core.Part) []byte {
	if core.EqualParts([]core.Part{old}, []core.Part{p}) {
		return was
	}
	within := func(name, other, member string, value []byte) []byte {
		if rawjson.Field(was, name) == nil {
			name = other
		}
		return rawjson.SetField(was, name, rawjson.SetField(rawjson.Field(was, name), member, value))
	}
	switch p := p.(type) {
	case core.Text:
		return rawjson.SetField(was, "text", rawjson.AppendQuote(nil, string(p)))
	case core.ToolCall:
		return within("functionCall", "function_call", "args", apimessage.Args(p.Args))
	case core.ToolResult:
		response := either(was, "functionResponse", "function_response")
		if parts := rawjson.Field(response, "parts"); rawjson.IsArray(parts) {
			var left [][]byte
			for raw := range rawjson.Elements(parts) {
				if slices.ContainsFunc(p.Content, func(c core.Part) bool { return core.EqualParts([]core.Part{c}, []core.Part{decodeMedium(raw)}) }) {
					left = append(left, raw)
				}
			}
			was = within("functionResponse", "function_response", "parts", rawjson.Array(left))
		}
		return within("functionResponse", "function_response", "response", answer(response, p))
	case core.Image, core.Reasoning, core.Opaque:
	}
	return was
}

// answer returns the response of a function with the content of a result.
func answer(of []byte, r core.ToolResult) []byte {
	text, was := rawjson.AppendQuote(nil, blocks.Join(r.Content)), rawjson.Field(of, "response")
	name, _ := output(of)
	switch failed := rawjson.IsString(rawjson.Field(was, "error")); {
	case failed && r.IsError:
		return rawjson.SetField(was, "error", text)
	case r.IsError:
		return rawjson.Append(nil, `{"error":?}`, text)
	case name != "":
		return rawjson.SetField(was, name, text)
	}
	return rawjson.Append(nil, `{"output":?}`, text)
}

func encode(role core.Role, parts []core.Part, names map[string]string) []byte {
	raw := plain.Each(parts, func(p core.Part) []byte { return encodePart(p, names) })
	if len(raw) == 0 {
		raw = [][]byte{[]byte(`{"text":""}`)}
	}
	speaker := "user"
	if role == core.RoleAssistant {
		speaker = "model"
	}
	return rawjson.Append(nil, `{"role":?,"parts":?}`, speaker, rawjson.Array(raw))
}

func encodePart(p core.Part, names map[string]string) []byte {
	switch p := p.(type) {
	case core.Text:
		return rawjson.Append(nil, `{"text":?}`, string(p))
	case core.Reasoning:
		return rawjson.Append(nil, `{"text":?,"thought":true}`, p.Text)
	case core.Image:
		if p.Data == "" {
			return rawjson.Append(nil, `{"fileData":{"fileUri":?}}`, p.URL)
		}
		return rawjson.Append(nil, `{"inlineData":{"mimeType":?,"data":?}}`, p.MediaType, p.Data)
	case core.ToolCall:
		return rawjson.Append(nil, `{"functionCall":{"name":?,"args":?}}`, p.Name, apimessage.Args(p.Args))
	case core.ToolResult:
		return rawjson.Append(nil, `{"functionResponse":{"name":?,"response":?}}`, names[p.CallID], answer(nil, p))
	case core.Opaque:
		if raw := []byte(p.JSON); json.Valid(raw) && rawjson.IsObject(raw) && rawjson.Field(raw, "type") == nil {
			return raw
		}
		return rawjson.Append(nil, `{"text":?}`, apimessage.Note(p.Kind))
	}
	return []byte(`{"text":""}`)
}

// convertFile writes a request without its model, which is in the path.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	names := request.ToolNames(f)
	var contents [][]byte
	for _, m := range apimessage.Messages(turns) {
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p core.Part) bool { _, thinks := p.(core.Reasoning); return thinks })
		if len(m.Parts) > 0 {
			contents = append(contents, encode(m.Role, m.Parts, names))
		}
	}
	raw := rawjson.Array(contents)
	if system != "" {
		raw = rawjson.Append(nil, `{"systemInstruction":{"parts":[{"text":?}]},"contents":?}`, system, raw)
	}
	out.Add(raw, []byte{'\n'})
	return nil
}
