package opencode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/session"
)

// write writes the view. A message that is sent whole and unchanged keeps every byte; in a changed message, unchanged
// parts are kept, and so are parts that are never sent. Messages that OpenCode's own compaction hides are kept as
// long as nothing before its summary is visible.
//
// OpenCode sorts messages by time and ID, and parts by ID: new ones get IDs that sort after the previous ones.
func write(f *codec.File, out *codec.Output) error {
	if f.Unchanged() {
		out.Add(f.Original())
		return nil
	}
	w := writer{Array: session.Array{Envelope: &f.Envelope}, model: f.Model}
	frame := bytes.TrimPrefix(slices.Concat(f.Envelope.Head, f.Envelope.Tail), codec.ByteOrderMark)
	info := rawjson.Field(frame, "info")
	w.session, w.dir = rawjson.Text(rawjson.Field(info, "id")), rawjson.Text(rawjson.Field(info, "directory"))
	entries := f.Journal.Timeline()
	w.view(entries[w.compacted(entries, f.Imported()):])
	w.Write(out, func(data []byte) []byte { return rawjson.Field(data, "messages") })
	return nil
}

// convertFile writes a conversation of another format.
func convertFile(f *codec.File, out *codec.Output) error {
	turns := convert.Session(f, "OpenCode", out)
	out.Warn("", "the directory of the session is not known: it is /")
	entries, begin, end := convert.Entries(f.Journal, turns)
	w := writer{session: newID("ses", f.Journal.ID(), 0), dir: "/", model: f.Model, out: out}
	w.view(entries)
	out.Add(rawjson.Append(nil, `{"info":{"id":?,"slug":"condensed","projectID":"global","directory":"/","title":"Condensed","version":"1.2.0","time":{"created":?,"updated":?}},"messages":`,
		w.session, millis(begin), millis(end)))
	out.Add(rawjson.Array(w.Records()), []byte("}\n"))
	return nil
}

// A writer writes messages.
type writer struct {
	session.Array
	out          *codec.Output // for warnings; nil while writing content that was read
	said         *session.View
	session, dir string
	model        string // of a new answer
	provider     string
	agent        string

	when   time.Time // of the message that was written last
	last   string    // its ID
	user   string    // the last one of the user
	count  int       // of new IDs
	prefix string    // the ID of the message that is written
	part0  string    // and of its part that was written last
}

// compacted writes the messages of OpenCode's last compaction, if it begins the view, and returns the number of
// entries written.
func (w *writer) compacted(entries []history.Entry, own map[string]bool) int {
	first := slices.IndexFunc(entries, func(e history.Entry) bool { return len(e.HiddenBy) == 0 })
	if first < 0 || !own[entries[first].InsertedBy] {
		return 0
	}
	end, id := first, entries[first].InsertedBy
	for i := range entries {
		switch e := &entries[i]; {
		case e.InsertedBy != id:
		case i != end || len(e.HiddenBy) > 0 || e.RewrittenBy != "":
			return 0
		default:
			end++
		}
	}
	for i := range entries[:end] {
		if m := &entries[i].Original; m.Source != nil {
			w.Add(m.Source, m.ID)
			w.note(m.Source)
		}
	}
	return end
}

// note takes values from the record raw that later records need.
func (w *writer) note(raw []byte) {
	info := rawjson.Field(raw, "info")
	for k, v := range rawjson.Fields(info) {
		switch string(k) {
		case "id":
			w.last = rawjson.Text(v)
		case "time":
			w.when = rawjson.UnixMilli(rawjson.Field(v, "created"))
		case "modelID":
			w.model = rawjson.Text(v)
		case "providerID":
			w.provider = rawjson.Text(v)
		case "agent":
			w.agent = rawjson.Text(v)
		case "model":
			w.model, w.provider = rawjson.Text(rawjson.Field(v, "modelID")), rawjson.Text(rawjson.Field(v, "providerID"))
		}
	}
	if rawjson.Text(rawjson.Field(info, "role")) == "user" {
		w.user = w.last
	}
}

func (w *writer) view(entries []history.Entry) {
	w.said = session.ViewOf(entries, func(raw []byte) int { r, _ := decodeOpenCode(raw); return len(r.messages) })
	groups := w.said.Groups
	for i := range groups { // new messages before the first one take their time and model from it
		if groups[i].Record != nil && w.when.IsZero() {
			first := *w
			first.note(groups[i].Record.Raw)
			w.when, w.model, w.provider, w.agent = first.when, first.model, first.provider, first.agent
			break
		}
	}
	for i := range groups {
		if g := &groups[i]; g.Record != nil {
			w.put(g)
		} else {
			w.add(g)
		}
	}
}

// put writes the record of g as g says.
func (w *writer) put(g *session.Group) {
	raw, first := g.Record.Raw, g.Record.IDs[0]
	info := rawjson.Field(raw, "info")
	w.prefix = rawjson.Text(rawjson.Field(info, "id"))
	if g.Again {
		first, w.prefix = "", w.newID("msg")
		info = rawjson.SetField(info, "id", rawjson.AppendQuote(nil, w.prefix))
	}
	parts := rawjson.Field(raw, "parts")
	if !w.said.Same(g) {
		parts = w.parts(parts, g)
	}
	// A compaction that no longer begins the view is two messages like any others.
	if summary := rawjson.Field(info, "summary"); rawjson.IsTrue(summary) {
		info = rawjson.CutField(info, "summary")
	}
	parts = plain(parts)
	if was := rawjson.Field(raw, "info"); string(info) != string(was) {
		raw = rawjson.ReplaceValue(raw, was, info)
	}
	if was := rawjson.Field(raw, "parts"); string(parts) != string(was) {
		raw = rawjson.ReplaceValue(raw, was, parts)
	}
	w.Add(raw, first)
	w.note(raw)
}

// plain returns parts with the question of a compaction as a text.
func plain(parts []byte) []byte {
	for part := range rawjson.Elements(parts) {
		if rawjson.Text(rawjson.Field(part, "type")) == "compaction" {
			text := rawjson.SetField(rawjson.SetField(part, "type", []byte(`"text"`)), "text", rawjson.AppendQuote(nil, question))
			return plain(rawjson.ReplaceValue(parts, part, text))
		}
	}
	return parts
}

// add writes a new message.
func (w *writer) add(g *session.Group) {
	if t := g.Entries[0].Message.Time; t.After(w.when) {
		w.when = t
	}
	w.prefix = w.newID("msg")
	parts := w.parts(nil, g)
	if len(parts) <= len("[]") {
		return
	}
	info := rawjson.Append(nil, `{"id":?,"sessionID":?,"role":"user","time":{"created":?},"agent":?,"model":{"providerID":?,"modelID":?}}`,
		w.prefix, w.session, millis(w.when), cmp.Or(w.agent, "build"), cmp.Or(w.provider, "unknown"), cmp.Or(w.model, "unknown"))
	if g.Role == core.RoleAssistant {
		finish := "stop"
		for _, p := range g.Entries[0].Message.Parts {
			if _, ok := p.(core.ToolCall); ok {
				finish = "tool-calls"
			}
		}
		info = rawjson.Append(nil, `{"id":?,"sessionID":?,"role":"assistant","time":{"created":?,"completed":?},"parentID":?,"modelID":?,"providerID":?,"mode":?,"agent":?,`+
			`"path":{"cwd":?,"root":?},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"finish":?}`,
			w.prefix, w.session, millis(w.when), millis(w.when), cmp.Or(w.user, w.prefix), cmp.Or(w.model, "unknown"), cmp.Or(w.provider, "unknown"), cmp.Or(w.agent, "build"), cmp.Or(w.agent, "build"),
			cmp.Or(w.dir, "/"), cmp.Or(w.dir, "/"), finish)
	}
	raw := rawjson.Append(nil, `{"info":?,"parts":?}`, info, parts)
	w.Add(raw, "")
	w.note(raw)
}

func millis(t time.Time) []byte { return strconv.AppendInt(nil, max(0, t.UnixMilli()), 10) }

// newID returns an ID that sorts after the previous message's or part's.
func (w *writer) newID(kind string) string {
	w.count++
	after := w.part0
	if kind == "msg" {
		after = w.last
	}
	if after != "" {
		return fmt.Sprintf("%s_%06d", after, w.count)
	}
	return newID(kind, strings.TrimPrefix(w.prefix, "msg_"), w.count)
}

// newID returns an ID in the shape of OpenCode's, which sorts before any that it makes.
func newID(kind, of string, n int) string {
	of = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' {
			return r
		}
		return -1
	}, of)
	return fmt.Sprintf("%s_000000%06d%s", kind, n, of)
}

// parts returns the parts of a message that says g and was an array of parts before; nil if it is
// new.
func (w *writer) parts(was []byte, g *session.Group) []byte {
	p := session.Patcher{
		Decode: func(part []byte) core.Part { return decodePart(g.Role, part) },
		Encode: func(was []byte, p core.Part) []byte {
			raw := w.part(g, was, p)
			w.part0 = rawjson.Text(rawjson.Field(raw, "id"))
			return raw
		},
		Only: g.Again,
	}
	w.part0 = ""
	if g.Role == core.RoleAssistant {
		p.Step = func() []byte { return w.newPart(`{"type":"step-start"}`) }
	}
	all := p.Parts(was, g.Said())
	if g.Again {
		for i, raw := range all {
			raw = rawjson.SetField(raw, "id", rawjson.AppendQuote(nil, w.newID("prt")))
			all[i] = rawjson.SetField(raw, "messageID", rawjson.AppendQuote(nil, w.prefix))
		}
	}
	return rawjson.Array(all)
}

// decodePart returns the content of a part of a message; nil if it is not sent.
func decodePart(role core.Role, part []byte) core.Part {
	var r opencodeRecord
	list := rawjson.Array([][]byte{part})
	if role == core.RoleAssistant {
		if r.assistant(list) != nil {
			return nil
		}
	} else if r.user(list) != nil {
		return nil
	}
	if len(r.messages) == 0 || len(r.messages[0].Parts) != 1 {
		return nil
	}
	return r.messages[0].Parts[0]
}

// newPart returns the part raw with IDs of its own.
func (w *writer) newPart(raw string) []byte {
	return rawjson.Append([]byte(strings.TrimSuffix(raw, "}")), `,"id":?,"sessionID":?,"messageID":?}`, w.newID("prt"), w.session, w.prefix)
}

// part returns p as a part; was is its previous form, nil if there is none.
func (w *writer) part(g *session.Group, was []byte, p core.Part) []byte {
	switch p := p.(type) {
	case core.ToolCall:
		return w.call(g, was, p)
	case core.Text:
		switch {
		case was == nil:
			return w.newPart(string(rawjson.Append(nil, `{"type":"text","text":?}`, string(p))))
		case rawjson.Text(rawjson.Field(was, "type")) == "text" && rawjson.Text(rawjson.Field(was, "text")) != string(p):
			return rawjson.SetField(was, "text", rawjson.AppendQuote(nil, string(p)))
		}
	case core.Reasoning:
		if was == nil {
			raw := rawjson.Append(nil, `{"type":"reasoning","text":?,"time":{"start":?,"end":?}}`, p.Text, millis(w.when), millis(w.when))
			switch {
			case p.Signature != "":
				raw = rawjson.SetField(raw, "metadata", rawjson.Append(nil, `{"anthropic":{"signature":?}}`, p.Signature))
			case p.Encrypted != "":
				raw = rawjson.SetField(raw, "metadata", rawjson.Append(nil, `{"anthropic":{"redactedData":?}}`, p.Encrypted))
			}
			return w.newPart(string(raw))
		}
	case core.Image:
		if was == nil {
			return w.newPart(string(file(p)))
		}
	case core.Opaque:
		if raw := []byte(p.JSON); was == nil && p.Kind == "file" && json.Valid(raw) && rawjson.IsObject(raw) && rawjson.IsString(rawjson.Field(raw, "url")) {
			return raw
		}
		if was == nil {
			return w.newPart(string(rawjson.Append(nil, `{"type":"text","text":?}`, apimessage.Note(p.Kind))))
		}
	case core.ToolResult: // with its call
	}
	return was
}

func file(img core.Image) []byte {
	return rawjson.Append(nil, `{"type":"file","mime":?,"url":?}`, cmp.Or(img.MediaType, "image/png"), apimessage.ImageURL(img))
}

// call returns a call with its result. Unchanged content keeps every byte.
func (w *writer) call(g *session.Group, was []byte, c core.ToolCall) []byte {
	r, answered := w.said.Result(g, c.ID)
	state := rawjson.Field(was, "state")
	old, had := opencodeResult(c.ID, state)
	same := was != nil && decodePart(core.RoleAssistant, was) == core.Part(c)
	if same && had == answered && (!answered || old.IsError == r.IsError && core.EqualParts(old.Content, r.Content)) {
		return was
	}
	if was == nil {
		was = w.newPart(string(rawjson.Append(nil, `{"type":"tool","callID":?,"tool":?,"state":{}}`, c.ID, c.Name)))
	}
	input := apimessage.Args(c.Args)
	if same {
		input = rawjson.Field(state, "input")
	}
	when := rawjson.Field(state, "time")
	if span := rawjson.Append(nil, `{"start":?,"end":?}`, millis(w.when), millis(w.when)); rawjson.Field(when, "start") == nil || rawjson.Field(when, "end") == nil {
		when = span
	}
	when = rawjson.CutField(when, "compacted")
	var next []byte
	text := blocks.Join(r.Content)
	switch {
	case !answered:
		next = rawjson.Append(nil, `{"status":"pending","input":?,"raw":""}`, input)
	case r.IsError:
		next = rawjson.Append(nil, `{"status":"error","input":?,"error":?,"time":?}`, input, text, when)
	default:
		next = rawjson.Append(nil, `{"status":"completed","input":?,"output":?,"title":?,"metadata":?,"time":?}`,
			input, text, rawjson.Text(rawjson.Field(state, "title")), orObject(rawjson.Field(state, "metadata")), when)
		if files := w.attachments(r); len(files) > 0 {
			next = rawjson.SetField(next, "attachments", rawjson.Array(files))
		}
	}
	if r.IsError && len(w.attachments(r)) > 0 && w.out != nil {
		w.out.Warn(g.Entries[0].Message.ID, "images in the result of a failed tool were left out: OpenCode has no place for them")
	}
	return rawjson.SetField(rawjson.SetField(was, "tool", rawjson.AppendQuote(nil, c.Name)), "state", next)
}

// orObject returns raw if it is an object, else an empty one.
func orObject(raw []byte) []byte {
	if rawjson.IsObject(raw) {
		return raw
	}
	return []byte("{}")
}

// attachments returns the files of a result.
func (w *writer) attachments(r core.ToolResult) [][]byte {
	var all [][]byte
	for _, p := range r.Content {
		switch p := p.(type) {
		case core.Image:
			all = append(all, w.newPart(string(file(p))))
		case core.Opaque:
			if raw := []byte(p.JSON); p.Kind == "file" && json.Valid(raw) && rawjson.IsString(rawjson.Field(raw, "url")) {
				all = append(all, raw)
			} else if w.out != nil {
				w.out.Warn("", "content of kind %q in the result of a tool was left out: OpenCode has no place for it", p.Kind)
			}
		default:
		}
	}
	return all
}
