package roo

import (
	"maps"
	"slices"
	"strconv"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// A layout tags the messages of a journal.
type layout struct {
	*writer
	pivot    int // index of the item that Roo begins with, or none
	items    []item
	markers  map[string]int  // condensation to the index of the item that is its marker
	carriers map[string]int  // condensation without one to the index before which it gets one
	names    map[string]bool // of all markers, as tags spell them
	// summaries are the names of the summaries that Roo still has.
	summaries map[string]bool
}

// inScope reports whether Roo considers the tags of item i.
func (l *layout) inScope(i int) bool { return i > l.pivot }

// hider returns the condensation that hides item i or rewrites it; empty if none does.
func (l *layout) hider(i int) string {
	e := l.items[i].entry
	switch {
	case len(e.HiddenBy) > 0:
		return e.HiddenBy[0]
	case e.RewrittenBy != "" && i != l.pivot:
		return e.RewrittenBy
	}
	return ""
}

// olderSummary reports whether item i is a former summary of Roo's that the first one in Roo's view replaced.
func (l *layout) olderSummary(i int) bool {
	it := &l.items[i]
	return i < l.pivot && it.entry.Message.Kind == core.KindSummary && it.tags.condenseID != ""
}

// findMarkers finds a marker for each condensation that hides something.
func (l *layout) findMarkers() {
	for i := range l.items { // a summary that was a marker while it was hidden
		if it := &l.items[i]; it.tags.marker && (i == l.pivot || l.olderSummary(i)) && it.entry.Message.Kind == core.KindSummary {
			it.cut("isTruncationMarker")
			it.cut("truncationId")
		}
	}
	inserted := map[string]int{} // condensation to its first inserted item, in scope if possible
	for i := range l.items {
		id := l.items[i].entry.InsertedBy
		if first, ok := inserted[id]; id != "" && (!ok || !l.inScope(first) && l.inScope(i)) {
			inserted[id] = i
		}
	}
	for i := range l.items {
		id := l.hider(i)
		at, ok := inserted[id]
		// A replacement of a message is its marker only if it follows the message: Roo removes
		// messages from the end.
		stands := len(l.items[i].entry.HiddenBy) == 0 && at > i
		switch {
		case id == "" || !l.inScope(i) && l.pivot != none && id == l.items[l.pivot].entry.InsertedBy:
		case ok && !l.inScope(i) && l.olderSummary(at): // it needs no marker: its name is in condenseParent
		case ok && (l.inScope(at) || !l.inScope(i)) && at != l.pivot && !stands:
			l.markers[id] = at
		case l.inScope(i):
			if _, ok := l.carriers[id]; !ok {
				l.carriers[id] = i
			}
		}
	}
	for id := range l.carriers {
		delete(l.markers, id)
	}
	for i := range l.items {
		if t := &l.items[i].tags; t.marker && t.truncationID != "" {
			l.names[t.truncationID] = true
		}
	}
	for i := range l.items[:l.pivot+1] {
		if t := &l.items[i].tags; t.summary != "" {
			l.summaries[t.condenseID] = true
		}
	}
	for id := range l.markers {
		l.names[`"`+id+`"`] = true
	}
	for id := range l.carriers {
		l.names[`"`+id+`"`] = true
	}
}

// tag sets the tags of item i.
func (l *layout) tag(i int) {
	it := &l.items[i]
	if l.olderSummary(i) && it.tags.summary == "" {
		it.set("isSummary", []byte("true"))
	}
	if it.tags.summary != "" && l.inScope(i) {
		it.set("isSummary", []byte("false")) // in its place, so that an undo restores every byte
	}
	if i == l.pivot {
		if it.tags.summary != "true" {
			it.set("isSummary", []byte("true"))
		}
		if it.tags.condenseID == "" {
			it.set("condenseId", rawjson.AppendQuote(nil, l.summaryName()))
		}
	}
	if id := it.entry.InsertedBy; id != "" && l.markers[id] == i {
		if _, ok := l.markers[id]; ok {
			if !it.tags.marker {
				it.set("isTruncationMarker", []byte("true"))
			}
			it.name("truncationId", it.tags.truncationID, id)
		}
	}
	hider := l.hider(i)
	switch {
	case hider == "":
		it.cut("truncationParent")
		if !l.summaries[it.tags.condenseParent] {
			it.cut("condenseParent")
		}
	case l.inScope(i):
		it.name("truncationParent", it.tags.truncationParent, hider)
	case it.tags.condenseParent != "" && it.tags.truncationParent == `"`+hider+`"` && !l.names[it.tags.truncationParent]:
		it.cut("truncationParent") // from when the summary was a marker
	case it.tags.condenseParent != "" || it.tags.truncationParent != "":
	case l.names[`"`+hider+`"`]:
		it.name("truncationParent", "", hider)
	default:
		it.name("condenseParent", "", l.summaryName())
	}
}

// summaryName returns the name of the summary that Roo begins with.
func (l *layout) summaryName() string {
	it := &l.items[l.pivot]
	switch {
	case it.tags.condenseID != "":
		return plainName(it.tags.condenseID)
	case it.entry.InsertedBy != "":
		return it.entry.InsertedBy
	}
	return it.entry.Message.ID
}

// name sets a tag to a name, unless it has it already.
func (it *item) name(tag, was, name string) {
	if was != `"`+name+`"` {
		it.set(tag, rawjson.AppendQuote(nil, name))
	}
}

func (it *item) set(tag string, value []byte) {
	it.raw = rawjson.SetField(it.raw, tag, value)
	it.tags.see(tag, value)
}

func (it *item) cut(tag string) {
	it.raw = rawjson.CutField(it.raw, tag)
	it.tags.see(tag, []byte("null"))
}

// assemble returns the items with the carriers, and with the copies of rewritten messages.
func (l *layout) assemble() []item {
	holders, known := l.holders(), map[string]bool{}
	hides := map[string][]string{}
	for i := range l.items {
		e := l.items[i].entry
		known[e.Message.ID] = true
		for _, id := range e.HiddenBy {
			hides[id] = append(hides[id], e.Message.ID)
		}
	}
	before := map[int][]item{}
	for _, rec := range l.records(hides, known) {
		c := &rec.Condensation
		if at, ok := holders[c.ID]; ok {
			l.items[at].note.Records = append(l.items[at].note.Records, rec)
			continue
		}
		at := min(max(1, l.pivot+1), len(l.items))
		hidden := 0
		if first, ok := l.carriers[c.ID]; ok {
			// Not at the very front, where Roo looks for the task.
			at = max(1, first)
			for i := range l.items {
				if l.inScope(i) && l.hider(i) == c.ID {
					hidden++
				}
			}
		}
		carrier := newCarrier(c.ID, hidden)
		carrier.note.Records = []record{rec}
		before[at] = append(before[at], carrier)
	}
	var all []item
	for i := range l.items {
		all = append(append(all, before[i]...), l.items[i])
		if e := l.items[i].entry; e.RewrittenBy != "" && len(e.HiddenBy) == 0 {
			all[len(all)-1].sent = false
			all = append(all, l.copyOf(i))
		}
	}
	return append(all, before[len(l.items)]...)
}

// records returns the records of all condensations that still refer to a message.
func (l *layout) records(hides map[string][]string, known map[string]bool) []record {
	var records []record
	var read []history.Condensation // as read would know them by positions alone
	choice := false                 // positions may not determine the replacement of a hidden message
	newest := history.Newest(l.file.Journal)
	for k, c := range l.condensations {
		c.Substitutes, c.Newest = nil, newest[c.ID]
		rec := recordOf(k+1, c, hides[c.ID])
		if in, ok := rec.within(known); ok {
			records, read = append(records, rec), append(read, in)
			choice = choice || len(in.Edit.Hide) > 0 && len(in.Edit.Insert) > 1
		}
	}
	if !choice {
		return records
	}
	timeline := plain.Each(l.entries, func(x history.Entry) core.Message { return x.Original })
	want, got := l.file.Journal.Substitutes(), map[string]map[string][]string{}
	if j, err := history.Restore(timeline, read); err == nil {
		got = j.Substitutes()
	}
	for i := range records {
		c := &records[i].Condensation
		if !maps.EqualFunc(want[c.ID], got[c.ID], slices.Equal) {
			c.Substitutes = want[c.ID]
		}
	}
	return records
}

// holders returns for each condensation the message that holds its record: the first that
// it inserted, unless it has a carrier.
func (l *layout) holders() map[string]int {
	holders := map[string]int{}
	for i := range l.items {
		id := l.items[i].entry.InsertedBy
		_, held := holders[id]
		_, carried := l.carriers[id]
		if id != "" && !held && !carried {
			holders[id] = i
		}
	}
	return holders
}

// newCarrier returns a marker that hides itself.
func newCarrier(id string, hidden int) item {
	it := item{raw: []byte(`{"role":"user"}`), note: note{Carrier: true}}
	words := "[Messages hidden or rewritten by condense: " + strconv.Itoa(hidden) + "]"
	it.raw = rawjson.SetField(it.raw, "content", rawjson.AppendQuote(nil, words))
	it.set("isTruncationMarker", []byte("true"))
	it.name("truncationId", "", id)
	it.name("truncationParent", "", id)
	return it
}

// copyOf returns the replacement of item i, which was rewritten.
func (l *layout) copyOf(i int) item {
	it := l.items[i]
	m := it.entry.Message
	it.sent, it.old = true, false
	it.note = note{CopyOf: m.ID}
	parts := m.Parts
	patch := it.entry.Original.Source != nil && l.own
	if patch && rawjson.Text(rawjson.Field(it.raw, "type")) == "reasoning" { // which is its first part
		if patch = len(parts) > 0 && core.EqualParts(parts[:1], it.entry.Original.Parts[:1]); patch {
			parts = parts[1:]
		}
	}
	if patch {
		it.raw = blocks.PatchMessage(it.raw, parts)
	} else {
		it.raw = l.encode(&core.Message{Role: m.Role, Parts: parts})
		it.ts = 0
	}
	for _, tag := range []string{"truncationParent", "isTruncationMarker", "truncationId"} {
		it.cut(tag)
	}
	if i == l.pivot {
		it.set("isSummary", []byte("true"))
		it.name("condenseId", it.tags.condenseID, l.summaryName())
	}
	return it
}
