package codex

import (
	"cmp"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/codec/items"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// write writes the rollout with the changes by condensations and rewinds: the line of a hidden item is left out, the
// line of a rewritten one is changed, and a new message gets lines of its own. Changes before Codex's own last
// compaction are made in its replacement_history, and the lines before it are kept. So are all lines that are not
// items: the user interface shows the session as it was.
//
// It follows the code by which Codex restores the history; test/agents tries it with Codex.
func write(f *codec.File, out *codec.Output) error {
	data, same := f.StartAgain(out)
	if same {
		return nil
	}
	r, err := parseRollout(data)
	if err != nil {
		return err
	}
	w := rolloutWriter{rollout: r, out: out, ending: jsonl.LineBreak(data), base: none}
	if err := w.decide(f, data); err != nil {
		return err
	}
	w.write()
	return nil
}

// A rolloutWriter writes a rollout that was changed.
type rolloutWriter struct {
	*rollout
	out    *codec.Output
	ending []byte

	base        int              // the line of the last compaction, or none
	replacement []*history.Entry // replaces everything before it, if that changed
	saying      map[int]*history.Entry
	undone      map[int]bool           // compacted lines without effect
	hidden      map[int]bool           // items that are left out
	add         map[int][]core.Message // new messages, by the line that they precede
}

// decide determines the lines to write.
func (w *rolloutWriter) decide(f *codec.File, data []byte) error {
	messages, err := w.messages(data)
	if err != nil {
		return err
	}
	was := session.ChangesOf(f, messages)
	w.undone = map[int]bool{}
	for i := range w.lines {
		l := &w.lines[i]
		if l.kind != "compacted" || l.void {
			continue
		}
		id := l.compactionID()
		if w.undone[i] = was.Own[id] && !was.Active[id]; was.Active[id] {
			w.base = i
		}
	}
	entries := f.Journal.Timeline()
	seen := 0 // how many entries the last compaction includes
	if w.base != none {
		id := w.lines[w.base].compactionID()
		for i := range entries {
			if line, ok := was.Line[entries[i].Message.ID]; ok && line < w.base || entries[i].InsertedBy == id {
				seen = i + 1
			}
		}
	}
	w.decideBefore(entries[:seen], was.Own)
	w.decideAfter(entries[seen:], was.Line)
	return nil
}

// decideBefore determines the new replacement history of the last compaction, if entries,
// which it includes, have changed.
func (w *rolloutWriter) decideBefore(entries []history.Entry, own map[string]bool) {
	changed := false
	var view []*history.Entry
	for i := range entries {
		e := &entries[i]
		for _, id := range e.HiddenBy {
			changed = changed || !own[id]
		}
		if len(e.HiddenBy) == 0 {
			view = append(view, e)
			changed = changed || e.RewrittenBy != "" || e.InsertedBy != "" && !own[e.InsertedBy]
		}
	}
	if changed {
		w.replacement = slices.Clip(view)
		if view == nil {
			w.replacement = []*history.Entry{}
		}
	}
}

func (w *rolloutWriter) decideAfter(entries []history.Entry, lineOf map[string]int) {
	w.saying, w.hidden, w.add = map[int]*history.Entry{}, map[int]bool{}, map[int][]core.Message{}
	next := len(w.lines)
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		line, ok := lineOf[e.Message.ID]
		switch {
		case ok:
			next = line
			w.saying[line] = e
			w.hidden[line] = len(e.HiddenBy) > 0
		case len(e.HiddenBy) == 0:
			w.add[next] = append(w.add[next], e.Message)
		}
	}
	for _, m := range w.add {
		slices.Reverse(m)
	}
}

func (w *rolloutWriter) write() {
	when := time.Time{}
	for i := range w.lines {
		l := &w.lines[i]
		w.writeNew(i, when)
		if !l.time.IsZero() {
			when = l.time
		}
		raw := l.Raw
		switch e := w.saying[i]; {
		case w.undone[i], w.hidden[i]:
			continue
		case i == w.base && w.replacement != nil:
			raw = w.rebase(raw)
		case e != nil && e.RewrittenBy != "":
			for _, item := range items.Patch(l.payload, &e.Message) {
				w.writeItem(item, raw, when)
			}
			continue
		}
		w.out.Add(jsonl.Line(raw), w.ending)
	}
	w.writeNew(len(w.lines), when)
}

// writeNew writes new messages before line i.
func (w *rolloutWriter) writeNew(i int, when time.Time) {
	for k := range w.add[i] {
		m := &w.add[i][k]
		if !m.Time.IsZero() {
			when = m.Time
		}
		for _, item := range items.Encode(m) {
			w.writeItem(item, nil, when)
		}
	}
}

// writeItem writes an item in a line like was, or a new one if was is nil.
func (w *rolloutWriter) writeItem(item, was []byte, when time.Time) {
	switch payload := rawjson.Field(was, "payload"); {
	case payload != nil:
		w.out.Add(jsonl.Line(rawjson.ReplaceValue(was, payload, item)))
	case w.bare:
		w.out.Add(jsonl.Line(item))
	default:
		w.out.Add(jsonl.Line(rolloutRecord("response_item", item, when)))
	}
	w.out.Add(w.ending)
}

// rolloutRecord returns a line.
func rolloutRecord(kind string, payload []byte, when time.Time) []byte {
	return rawjson.Append(nil, `{"timestamp":?,"type":?,"payload":?}`, when, kind, payload)
}

// rebase returns the compacted line raw with w.replacement as its history.
func (w *rolloutWriter) rebase(raw []byte) []byte {
	var all [][]byte
	for _, e := range w.replacement {
		was := []byte(e.Original.Source)
		if payload := rawjson.Field(was, "payload"); payload != nil {
			was = payload
		}
		switch {
		case was == nil:
			all = append(all, items.Encode(&e.Message)...)
		case e.RewrittenBy == "":
			all = append(all, was)
		default:
			all = append(all, items.Patch(was, &e.Message)...)
		}
	}
	payload := rawjson.Field(raw, "payload")
	return rawjson.ReplaceValue(raw, payload, rawjson.SetField(payload, "replacement_history", rawjson.Array(all)))
}

// responses is OpenAI's Responses API.
var responses = apimessage.API{Name: "codex", Vendor: "openai", MaxID: 64, MaxName: 64}

// convertFile writes a conversation of another format as a rollout.
func convertFile(f *codec.File, out *codec.Output) error {
	rest := *f // the system prompt has a place of its own
	rest.System = ""
	turns, _ := convert.Turns(&rest, &responses, out)
	out.Warn("", "the directory of the session is not known: cwd is /")
	when := cmp.Or(plain.Each(f.View(), func(m core.Message) time.Time { return m.Time })...)
	record := func(kind string, payload []byte) {
		out.Add(jsonl.Line(rolloutRecord(kind, payload, when)), []byte("\n"))
	}
	meta := rawjson.Append(nil, `{"id":?,"timestamp":?,"cwd":"/","originator":"condense","cli_version":"0.0.0","source":"cli"`, f.Journal.ID(), when)
	if f.System != "" {
		meta = rawjson.Append(meta, `,"base_instructions":{"text":?}`, f.System)
	}
	record("session_meta", append(meta, '}'))
	for _, t := range turns {
		if source, ok := f.Journal.Message(t.ID); ok && !source.Time.IsZero() {
			when = source.Time
		}
		m := core.Message{Role: t.Role, Parts: t.Parts}
		m.Parts = append(m.Parts, plain.Each(t.Results, func(r core.ToolResult) core.Part { return r })...)
		for _, item := range items.Encode(&m) {
			record("response_item", item)
		}
	}
	return nil
}
