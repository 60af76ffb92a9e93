// Package aisdk reads and writes the messages of user interfaces that are made with the Vercel AI SDK.
//
// Apps store them as an array, or as the member "messages" of an object:
//
//	[{"id": …, "role": "user", "parts": [{"type": "text", "text": …}]},
//	 {"id": …, "role": "assistant", "parts": [
//	   {"type": "step-start"}, {"type": "reasoning", "text": …},
//	   {"type": "tool-NAME", "toolCallId": …, "state": "output-available", "input": …, "output": …},
//	   {"type": "step-start"}, {"type": "text", "text": …}]}]
//
// A part "step-start" begins a new request; a call holds its result. Parts of other types (data,
// sources) are for the user interface. Versions 4 and before have calls as parts
// "tool-invocation", or in "toolInvocations" next to a text as "content". This follows
// convertToModelMessages of the SDK, which is public.
package aisdk

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/blocks"
	"github.com/condensehq/condense/transcript/internal/codec"
	"github.com/condensehq/condense/transcript/internal/session"
	"github.com/condensehq/condense/transcript/internal/syntax"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "aisdk",
	Doc:     "Vercel AI SDK: an array of UI messages, or an object with them",
	Vendor:  "", // an app may use models of any vendor
	Detect:  detect,
	Read:    read,
	Write:   write,
	Convert: convertFile,
}

// list returns the array of messages in data; nil if there is none.
func list(data []byte) []byte {
	at := rawjson.SkipSpace(data, 0)
	if rawjson.IsArray(data[at:]) {
		return data[at:]
	}
	if v := rawjson.Field(data, "messages"); rawjson.IsArray(v) {
		return v
	}
	return nil
}

var roles = []string{"system", "user", "assistant"}

// detect looks for typed parts and calls. Old messages without calls have neither.
func detect(data []byte) bool {
	found, seen := false, 0
	for m := range rawjson.Elements(list(data)) {
		if seen++; seen > 20 {
			break
		}
		parts := rawjson.Field(m, "parts")
		for p := range rawjson.Elements(parts) {
			if !rawjson.IsString(rawjson.Field(p, "type")) { // Gemini's
				return false
			}
			break
		}
		ours := rawjson.IsArray(parts) || rawjson.IsArray(rawjson.Field(m, "toolInvocations"))
		if !slices.Contains(roles, rawjson.Text(rawjson.Field(m, "role"))) || !ours && !rawjson.IsString(rawjson.Field(m, "content")) {
			return false
		}
		found = found || ours
	}
	return found
}

// A record is a message of the user interface.
type record struct {
	raw      []byte
	id       string
	messages []core.Message
}

func read(data []byte, f *codec.File) error {
	records, err := parse(data)
	if err != nil {
		return err
	}
	var places []codec.Placement
	for i := range records {
		r := &records[i]
		if len(r.messages) > 0 {
			at := rawjson.Offset(data, r.raw)
			places = append(places, codec.Placement{ID: r.messages[0].ID, Start: at, End: at + len(r.raw)})
		}
		if err := f.Add(r.messages...); err != nil {
			return err
		}
	}
	sep := ", "
	if len(places) > 1 {
		if gap := string(data[places[0].End:places[1].Start]); strings.TrimSpace(gap) == "," {
			sep = gap
		}
	}
	f.Settle(data, places, sep)
	return nil
}

// parse returns the messages in data. The same data gives the same IDs.
func parse(data []byte) ([]record, error) {
	if err := syntax.Validate(data); err != nil {
		return nil, err
	}
	messages := list(data)
	if messages == nil {
		at := rawjson.SkipSpace(data, 0)
		if rawjson.IsObject(data[at:]) {
			return nil, syntax.NoMessages(data, "messages", rawjson.Field(data, "messages"))
		}
		return nil, &syntax.Error{Offset: at, Found: syntax.Describe(data[at:]), Want: "an array of messages"}
	}
	var records []record
	s := session.Reader{Data: data, Taken: codec.IDs{}}
	for raw := range rawjson.Elements(messages) {
		all, bad := decode(raw)
		if bad != nil {
			return nil, bad.In(data, raw, s.Records+1)
		}
		r := record{raw: raw, id: rawjson.Text(rawjson.Field(raw, "id"))}
		r.messages = s.Take(raw, r.id, rawjson.Time(rawjson.Field(raw, "createdAt")), false, all)
		records = append(records, r)
	}
	return records, nil
}

func decode(raw []byte) ([]core.Message, *syntax.Error) {
	if !rawjson.IsObject(raw) {
		return nil, &syntax.Error{Found: syntax.Describe(raw), Want: "an object with role and parts"}
	}
	role := rawjson.Field(raw, "role")
	if !slices.Contains(roles, rawjson.Text(role)) {
		return nil, syntax.WrongRole(raw, role, "user, assistant or system")
	}
	d := decoder{role: core.Role(rawjson.Text(role))}
	parts := rawjson.Field(raw, "parts")
	if !rawjson.IsArray(parts) {
		if content := rawjson.Field(raw, "content"); !rawjson.IsString(content) {
			return nil, &syntax.Error{Found: `a message without "parts"`, Want: `an array as "parts"`}
		}
		if bad := d.old(raw); bad != nil {
			bad.Offset += rawjson.Offset(raw, rawjson.Field(raw, "toolInvocations"))
			return nil, bad
		}
		d.step()
		return d.all, nil
	}
	for part := range rawjson.Elements(parts) {
		if bad := d.part(part); bad != nil {
			bad.Offset += rawjson.Offset(raw, part)
			return nil, bad
		}
	}
	for a := range rawjson.Elements(rawjson.Field(raw, "experimental_attachments")) {
		d.file(a, rawjson.Field(a, "contentType"))
	}
	d.step()
	return d.all, nil
}

// A decoder makes messages of the parts of one.
type decoder struct {
	role          core.Role
	said, results []core.Part
	all           []core.Message
}

// step ends the messages of one request.
func (d *decoder) step() {
	if d.role == core.RoleAssistant {
		d.all = append(d.all, session.Turn(d.said, d.results)...)
	} else if len(d.said) > 0 {
		d.all = append(d.all, core.Message{Role: d.role, Parts: d.said})
	}
	d.said, d.results = nil, nil
}

// old decodes a message of a version that had no parts.
func (d *decoder) old(raw []byte) *syntax.Error {
	if s := rawjson.Text(rawjson.Field(raw, "reasoning")); s != "" {
		d.said = append(d.said, core.Reasoning{Text: s})
	}
	calls := false
	for made := range rawjson.Elements(rawjson.Field(raw, "toolInvocations")) {
		if bad := d.call(made, "", rawjson.Field(made, "args")); bad != nil {
			return bad
		}
		calls = true
	}
	if calls { // the text is the answer to the results
		d.step()
	}
	d.said = append(d.said, blocks.Text(blocks.OrEmpty(rawjson.Field(raw, "content")))...)
	for a := range rawjson.Elements(rawjson.Field(raw, "experimental_attachments")) {
		d.file(a, rawjson.Field(a, "contentType"))
	}
	return nil
}

func (d *decoder) part(raw []byte) *syntax.Error {
	kind := rawjson.Text(rawjson.Field(raw, "type"))
	switch {
	case kind == "":
		return syntax.Missing(raw, "part", "type", "a string that is not empty")
	case kind == "step-start":
		d.step()
	case kind == "text":
		if !rawjson.IsString(rawjson.Field(raw, "text")) {
			return syntax.Missing(raw, kind, "text", "a string")
		}
		d.said = append(d.said, blocks.Text(rawjson.Field(raw, "text"))...)
	case kind == "reasoning":
		text := rawjson.Text(rawjson.Field(raw, "text"))
		if text == "" {
			text = rawjson.Text(rawjson.Field(raw, "reasoning")) // version 4
		}
		d.said = append(d.said, core.Reasoning{Text: text, Signature: anthropic(raw, "signature"), Encrypted: anthropic(raw, "redactedData")})
	case kind == "file":
		mime := rawjson.Field(raw, "mediaType")
		if mime == nil {
			mime = rawjson.Field(raw, "mimeType")
		}
		d.file(raw, mime)
	case kind == "tool-invocation":
		made := rawjson.Field(raw, "toolInvocation")
		return d.call(made, "", rawjson.Field(made, "args"))
	case kind == "dynamic-tool":
		return d.call(raw, "", rawjson.Field(raw, "input"))
	case strings.HasPrefix(kind, "tool-"):
		return d.call(raw, strings.TrimPrefix(kind, "tool-"), rawjson.Field(raw, "input"))
	}
	return nil
}

// anthropic returns the additions of Anthropic's models to the part raw, if any.
func anthropic(raw []byte, name string) string {
	return rawjson.Text(rawjson.Field(rawjson.Field(rawjson.Field(raw, "providerMetadata"), "anthropic"), name))
}

// file decodes a file of the given type, with the address url or, in version 4, the content data.
func (d *decoder) file(raw, mime []byte) {
	url := rawjson.Text(rawjson.Field(raw, "url"))
	kind := rawjson.Text(mime)
	if data := rawjson.Text(rawjson.Field(raw, "data")); url == "" && data != "" {
		url = "data:" + kind + ";base64," + data
	}
	if kind == "image" || strings.HasPrefix(kind, "image/") {
		d.said = append(d.said, apimessage.ImageOf(url))
		return
	}
	d.said = append(d.said, core.Opaque{Kind: "file", JSON: string(raw)})
}

// call decodes a call of the named tool, whose name is in toolName if it is empty, and its result.
func (d *decoder) call(raw []byte, name string, args []byte) *syntax.Error {
	if !rawjson.IsString(rawjson.Field(raw, "toolCallId")) {
		return syntax.Missing(raw, "tool", "toolCallId", "a string")
	}
	if name == "" {
		name = rawjson.Text(rawjson.Field(raw, "toolName"))
	}
	c := core.ToolCall{ID: rawjson.Text(rawjson.Field(raw, "toolCallId")), Name: name, Args: string(args)}
	r := core.ToolResult{CallID: c.ID}
	switch rawjson.Text(rawjson.Field(raw, "state")) {
	case "input-streaming", "partial-call": // never sent
		return nil
	case "output-available":
		r.Content, r.IsError = output(rawjson.Field(raw, "output"))
	case "result": // version 4
		r.Content, r.IsError = output(rawjson.Field(raw, "result"))
	case "output-error":
		r.Content, r.IsError = blocks.Text(blocks.OrEmpty(rawjson.Field(raw, "errorText"))), true
		if args == nil {
			c.Args = string(rawjson.Field(raw, "rawInput"))
		}
	case "output-denied":
		r.IsError = true
		if r.Content = blocks.Text(blocks.OrEmpty(rawjson.Field(rawjson.Field(raw, "approval"), "reason"))); r.Content == nil {
			r.Content = []core.Part{core.Text("Tool call execution denied.")}
		}
	default:
		d.said = append(d.said, c)
		return nil
	}
	d.said, d.results = append(d.said, c), append(d.results, r)
	return nil
}

// output returns a tool's result in the form that the model gets, and whether the tool failed: a text unchanged, the
// content of a result of the Model Context Protocol, else JSON.
func output(value []byte) (parts []core.Part, failed bool) {
	switch {
	case rawjson.IsString(value):
		return blocks.Text(value), false
	case value == nil:
		return nil, false
	}
	for block := range rawjson.Elements(rawjson.Field(value, "content")) {
		text, data := rawjson.Field(block, "text"), rawjson.Text(rawjson.Field(block, "data"))
		switch kind := rawjson.Text(rawjson.Field(block, "type")); {
		case kind == "text" && rawjson.IsString(text):
			parts = append(parts, core.Text(rawjson.Text(text)))
		case kind == "image" && data != "":
			parts = append(parts, core.Image{MediaType: rawjson.Text(rawjson.Field(block, "mimeType")), Data: data})
		default:
			return []core.Part{core.Text(value)}, false
		}
	}
	if parts == nil {
		return []core.Part{core.Text(value)}, false
	}
	return parts, rawjson.IsTrue(rawjson.Field(value, "isError"))
}
