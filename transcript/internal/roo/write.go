package roo

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/rawjson"
)

// write writes every message of the journal, with tags that make Roo send the view:
//
//   - If the view begins with a summary and everything before it is hidden, it becomes one of
//     Roo's summaries, and the messages that it replaces are tagged with its name.
//   - Any other hidden message is tagged with the name of a truncation marker. That is the
//     first message that the condensation inserted. If there is none, or if it is where Roo
//     would not find it, one is added that hides itself too.
//   - A rewritten message is hidden, and a copy with the new content follows it.
//
// A message of Roo's keeps every byte outside of its tags.
func write(f *codec.File, out *codec.Output, own bool) error {
	if own && f.Unchanged() {
		out.Add(f.Original())
		return nil
	}
	w := writer{file: f, out: out, own: own, entries: f.Journal.Timeline(), condensations: f.Journal.Condensations()}
	if !own {
		w.warn()
	}
	pivot := w.summary()
	items, err := w.layout(pivot)
	if err == nil && pivot != none && !w.sends(items) {
		// After a summary Roo leaves out results without a call, which are in the view.
		items, err = w.layout(none)
	}
	if err != nil {
		return err
	}
	if own {
		if plain, ok := w.plain(items); ok {
			items = plain
		}
	}
	head, sep, tail := w.frame()
	out.Add(head)
	for i := range items {
		if i > 0 {
			out.Add(sep)
		}
		out.Add(items[i].raw)
	}
	out.Add(tail)
	return nil
}

// A writer writes a journal as a file of Roo's.
type writer struct {
	file          *codec.File
	out           *codec.Output
	own           bool // the messages come from such a file
	entries       []history.Entry
	condensations []history.Condensation
}

// An item is a message of the file that is written.
type item struct {
	entry *history.Entry // nil if it is not part of the conversation
	raw   []byte
	tags  tags
	note  note
	ts    int64 // zero if it has none
	old   bool  // it comes from a file of Roo's
	sent  bool
}

// summary returns the index of the summary that the view begins with, if everything
// before it is hidden; else none.
func (w *writer) summary() int {
	for i := range w.entries {
		if e := &w.entries[i]; len(e.HiddenBy) == 0 {
			if e.Message.Kind == core.KindSummary {
				return i
			}
			break
		}
	}
	return none
}

// layout returns the messages of the file. Pivot is the index of the summary that Roo is
// to begin with, or none.
func (w *writer) layout(pivot int) ([]item, error) {
	l := layout{writer: w, pivot: pivot, markers: map[string]int{}, carriers: map[string]int{}, names: map[string]bool{}, summaries: map[string]bool{}}
	for i := range w.entries {
		l.items = append(l.items, w.item(&w.entries[i]))
	}
	l.findMarkers()
	for i := range l.items {
		l.tag(i)
	}
	items := l.assemble()
	setTimes(items)
	w.orderTags(items)
	return items, w.addNotes(items)
}

// tagOrder is the order of the tags of a message that a condensation inserted.
var tagOrder = []string{"isSummary", "condenseId", "isTruncationMarker", "truncationId", "ts", "condenseParent", "truncationParent"}

// orderTags gives those messages the same tags in the same order however they were made: a file after an undo equals
// the file before. Roo's own messages are not changed.
func (w *writer) orderTags(items []item) {
	ours := map[string]bool{}
	for _, c := range w.condensations {
		ours[c.ID] = c.Provider != "roo"
	}
	for i := range items {
		it := &items[i]
		if it.entry == nil || !ours[it.entry.InsertedBy] || it.note.CopyOf != "" {
			continue
		}
		for _, name := range tagOrder {
			if v := rawjson.Field(it.raw, name); v != nil {
				it.raw = rawjson.SetField(rawjson.CutField(it.raw, name), name, bytes.Clone(v))
			}
		}
	}
}

// plain returns the items without notes if Roo's tags alone express the journal: the file is
// then as Roo left it.
func (w *writer) plain(items []item) ([]item, bool) {
	for _, c := range w.condensations {
		if c.Provider != "roo" {
			return nil, false
		}
	}
	out := make([]item, 0, len(items))
	raw := make([][]byte, 0, len(items))
	for _, it := range items {
		if it.note.Carrier || it.note.CopyOf != "" {
			return nil, false
		}
		it.raw = rawjson.CutField(it.raw, noteField)
		out, raw = append(out, it), append(raw, it.raw)
	}
	again := codec.File{Journal: history.New()}
	if err := read(rawjson.Array(raw), &again); err != nil || len(again.Warnings) > 0 {
		return nil, false
	}
	entries := again.Journal.Timeline()
	same := func(a, b history.Entry) bool {
		return a.Message.ID == b.Message.ID && a.Message.Kind == b.Message.Kind && a.InsertedBy == b.InsertedBy && a.RewrittenBy == b.RewrittenBy &&
			slices.Equal(a.HiddenBy, b.HiddenBy) && core.EqualParts(a.Message.Parts, b.Message.Parts)
	}
	return out, slices.EqualFunc(entries, w.entries, same)
}

// item returns e before it is tagged.
func (w *writer) item(e *history.Entry) item {
	it := item{entry: e, sent: len(e.HiddenBy) == 0}
	if source := []byte(e.Original.Source); w.own && source != nil {
		it.raw, it.old = rawjson.CutField(source, noteField), true
		for k, v := range rawjson.Fields(it.raw) {
			it.tags.see(string(k), v)
			if string(k) == "ts" {
				it.ts = int64(rawjson.Int(v))
			}
		}
		return it
	}
	it.raw = w.encode(&e.Original)
	if e.InsertedBy == "" && !e.Original.Time.IsZero() {
		it.ts = e.Original.Time.UnixMilli()
	}
	return it
}

// warn reports content without a place in a file of Roo's.
func (w *writer) warn() {
	f := w.file
	if f.System != "" {
		w.out.Warn("", "the system prompt was left out: Roo has its own")
	}
	for i := range w.entries {
		if m := &w.entries[i].Original; m.Role == core.RoleSystem {
			w.out.Warn(m.ID, "a system message became one of the user: Roo has no others")
		}
	}
	convert.WarnFields(f, f.View(), w.out)
}

// frame returns the text before, between and after the messages.
func (w *writer) frame() (head, sep, tail []byte) {
	if !w.own {
		return []byte("["), []byte(","), []byte("]\n")
	}
	e := &w.file.Envelope
	head, tail = e.Head, e.Tail
	if len(head) == 0 { // an array without messages
		head, tail = tail[:bytes.IndexByte(tail, '[')+1], tail[bytes.IndexByte(tail, '[')+1:]
	}
	// They hold nothing else but copies of rewritten messages.
	begin, end := rawjson.SkipSpace(head, bytes.IndexByte(head, '[')+1), bytes.LastIndexByte(tail, ']')
	return head[:begin], e.Sep, tail[len(bytes.TrimRight(tail[:max(end, 0)], " \t\r\n")):]
}

// sends reports whether Roo would send the items that it is meant to, and no others.
func (w *writer) sends(items []item) bool {
	file := make([]message, len(items))
	for i := range items {
		m, err := decode(items[i].raw)
		if err != nil {
			return false
		}
		file[i] = m
	}
	for i, got := range effective(file) {
		if items[i].sent != got.shown || got.trimmed {
			return false
		}
	}
	return true
}

// someTime is the time of messages if none has one: a number that Roo accepts as a time.
const someTime = 1_000_000_000_000

// setTimes gives messages without a time one that fits their position: Roo cuts conversations
// by time.
func setTimes(items []item) {
	next := int64(0)
	for i := len(items) - 1; i >= 0; i-- {
		if it := &items[i]; it.ts > 0 {
			next = it.ts
		} else if next > 1 && !it.old {
			next--
			it.setTime(next)
		}
	}
	previous := int64(0)
	for i := range items {
		it := &items[i]
		if it.ts == 0 && !it.old {
			previous = cmp.Or(previous, someTime)
			it.setTime(previous + 1)
		}
		previous = max(previous, it.ts)
	}
}

func (it *item) setTime(ts int64) {
	it.ts = ts
	if rawjson.Field(it.raw, "ts") == nil {
		it.raw = rawjson.SetField(it.raw, "ts", strconv.AppendInt(nil, ts, 10))
	}
}

// addNotes adds data that tags cannot express.
func (w *writer) addNotes(items []item) error {
	names := naming{taken: codec.IDs{}}
	for i := range items {
		it := &items[i]
		if it.entry != nil && it.note.CopyOf == "" {
			w.describe(it, &names)
		}
		if it.note.empty() {
			continue
		}
		note, err := it.note.encode()
		if err != nil {
			return err
		}
		it.raw = rawjson.SetField(it.raw, noteField, note)
	}
	return nil
}

// describe records the properties of the message that read would not find.
func (w *writer) describe(it *item, names *naming) {
	m := &it.entry.Original
	read, err := decode(it.raw)
	if read.Role != m.Role {
		it.note.Role = m.Role
	}
	if err != nil || !core.EqualParts(read.Parts, m.Parts) {
		it.note.Message = &core.Message{Parts: m.Parts}
	}
	before := names.n
	// The effect of a tag is in a record; without an ID, read would take it for Roo's own.
	tagged := read.tags.summary != "" || read.tags.marker
	if got := names.next(read.ownID()); tagged || got != m.ID || read.Kind != m.Kind {
		delete(names.taken, got)
		names.n = before
		names.next(m.ID)
		it.note.ID, it.note.Kind = m.ID, m.Kind
	}
	if !m.Time.IsZero() && !m.Time.Equal(read.Time) {
		it.note.Time = m.Time.Round(0).UTC()
	}
}

// encode returns a message in Roo's form, without its time. Content that no model accepts is left out or replaced by
// a stub.
func (w *writer) encode(m *core.Message) []byte {
	role := core.RoleUser
	if m.Role == core.RoleAssistant {
		role = core.RoleAssistant
	}
	if len(m.Parts) == 1 {
		if r, ok := m.Parts[0].(core.Reasoning); ok && !w.signed(r) {
			return rawjson.Append(nil, `{"role":"assistant","content":[],"type":"reasoning","summary":?,"encrypted_content":?}`,
				apimessage.Summary(r), rawjson.QuoteOrNull(r.Encrypted))
		}
	}
	var parts []core.Part
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Reasoning:
			if !w.signed(p) {
				continue
			}
		case core.Image:
			if _, ok := apimessage.Sendable(p); !ok {
				parts = append(parts, core.Text(apimessage.Note("image")))
				continue
			}
		case core.Opaque:
			block, ok := apimessage.SendableBlock(p, apimessage.Anthropic.Blocks[role])
			if !ok {
				parts = append(parts, core.Text(apimessage.Note(p.Kind)))
				continue
			}
			parts = append(parts, block)
			continue
		case core.ToolResult:
			parts = append(parts, core.ToolResult{CallID: p.CallID, Content: apimessage.Anthropic.Content(p.Content), IsError: p.IsError})
			continue
		case core.Text, core.ToolCall:
		}
		parts = append(parts, p)
	}
	return apimessage.AnthropicMessage(role, parts)
}

// signed reports whether r can be sent to a model again.
func (w *writer) signed(r core.Reasoning) bool {
	return w.file.Vendor != codec.OpenAI && (r.Signature != "" || r.Encrypted != "")
}
