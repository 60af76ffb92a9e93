package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// write writes the log unchanged and after it, if something changed, a line that sets the whole history to the view,
// as Gemini CLI does when it compresses it; then the appended records. In a file that is one object the view takes
// the place of the messages.
//
// A message that is sent whole and unchanged keeps every byte; in a changed message unchanged parts are kept.
func write(f *codec.File, out *codec.Output) error {
	data, same := f.StartAgain(out)
	if same {
		return nil
	}
	w, entries := writer{model: f.Model}, f.Journal.Timeline()
	if !detectLines(data) {
		out.Reset() // the envelope has the byte order mark
		w.Envelope = &f.Envelope
		w.view(entries)
		w.Write(out, func(data []byte) []byte { return rawjson.Field(data, "messages") })
		return nil
	}
	rows, _, err := jsonl.Rows(data)
	if err != nil {
		return err
	}
	w.view(entries)
	last, ending := rows[len(rows)-1], jsonl.LineBreak(data)
	out.Add(data[:last.At+len(last.Raw)], ending)
	was := slices.ContainsFunc(rows, func(r jsonl.Row) bool {
		return rawjson.IsArray(rawjson.Field(rawjson.Field(r.Raw, "$set"), "messages"))
	})
	if was || w.changed || slices.ContainsFunc(entries, func(e history.Entry) bool { return len(e.HiddenBy) > 0 }) {
		out.Add(jsonl.Line(rawjson.Append(nil, `{"$set":{"messages":?}}`, rawjson.Array(w.Records()[:w.appended]))), ending)
	}
	for _, raw := range w.Records()[w.appended:] {
		out.Add(jsonl.Line(raw), ending)
	}
	return nil
}

// convertFile writes a conversation of another format as a log.
func convertFile(f *codec.File, out *codec.Output) error {
	turns := convert.Session(f, "Gemini CLI", out)
	out.Warn("", "the directory of the session is not known: it belongs to no project")
	entries, begin, end := convert.Entries(f.Journal, turns)
	w := writer{model: f.Model, out: out}
	w.view(entries)
	project := sha256.Sum256([]byte("/"))
	out.Add(rawjson.Append(nil, `{"sessionId":?,"projectHash":?,"startTime":?,"lastUpdated":?,"kind":"main"}`, f.Journal.ID(), hex.EncodeToString(project[:]), begin, end), []byte("\n"))
	for _, raw := range w.Records() {
		out.Add(jsonl.Line(raw), []byte("\n"))
	}
	return nil
}

// A writer writes messages.
type writer struct {
	session.Array
	out   *codec.Output // for warnings; nil while writing content that was read
	said  *session.View
	model string // of a new answer
	names map[string]string
	when  time.Time // of the message that was written last

	appended int  // records before the ones appended since the file was read
	changed  bool // one of these has changed
}

func (w *writer) view(entries []history.Entry) {
	w.said = session.ViewOf(entries, func(raw []byte) int { all, _, _ := decodeRecord(raw); return len(all) })
	w.names = map[string]string{}
	groups := w.said.Groups
	old := len(groups)
	for old > 0 && groups[old-1].Record == nil && !slices.ContainsFunc(groups[old-1].Entries, func(e *history.Entry) bool { return e.InsertedBy != "" }) {
		old--
	}
	for i := range groups {
		g := &groups[i]
		w.changed = w.changed || i < old && !w.said.Same(g)
		for _, e := range g.Entries {
			for _, p := range e.Message.Parts {
				if c, ok := p.(core.ToolCall); ok {
					w.names[c.ID] = c.Name
				}
			}
		}
		if w.put(g); i < old {
			w.appended = w.Len()
		}
	}
}

// put writes g.
func (w *writer) put(g *session.Group) {
	m := &g.Entries[0].Message
	if !m.Time.IsZero() {
		w.when = m.Time
	}
	var raw []byte
	id := ""
	switch {
	case w.said.Same(g):
		w.Add(g.Record.Raw, g.Record.IDs[0])
		return
	case g.Record != nil:
		raw, id = g.Record.Raw, g.Record.IDs[0]
	case g.Role == core.RoleAssistant:
		raw = rawjson.Append(nil, `{"id":"","timestamp":?,"type":"gemini","content":"","thoughts":[],"tokens":null,"model":?}`, w.when, w.model)
	default:
		raw = rawjson.Append(nil, `{"id":"","timestamp":?,"type":"user","content":""}`, w.when)
	}
	if rawjson.Text(rawjson.Field(raw, "type")) == "gemini" {
		raw = w.answer(raw, g)
	} else {
		raw = w.user(raw, g)
	}
	if raw == nil {
		return
	}
	if g.Record == nil || g.Again {
		id = ""
		raw = rawjson.SetField(raw, "id", rawjson.AppendQuote(nil, uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%d %s", w.Len(), raw)).String()))
	}
	w.Add(raw, id)
}

// user returns the user's message raw with the content of g; nil if that is empty.
func (w *writer) user(raw []byte, g *session.Group) []byte {
	var parts []core.Part
	for _, e := range g.Entries {
		if g.Record != nil || e.Message.Role != core.RoleTool { // else it is with its call
			parts = append(parts, e.Message.Parts...)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	if notSent(blocks.Join(parts)) {
		parts = slices.Insert(parts, 0, core.Part(core.Text("Message: "))) // Gemini CLI would not send it
	}
	return rawjson.SetField(raw, "content", w.content(rawjson.Field(raw, "content"), parts))
}

// content returns the content was changed to parts.
func (w *writer) content(was []byte, parts []core.Part) []byte {
	if !rawjson.IsArray(was) {
		if len(parts) == 0 {
			return []byte(`""`)
		}
		if text, ok := parts[0].(core.Text); ok && len(parts) == 1 {
			return rawjson.AppendQuote(nil, string(text))
		}
		was = nil
	}
	p := session.Patcher{Decode: decodePart, Encode: w.part}
	return rawjson.Array(p.Parts(was, [][]core.Part{parts}))
}

// decodePart returns the content of a part.
func decodePart(raw []byte) core.Part {
	parts := blocks.Text(blocks.OrEmpty(raw))
	if rawjson.IsObject(raw) {
		parts = geminiPart(raw)
	}
	if len(parts) != 1 {
		return nil
	}
	return parts[0]
}

// part returns p as a part of content; was is its previous form, nil if there is none.
func (w *writer) part(was []byte, p core.Part) []byte {
	if was != nil && core.EqualParts([]core.Part{decodePart(was)}, []core.Part{p}) {
		return was
	}
	switch p := p.(type) {
	case core.Text:
		return rawjson.Append(nil, `{"text":?}`, string(p))
	case core.Reasoning:
		return rawjson.Append(nil, `{"text":?,"thought":true}`, p.Text)
	case core.Image:
		kind := p.MediaType
		if !strings.HasPrefix(kind, "image/") {
			kind = "image/png"
		}
		if p.Data == "" {
			return rawjson.Append(nil, `{"fileData":{"fileUri":?,"mimeType":?}}`, p.URL, kind)
		}
		return rawjson.Append(nil, `{"inlineData":{"mimeType":?,"data":?}}`, kind, p.Data)
	case core.ToolCall:
		if rawjson.IsObject(was) { // it may be signed
			made := rawjson.SetField(rawjson.Field(was, "functionCall"), "args", apimessage.Args(p.Args))
			return rawjson.SetField(was, "functionCall", made)
		}
		return rawjson.Append(nil, `{"functionCall":{"id":?,"name":?,"args":?}}`, p.ID, p.Name, apimessage.Args(p.Args))
	case core.ToolResult:
		return w.response(p, core.Text(blocks.Join(p.Content)))
	case core.Opaque:
		if raw := []byte(p.JSON); json.Valid(raw) && rawjson.IsObject(raw) && core.EqualParts(geminiPart(raw), []core.Part{p}) {
			return raw
		}
		return rawjson.Append(nil, `{"text":?}`, apimessage.Note(p.Kind))
	}
	return nil
}

// response returns a text of the result r as a part.
func (w *writer) response(r core.ToolResult, text core.Text) []byte {
	if r.IsError {
		return rawjson.Append(nil, `{"functionResponse":{"id":?,"name":?,"response":{"error":?}}}`, r.CallID, w.names[r.CallID], string(text))
	}
	return rawjson.Append(nil, `{"functionResponse":{"id":?,"name":?,"response":{"output":?}}}`, r.CallID, w.names[r.CallID], string(text))
}

// answer returns the model's message raw with the content of g; nil if that is empty.
func (w *writer) answer(raw []byte, g *session.Group) []byte {
	was := rawjson.Field(raw, "content")
	whole := false // the content has thoughts and calls too
	for part := range rawjson.Elements(was) {
		switch decodePart(part).(type) {
		case core.Reasoning, core.ToolCall:
			whole = true
		default:
		}
	}
	var content, thoughts []core.Part
	var calls []core.ToolCall
	for _, e := range g.Entries {
		for _, p := range e.Message.Parts {
			switch p := p.(type) {
			case core.ToolResult:
				continue
			case core.ToolCall:
				calls = append(calls, p)
				if !whole {
					continue
				}
			case core.Reasoning:
				if !whole {
					thoughts = append(thoughts, p)
					continue
				}
			default:
			}
			content = append(content, p)
		}
	}
	if len(content)+len(thoughts)+len(calls) == 0 {
		return nil
	}
	raw = rawjson.SetField(raw, "content", w.content(was, content))
	if !whole {
		p := session.Patcher{Decode: decodeThought, Encode: w.thought}
		if list := rawjson.Field(raw, "thoughts"); list != nil || len(thoughts) > 0 {
			raw = rawjson.SetField(raw, "thoughts", rawjson.Array(p.Parts(list, [][]core.Part{thoughts})))
		}
	}
	made := map[string][]byte{}
	for entry := range rawjson.Elements(rawjson.Field(raw, "toolCalls")) {
		made[rawjson.Text(rawjson.Field(entry, "id"))] = entry
	}
	var all [][]byte
	for _, c := range calls {
		r, answered := w.said.Result(g, c.ID)
		if entry := made[c.ID]; entry != nil || answered || !whole {
			all = append(all, w.call(entry, c, r, answered))
		}
	}
	if len(all) == 0 {
		return rawjson.CutField(raw, "toolCalls")
	}
	return rawjson.SetField(raw, "toolCalls", rawjson.Array(all))
}

func (w *writer) thought(was []byte, p core.Part) []byte {
	r, ok := p.(core.Reasoning)
	if was != nil || !ok {
		return was
	}
	return rawjson.Append(nil, `{"subject":"","description":?,"timestamp":?}`, r.Text, w.when)
}

// call returns a member of "toolCalls" for c and its result, if it is answered. Was is its previous form, nil if
// there is none.
func (w *writer) call(was []byte, c core.ToolCall, r core.ToolResult, answered bool) []byte {
	status := "executing"
	switch {
	case r.IsError:
		status = "error"
	case answered:
		status = "success"
	}
	if was == nil {
		was = rawjson.Append(nil, `{"id":?,"name":?,"args":?,"status":"","timestamp":?}`, c.ID, c.Name, apimessage.Args(c.Args), w.when)
	} else if old := call(was); old != c {
		was = rawjson.SetField(rawjson.SetField(was, "name", rawjson.AppendQuote(nil, c.Name)), "args", apimessage.Args(c.Args))
	}
	if old, had := resultOf(was); had == answered && (!answered || old.IsError == r.IsError && core.EqualParts(old.Content, r.Content)) && rawjson.Text(rawjson.Field(was, "status")) != "" {
		return was
	}
	was = rawjson.CutField(rawjson.SetField(was, "status", rawjson.AppendQuote(nil, status)), "result")
	if !answered {
		return was
	}
	// The API refuses a call that has not exactly one response: it has all texts, and media follow it.
	var texts, media []core.Part
	for _, p := range r.Content {
		switch p := p.(type) {
		case core.Text:
			texts = append(texts, p)
		case core.Image, core.Opaque:
			media = append(media, p)
		default:
			if w.out != nil {
				w.out.Warn("", "content in the result of call %s was left out: Gemini CLI has no place for it", c.ID)
			}
		}
	}
	result := [][]byte{w.response(r, core.Text(blocks.Join(texts)))}
	result = append(result, plain.Each(media, func(p core.Part) []byte { return w.part(nil, p) })...)
	return rawjson.SetField(was, "result", rawjson.Array(result))
}
