package aisdk

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/blocks"
	"github.com/condensehq/condense/transcript/internal/codec"
	"github.com/condensehq/condense/transcript/internal/convert"
	"github.com/condensehq/condense/transcript/internal/session"
)

// write writes the view. A message that is sent whole and unchanged keeps every byte. In a changed message, unchanged
// parts are kept, and so are parts that are never sent; a new message has only an id, a role and parts.
func write(f *codec.File, out *codec.Output) error {
	if f.Unchanged() {
		out.Add(f.Original())
		return nil
	}
	w := writer{taken: codec.IDs{}, Array: session.Array{Envelope: &f.Envelope}}
	w.view(f.Journal.Timeline())
	w.Write(out, list)
	return nil
}

// convertFile writes a conversation of another format as an array of messages.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	var entries []history.Entry
	add := func(m core.Message) { entries = append(entries, history.Entry{Message: m}) }
	if system != "" {
		add(core.Message{ID: "system", Role: core.RoleSystem, Parts: []core.Part{core.Text(system)}})
	}
	for _, t := range turns {
		if len(t.Parts) > 0 {
			add(core.Message{ID: t.ID, Role: t.Role, Parts: t.Parts})
		}
		for _, r := range t.Results {
			add(core.Message{ID: t.ID, Role: core.RoleTool, Parts: []core.Part{r}})
			if slices.ContainsFunc(r.Content, func(p core.Part) bool { _, ok := p.(core.Opaque); return ok }) {
				out.Warn(t.ID, "content of a tool result other than texts and images became a note")
			}
		}
	}
	w := writer{taken: codec.IDs{}}
	w.view(entries)
	out.AddString("[")
	out.Add(bytes.Join(w.Records(), []byte(",\n ")))
	out.AddString("]\n")
	return nil
}

// A writer writes messages.
type writer struct {
	session.Array
	said  *session.View
	taken codec.IDs
}

func (w *writer) view(entries []history.Entry) {
	w.said = session.ViewOf(entries, func(raw []byte) int { all, _ := decode(raw); return len(all) }, true)
	groups := w.said.Groups
	for i := range groups {
		if g := &groups[i]; g.Record != nil && !g.Again {
			w.taken.Next(0, rawjson.Text(rawjson.Field(g.Record.Raw, "id")))
		}
	}
	for i := range groups {
		g := &groups[i]
		if g.Record != nil {
			w.put(g)
			continue
		}
		id := w.taken.Next(w.Len()+1, g.Entries[0].Message.ID)
		raw := rawjson.Append(nil, `{"id":?,"role":?,"parts":?}`, id, string(g.Role), w.parts(nil, g))
		if len(rawjson.Field(raw, "parts")) > len("[]") {
			w.Add(raw, "")
		}
	}
}

// put writes the record of g as g says.
func (w *writer) put(g *session.Group) {
	raw, first := g.Record.Raw, g.Record.IDs[0]
	if w.said.Same(g) {
		w.Add(raw, first)
		return
	}
	if g.Again {
		first = ""
		raw = rawjson.SetField(raw, "id", rawjson.AppendQuote(nil, w.taken.Next(w.Len()+1, rawjson.Text(rawjson.Field(raw, "id")))))
	}
	raw = rawjson.SetField(raw, "parts", w.parts(rawjson.Field(raw, "parts"), g))
	raw = rawjson.CutField(raw, "toolInvocations")
	if rawjson.Field(raw, "content") != nil {
		last := g.Entries[len(g.Entries)-1].Message
		raw = rawjson.SetField(raw, "content", rawjson.AppendQuote(nil, blocks.Join(last.Parts)))
	}
	w.Add(raw, first)
}

// parts returns the parts of a message that says g and was an array of parts before; nil if it
// is new.
func (w *writer) parts(was []byte, g *session.Group) []byte {
	p := session.Patcher{
		Decode: func(part []byte) core.Part {
			d := decoder{role: g.Role}
			if d.part(part) == nil && len(d.said) == 1 {
				return d.said[0]
			}
			return nil
		},
		Encode: func(was []byte, p core.Part) []byte { return w.part(g, was, p) },
		Only:   g.Again,
	}
	if g.Role == core.RoleAssistant {
		p.Step = func() []byte { return []byte(`{"type":"step-start"}`) }
	}
	return rawjson.Array(p.Parts(was, g.Said()))
}

// part returns p as a part; was is its previous form, nil if there is none.
func (w *writer) part(g *session.Group, was []byte, p core.Part) []byte {
	switch p := p.(type) {
	case core.ToolCall:
		return w.call(g, was, p)
	case core.Text:
		if was == nil || rawjson.Text(rawjson.Field(was, "text")) != string(p) {
			return rawjson.Append(nil, `{"type":"text","text":?}`, string(p))
		}
	case core.Reasoning:
		switch {
		case was != nil:
		case p.Encrypted != "":
			return rawjson.Append(nil, `{"type":"reasoning","text":"","providerMetadata":{"anthropic":{"redactedData":?}}}`, p.Encrypted)
		case p.Signature != "":
			return rawjson.Append(nil, `{"type":"reasoning","text":?,"providerMetadata":{"anthropic":{"signature":?}}}`, p.Text, p.Signature)
		default:
			return rawjson.Append(nil, `{"type":"reasoning","text":?}`, p.Text)
		}
	case core.Image:
		if was == nil {
			kind := p.MediaType
			if kind == "" {
				kind = "image"
			}
			return rawjson.Append(nil, `{"type":"file","mediaType":?,"url":?}`, kind, apimessage.ImageURL(p))
		}
	case core.Opaque:
		if raw := []byte(p.JSON); was == nil && json.Valid(raw) && rawjson.IsObject(raw) && p.Kind == "file" {
			return raw
		}
		if was == nil {
			return rawjson.Append(nil, `{"type":"text","text":?}`, apimessage.Note(p.Kind))
		}
	case core.ToolResult: // with its call
	}
	return was
}

// call returns a call with its result. Unchanged content keeps every byte.
func (w *writer) call(g *session.Group, was []byte, c core.ToolCall) []byte {
	r, answered := w.said.Result(g, c.ID)
	if was != nil {
		d := decoder{role: core.RoleAssistant}
		same := d.part(was) == nil && len(d.said) == 1 && d.said[0] == core.Part(c) && answered == (len(d.results) == 1)
		if same && answered {
			o, ok := d.results[0].(core.ToolResult)
			same = ok && o.IsError == r.IsError && core.EqualParts(o.Content, r.Content)
		}
		if same {
			return was
		}
	}
	raw := rawjson.Append(nil, `{"type":?,"toolCallId":?,"state":"input-available","input":?}`, "tool-"+c.Name, c.ID, input(c.Args))
	if rawjson.Text(rawjson.Field(was, "type")) == "dynamic-tool" || c.Name == "" {
		raw = rawjson.Append(nil, `{"type":"dynamic-tool","toolName":?,"toolCallId":?,"state":"input-available","input":?}`, c.Name, c.ID, input(c.Args))
	}
	if !answered {
		return raw
	}
	switch text, ok := onlyText(r.Content); {
	case ok && r.IsError:
		return rawjson.SetField(rawjson.SetField(raw, "state", []byte(`"output-error"`)), "errorText", rawjson.AppendQuote(nil, text))
	case ok:
		return rawjson.SetField(rawjson.SetField(raw, "state", []byte(`"output-available"`)), "output", rawjson.AppendQuote(nil, text))
	}
	return rawjson.SetField(rawjson.SetField(raw, "state", []byte(`"output-available"`)), "output", mcpResult(r))
}

// onlyText returns the text that content is; false if it is more than one text.
func onlyText(content []core.Part) (string, bool) {
	switch len(content) {
	case 0:
		return "", true
	case 1:
		text, ok := content[0].(core.Text)
		return string(text), ok
	}
	return "", false
}

// mcpResult returns a result in the shape of the Model Context Protocol, which the SDK passes on
// for tools of its servers.
func mcpResult(r core.ToolResult) []byte {
	var all [][]byte
	for _, p := range r.Content {
		switch p := p.(type) {
		case core.Text:
			all = append(all, rawjson.Append(nil, `{"type":"text","text":?}`, string(p)))
		case core.Image:
			if p.Data != "" {
				all = append(all, rawjson.Append(nil, `{"type":"image","data":?,"mimeType":?}`, p.Data, p.MediaType))
				continue
			}
			all = append(all, rawjson.Append(nil, `{"type":"text","text":?}`, "[image: "+p.URL+"]"))
		default:
			all = append(all, rawjson.Append(nil, `{"type":"text","text":?}`, apimessage.Note("file")))
		}
	}
	raw := rawjson.Append(nil, `{"content":?}`, rawjson.Array(all))
	if r.IsError {
		raw = rawjson.SetField(raw, "isError", []byte("true"))
	}
	return raw
}

// input returns the arguments of a call unchanged, if they are JSON.
func input(args string) []byte {
	if json.Valid([]byte(args)) {
		return []byte(args)
	}
	return apimessage.Args(args)
}
