package copilot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
)

// write writes the session with the changes by condensations and rewinds: the event of a hidden message is left out,
// with the other events of its calls; the event of a rewritten message is changed, and a new message gets an event of
// its own. Everything before Copilot's own last compaction is kept as long as nothing before its summary is visible.
func write(f *codec.File, out *codec.Output) error {
	data, same := f.StartAgain(out)
	if same {
		return nil
	}
	rows, _, err := jsonl.Rows(data)
	if err != nil {
		return err
	}
	r, err := readRows(data, rows, &codec.File{Journal: history.New()})
	if err != nil {
		return err
	}
	w := writer{reader: r, out: out, ending: jsonl.LineBreak(data), moved: map[string]string{}, saying: map[int]*history.Entry{}, add: map[int][]core.Message{}, gone: map[string]bool{}}
	w.decide(f.Journal.Timeline(), len(data))
	for _, row := range rows {
		w.event(row)
	}
	w.writeNew(len(data))
	return nil
}

// A writer writes a session that was changed.
type writer struct {
	*reader
	out    *codec.Output
	ending []byte

	base   int                    // where the line of the last compaction begins that has effect; -1 if there is none
	saying map[int]*history.Entry // the message of an event, by where its line begins
	add    map[int][]core.Message // new messages, by the event that they precede
	gone   map[string]bool        // calls that are left out
	moved  map[string]string      // the new successor or replacement of an event
	last   string                 // the event that was written last
	when   time.Time
	count  int
}

// decide determines the events to write; end is the end of the last line.
func (w *writer) decide(entries []history.Entry, end int) {
	w.base = -1
	for at, summary := range w.own {
		if at > w.base && begins(entries, w.at, at, summary) {
			w.base = at
		}
	}
	next := end
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		at, ok := w.at[e.Message.ID]
		_, compacts := w.own[at]
		switch visible := len(e.HiddenBy) == 0; {
		case ok && at <= w.base:
			return
		case ok && !compacts:
			next = at
			w.saying[at] = e
			for _, p := range e.Message.Parts {
				if c, ok := p.(core.ToolCall); ok && !visible {
					w.gone[c.ID] = true
				}
			}
		case visible:
			w.add[next] = slices.Insert(w.add[next], 0, e.Message)
		}
	}
}

// begins reports whether the view begins with the compaction at a position: before it and in it nothing is visible
// but its summary, if it has one.
func begins(entries []history.Entry, at map[string]int, position int, summary string) bool {
	end := 0
	for i := range entries {
		if where, ok := at[entries[i].Message.ID]; ok && (where < position || entries[i].Message.ID == summary) {
			end = i + 1
		}
	}
	found := summary == ""
	for i := range entries[:end] {
		if e := &entries[i]; len(e.HiddenBy) == 0 {
			if found || e.Message.ID != summary || e.RewrittenBy != "" {
				return false
			}
			found = true
		}
	}
	return found
}

// event writes a line of the file, if it is not left out.
func (w *writer) event(row jsonl.Row) {
	w.writeNew(row.At)
	raw := row.Raw
	id := rawjson.Text(rawjson.Field(raw, "id"))
	kind := rawjson.Text(rawjson.Field(raw, "type"))
	_, compacts := w.own[row.At]
	e := w.saying[row.At]
	switch call := rawjson.Text(rawjson.Field(rawjson.Field(raw, "data"), "toolCallId")); {
	case row.At <= w.base:
	case compacts, e != nil && len(e.HiddenBy) > 0, e == nil && strings.HasPrefix(kind, "tool.") && w.gone[call]:
		if id != "" {
			w.moved[id] = w.last
		}
		return
	case e != nil && e.RewrittenBy != "":
		w.put(raw, &e.Message)
		return
	}
	w.line(raw)
}

// put writes the event raw, changed to say m.
func (w *writer) put(raw []byte, m *core.Message) {
	data := rawjson.Field(raw, "data")
	var next []byte
	switch kind := rawjson.Text(rawjson.Field(raw, "type")); {
	case kind == "user.message" && m.Role == core.RoleUser:
		next = userData(data, m.Parts)
	case kind == "assistant.message" && m.Role == core.RoleAssistant:
		next = answerData(data, m.Parts)
	case kind == "tool.execution_complete" && len(m.Parts) == 1:
		if r, ok := m.Parts[0].(core.ToolResult); ok {
			next = resultData(data, r)
		}
	}
	if next == nil {
		w.message(m)
		return
	}
	w.line(rawjson.ReplaceValue(raw, data, next))
}

// line writes the event raw after the previous one.
func (w *writer) line(raw []byte) {
	if parent := rawjson.Field(raw, "parentId"); parent != nil {
		id := rawjson.Text(parent)
		for n := 0; n <= len(w.moved); n++ { // more go in a circle
			to, ok := w.moved[id]
			if !ok {
				break
			}
			id = to
		}
		if id != rawjson.Text(parent) {
			raw = rawjson.ReplaceValue(raw, parent, rawjson.QuoteOrNull(id))
		}
	}
	w.out.Add(jsonl.Line(raw), w.ending)
	if id := rawjson.Text(rawjson.Field(raw, "id")); id != "" {
		w.last = id
	}
	if t := rawjson.Time(rawjson.Field(raw, "timestamp")); !t.IsZero() {
		w.when = t
	}
}

// writeNew writes the new messages that precede the line at a position.
func (w *writer) writeNew(at int) {
	for i := range w.add[at] {
		w.message(&w.add[at][i])
	}
}

// message writes a new message.
func (w *writer) message(m *core.Message) {
	if m.Time.After(w.when) {
		w.when = m.Time
	}
	var said []core.Part
	for _, p := range m.Parts {
		if r, ok := p.(core.ToolResult); ok {
			w.new("tool.execution_complete", resultData(rawjson.Append(nil, `{"toolCallId":?,"success":true}`, r.CallID), r))
		} else {
			said = append(said, p)
		}
	}
	switch {
	case len(said) == 0:
	case m.Role == core.RoleAssistant:
		data := answerData([]byte(`{"messageId":"","content":""}`), said)
		w.new("assistant.message", rawjson.SetField(data, "messageId", rawjson.AppendQuote(nil, w.newID(data))))
	default: // an event has one text
		for len(said) > 0 {
			n, texts := 0, 0
			for ; n < len(said); n++ {
				if isText(said[n]) {
					if texts++; texts > 1 {
						break
					}
				}
			}
			w.new("user.message", userData([]byte(`{"content":""}`), said[:n]))
			said = said[n:]
		}
	}
}

func isText(p core.Part) bool { _, ok := p.(core.Text); return ok }

// new writes a new event.
func (w *writer) new(kind string, data []byte) {
	before, id := w.last, w.newID(data)
	w.line(rawjson.Append(nil, `{"type":?,"data":?,"id":?,"timestamp":?,"parentId":?}`, kind, data, id, w.when, rawjson.QuoteOrNull(before)))
	if before != "" {
		w.moved[before] = id
	}
}

// newID returns an ID. The same file gives the same IDs.
func (w *writer) newID(data []byte) string {
	w.count++
	return uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %d %s", w.last, w.count, data)).String()
}

// text returns the texts among parts, and notes for parts without a place.
func text(parts []core.Part) string {
	var all []core.Part
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			all = append(all, p)
		case core.Opaque:
			all = append(all, core.Text(apimessage.Note(p.Kind)))
		case core.Image:
			if p.Data == "" {
				all = append(all, core.Text("[image: "+p.URL+"]"))
			}
		default:
		}
	}
	return blocks.Join(all)
}

// images returns the list was with the images among parts, and with its other elements unchanged. Form is the form of
// a new image.
func images(was []byte, parts []core.Part, form string) [][]byte {
	left := slices.Clone(parts)
	var all [][]byte
	for raw := range rawjson.Elements(was) {
		img := image(raw)
		if img == nil || form == blob && rawjson.Text(rawjson.Field(raw, "type")) != "blob" {
			all = append(all, raw)
		} else if at := slices.IndexFunc(left, func(p core.Part) bool { return p == img[0] }); at >= 0 {
			all, left = append(all, raw), slices.Delete(left, at, at+1)
		}
	}
	for _, p := range left {
		if img, ok := p.(core.Image); ok && img.Data != "" {
			kind := img.MediaType
			if !strings.HasPrefix(kind, "image/") {
				kind = "image/png"
			}
			all = append(all, rawjson.Append(nil, form, img.Data, kind))
		}
	}
	return all
}

// The shapes of images.
const (
	blob   = `{"type":"blob","data":?,"mimeType":?}`
	binary = `{"type":"image","data":?,"mimeType":?}`
)

// withImages returns the object raw with images as the member name.
func withImages(raw []byte, name string, parts []core.Part, form string) []byte {
	was := rawjson.Field(raw, name)
	if all := images(was, parts, form); len(all) > 0 {
		return rawjson.SetField(raw, name, rawjson.Array(all))
	}
	return rawjson.CutField(raw, name)
}

// userData returns the data of a message of the user that says parts.
func userData(data []byte, parts []core.Part) []byte {
	name := "content"
	if rawjson.Text(rawjson.Field(data, "transformedContent")) != "" {
		name = "transformedContent"
	}
	return withImages(rawjson.SetField(data, name, rawjson.AppendQuote(nil, text(parts))), "attachments", parts, blob)
}

// answerData returns the data of an answer with the content of parts. Encrypted members are dropped: they belong to
// the former content.
func answerData(data []byte, parts []core.Part) []byte {
	var thoughts, said []core.Part
	var calls [][]byte
	made := map[string][]byte{}
	for raw := range rawjson.Elements(rawjson.Field(data, "toolRequests")) {
		made[rawjson.Text(rawjson.Field(raw, "toolCallId"))] = raw
	}
	for _, p := range parts {
		switch p := p.(type) {
		case core.Reasoning:
			thoughts = append(thoughts, core.Text(p.Text))
		case core.ToolCall:
			raw := made[p.ID]
			if raw == nil {
				raw = rawjson.Append(nil, `{"toolCallId":?,"name":?,"arguments":{},"type":"function"}`, p.ID, p.Name)
			}
			if name := rawjson.Field(raw, "name"); rawjson.Text(name) != p.Name {
				raw = rawjson.ReplaceValue(raw, name, rawjson.AppendQuote(nil, p.Name))
			}
			if arguments(rawjson.Field(raw, "arguments")) != p.Args {
				args := []byte(p.Args)
				if !json.Valid(args) {
					args = apimessage.Args(p.Args)
				}
				raw = rawjson.SetField(raw, "arguments", args)
			}
			calls = append(calls, raw)
		default:
			said = append(said, p)
		}
	}
	data = rawjson.SetField(data, "content", rawjson.AppendQuote(nil, text(said)))
	for _, name := range []string{"reasoningOpaque", "encryptedContent", "reasoningText", "toolRequests"} {
		if name == "reasoningText" && len(thoughts) > 0 {
			data = rawjson.SetField(data, name, rawjson.AppendQuote(nil, blocks.Join(thoughts)))
		} else if name == "toolRequests" && len(calls) > 0 {
			data = rawjson.SetField(data, name, rawjson.Array(calls))
		} else {
			data = rawjson.CutField(data, name)
		}
	}
	return data
}

// resultData returns the data of a result.
func resultData(data []byte, r core.ToolResult) []byte {
	data = rawjson.SetField(data, "success", []byte(strconv.FormatBool(!r.IsError)))
	said := rawjson.AppendQuote(nil, text(r.Content))
	value := rawjson.Field(data, "result")
	only := !slices.ContainsFunc(r.Content, func(p core.Part) bool { return !isText(p) })
	if fault := rawjson.Field(data, "error"); r.IsError && value == nil && only {
		if !rawjson.IsObject(fault) {
			fault = []byte(`{}`)
		}
		return rawjson.SetField(data, "error", rawjson.SetField(fault, "message", said))
	}
	if !rawjson.IsObject(value) {
		value = []byte(`{}`)
	}
	value = rawjson.SetField(value, "content", said)
	return rawjson.SetField(data, "result", withImages(value, "binaryResultsForLlm", r.Content, binary))
}

// convertFile writes a conversation of another format as a session.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	out.Warn("", "the directory of the session is not known: cwd is /")
	entries, begin, _ := convert.Entries(f.Journal, turns)
	w := writer{out: out, ending: []byte("\n"), moved: map[string]string{}, when: begin}
	w.new("session.start", rawjson.Append(nil, `{"sessionId":?,"version":1,"producer":"copilot-agent","copilotVersion":"1.0.0","startTime":?,"selectedModel":?,"context":{"cwd":"/"}}`,
		f.Journal.ID(), w.when, f.Model))
	if system != "" {
		w.new("system.message", rawjson.Append(nil, `{"role":"system","content":?}`, system))
	}
	for i := range entries {
		w.message(&entries[i].Message)
	}
	return nil
}
