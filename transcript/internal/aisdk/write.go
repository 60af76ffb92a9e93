package aisdk

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/blocks"
	"github.com/condensehq/condense/transcript/internal/codec"
	"github.com/condensehq/condense/transcript/internal/convert"
)

// write writes the view. A message of which every part is sent, unchanged, keeps every byte. In
// one that changed, parts that did not are kept, and so are those that are never sent; a new
// message has only an id, a role and parts.
func write(f *codec.File, out *codec.Output) error {
	if f.Unchanged() {
		out.Add(f.Original())
		return nil
	}
	w := writer{of: map[string]int{}, results: map[string]core.ToolResult{}, taken: codec.IDs{}, envelope: &f.Envelope}
	entries := f.Journal.Timeline()
	w.own(entries)
	w.view(entries)
	head, tail := frame(&f.Envelope, len(w.out) == 0)
	out.Add(head)
	for i, raw := range w.out {
		if i > 0 {
			out.Add(w.gaps[i])
		}
		out.Add(raw)
	}
	out.Add(tail)
	return nil
}

// frame returns what is before and after the messages. Empty says that there are none.
func frame(e *codec.Envelope, empty bool) (head, tail []byte) {
	head, tail = e.Head, e.Tail
	if len(head) == 0 { // no message of the file had a place
		at := 0
		if bytes.HasPrefix(tail, codec.ByteOrderMark) {
			at = len(codec.ByteOrderMark)
		}
		messages := list(tail[at:])
		end := at + rawjson.Offset(tail[at:], messages) + rawjson.SkipValue(messages, 0) - 1
		head, tail = tail[:end:end], tail[end:]
		if trimmed := bytes.TrimRight(head, " \t\r\n"); !empty && !bytes.HasSuffix(trimmed, []byte("[")) {
			head = append(head, ',')
		}
		return head, tail
	}
	if empty { // messages that are not sent may be on both sides, with their commas
		trimmed := bytes.TrimRight(head, " \t\r\n")
		if before, ok := bytes.CutSuffix(trimmed, []byte(",")); ok {
			head = before
		} else if after, ok := bytes.CutPrefix(bytes.TrimLeft(tail, " \t\r\n"), []byte(",")); ok {
			tail = after
		}
	}
	return head, tail
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
				out.Warn(t.ID, "what is neither text nor an image in the result of a tool became a note")
			}
		}
	}
	w := writer{of: map[string]int{}, results: map[string]core.ToolResult{}, taken: codec.IDs{}}
	w.view(entries)
	out.AddString("[")
	out.Add(bytes.Join(w.out, []byte(",\n ")))
	out.AddString("]\n")
	return nil
}

// A writer writes messages.
type writer struct {
	records []record
	of      map[string]int // the record of a message
	results map[string]core.ToolResult
	taken   codec.IDs

	envelope  *codec.Envelope // nil if no record has a place
	out, gaps [][]byte        // the messages, and what is before each
}

// own finds the records of the file that entries come from.
func (w *writer) own(entries []history.Entry) {
	for i := range entries {
		m := &entries[i].Original
		last := len(w.records) - 1
		if entries[i].InsertedBy != "" {
			continue
		}
		if m.Source != nil {
			all, bad := decode(m.Source)
			if bad != nil {
				continue
			}
			w.records = append(w.records, record{raw: m.Source, id: rawjson.Text(rawjson.Field(m.Source, "id")), messages: all[:1], steps: len(all)})
			last++
			w.records[last].messages[0].ID = m.ID
			w.of[m.ID] = last
		} else if last >= 0 {
			// What follows in the same record is named after the first.
			if r := &w.records[last]; len(r.messages) < r.steps && strings.HasPrefix(m.ID, r.messages[0].ID+".") {
				r.messages = append(r.messages, core.Message{ID: m.ID})
				w.of[m.ID] = last
			}
		}
	}
}

// A group is what becomes one message of the user interface.
type group struct {
	record  int // or none
	role    core.Role
	entries []*history.Entry
}

const none = -1

func (w *writer) view(entries []history.Entry) {
	var groups []group
	for i := range entries {
		e := &entries[i]
		if len(e.HiddenBy) > 0 {
			continue
		}
		for _, p := range e.Message.Parts {
			if r, ok := p.(core.ToolResult); ok {
				w.results[r.CallID] = r
			}
		}
		at, ok := w.of[e.Message.ID]
		if !ok {
			at = none
		}
		role := e.Message.Role
		if role == core.RoleTool {
			role = core.RoleAssistant
		}
		// A new step of the assistant belongs to the message before it.
		if n := len(groups); n > 0 && groups[n-1].record == at && groups[n-1].role == role && (at != none || role == core.RoleAssistant) {
			groups[n-1].entries = append(groups[n-1].entries, e)
			continue
		}
		groups = append(groups, group{at, role, []*history.Entry{e}})
	}
	for i := range w.records {
		w.taken.Next(0, w.records[i].id)
	}
	seen := map[int]bool{}
	for i := range groups {
		g := &groups[i]
		if g.record != none {
			w.put(w.records[g.record].raw, g, seen[g.record])
			seen[g.record] = true
			continue
		}
		id := w.taken.Next(len(w.out)+1, g.entries[0].Message.ID)
		raw := rawjson.Append(nil, `{"id":?,"role":?,"parts":?}`, id, string(g.role), w.parts(nil, g))
		if len(rawjson.Field(raw, "parts")) > len("[]") {
			w.add(raw, "")
		}
	}
}

// add adds the message raw, which replaces that with the given ID, if any.
func (w *writer) add(raw []byte, id string) {
	var gap []byte
	if w.envelope != nil {
		if gap = w.envelope.Sep; id != "" {
			gap = w.envelope.Gap(id)
		}
	}
	w.out, w.gaps = append(w.out, raw), append(w.gaps, gap)
}

// put writes the record raw as g says. Again says that a part of it was written before.
func (w *writer) put(raw []byte, g *group, again bool) {
	first := w.records[g.record].messages[0].ID
	if !again && w.same(g) {
		w.add(raw, first)
		return
	}
	if again {
		first = ""
		raw = rawjson.SetField(raw, "id", rawjson.AppendQuote(nil, w.taken.Next(len(w.out)+1, w.records[g.record].id)))
	}
	raw = rawjson.SetField(raw, "parts", w.parts(rawjson.Field(raw, "parts"), g))
	raw = rawjson.CutField(raw, "toolInvocations")
	if rawjson.Field(raw, "content") != nil {
		last := g.entries[len(g.entries)-1].Message
		raw = rawjson.SetField(raw, "content", rawjson.AppendQuote(nil, blocks.Join(last.Parts)))
	}
	w.add(raw, first)
}

// same reports whether g is all that its record says.
func (w *writer) same(g *group) bool {
	was := w.records[g.record].messages
	if len(was) != len(g.entries) || len(was) != w.records[g.record].steps {
		return false
	}
	answered := map[string]bool{}
	for i, e := range g.entries {
		if e.Message.ID != was[i].ID || e.RewrittenBy != "" {
			return false
		}
		for _, p := range e.Message.Parts {
			if r, ok := p.(core.ToolResult); ok {
				answered[r.CallID] = true
			}
		}
	}
	for _, e := range g.entries { // the result of a call may be new
		for _, p := range e.Message.Parts {
			if c, ok := p.(core.ToolCall); ok && !answered[c.ID] {
				if _, ok := w.results[c.ID]; ok {
					return false
				}
			}
		}
	}
	return true
}

// parts returns the parts of a message that says g and was an array of parts before; nil if it
// is new.
func (w *writer) parts(was []byte, g *group) []byte {
	var raw [][]byte
	var old []core.Part // what they say; nil if they are not sent
	step := false
	for part := range rawjson.Elements(was) {
		d := decoder{role: g.role}
		var said core.Part
		if d.part(part) == nil && len(d.said) == 1 {
			said = d.said[0]
		}
		step = step || rawjson.Text(rawjson.Field(part, "type")) == "step-start"
		raw, old = append(raw, part), append(old, said)
	}
	var out [][]byte
	next := 0
	unsent := func(to int) { // the parts before to that are not sent
		for ; next < to; next++ {
			if old[next] == nil && rawjson.Text(rawjson.Field(raw[next], "type")) != "step-start" {
				out = append(out, raw[next])
			}
		}
	}
	steps := 0
	for _, e := range g.entries {
		var said []core.Part
		for _, p := range e.Message.Parts {
			if _, ok := p.(core.ToolResult); !ok {
				said = append(said, p)
			}
		}
		if len(said) == 0 {
			continue
		}
		if steps++; g.role == core.RoleAssistant && (step || was == nil || steps > 1) {
			out = append(out, []byte(`{"type":"step-start"}`))
		}
		match := blocks.Match(old, said)
		for i, p := range said {
			j := match[i]
			if _, ok := p.(core.Text); ok && j >= 0 && old[j] != p { // another text at the same position
				j = none
			}
			if j < 0 {
				out = append(out, w.part(nil, p))
				continue
			}
			unsent(j)
			out = append(out, w.part(raw[j], p))
			old[j] = core.Text("") // it is used
		}
	}
	unsent(len(raw))
	return rawjson.Array(out)
}

// part returns p as a part; was is the one that said it before, nil if there is none.
func (w *writer) part(was []byte, p core.Part) []byte {
	switch p := p.(type) {
	case core.ToolCall:
		return w.call(was, p)
	case core.Text:
		if was == nil {
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

// call returns a call with its result. What did not change keeps every byte.
func (w *writer) call(was []byte, c core.ToolCall) []byte {
	r, answered := w.results[c.ID]
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

// input returns the arguments of a call as they are, if they are JSON.
func input(args string) []byte {
	if json.Valid([]byte(args)) {
		return []byte(args)
	}
	return apimessage.Args(args)
}
