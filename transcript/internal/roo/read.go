package roo

import (
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
)

// A conversation is a parsed file.
type conversation struct {
	messages []message
	fates    []fate
	copies   map[string]int // ID of a message to the index of its copy
	pivot    int            // index of the summary that Roo begins with, or none
	order    []int          // the messages of the conversation, each at its own or its copy's position
}

func newConversation(messages []message) *conversation {
	f := &conversation{messages: messages, fates: effective(messages), copies: map[string]int{}, pivot: lastSummary(messages)}
	for i := range messages {
		if of := messages[i].note.CopyOf; of != "" {
			f.copies[of] = i
		}
	}
	return f
}

// adopt turns copies into messages of their own if the original is sent, too, or is missing: Roo removed the message
// that hid it.
func (f *conversation) adopt(names *naming) {
	hidden := map[string]bool{}
	for i := range f.messages {
		if m := &f.messages[i]; !m.aside() {
			hidden[m.ID] = !f.fates[i].shown
		}
	}
	for i := range f.messages {
		m := &f.messages[i]
		of := m.note.CopyOf
		if of == "" || hidden[of] && f.copies[of] == i {
			continue
		}
		m.ID = names.next(of + ".copy")
		m.note.CopyOf = ""
		if f.copies[of] == i {
			delete(f.copies, of)
		}
	}
	at := make(map[string]int, len(f.messages))
	for i := range f.messages {
		at[f.messages[i].ID] = i
	}
	for i := range f.messages {
		m := &f.messages[i]
		_, copied := f.copies[m.ID]
		switch {
		case m.note.CopyOf != "":
			f.order = append(f.order, at[m.note.CopyOf])
		case !m.aside() && !copied:
			f.order = append(f.order, i)
		}
	}
}

// journal returns the journal that the tags describe.
func (f *conversation) journal() (*history.Journal, []codec.Warning, error) {
	var timeline []core.Message
	known := map[string]bool{}
	for _, i := range f.order {
		m := &f.messages[i]
		timeline = append(timeline, m.Message)
		known[m.ID] = true
	}
	records := f.records(known)
	j, err := history.Restore(timeline, append(records, f.fromTags(records)...))
	if err == nil && f.agrees(j) {
		return j, nil, nil
	}
	var warnings []codec.Warning
	if len(records) > 0 {
		warnings = []codec.Warning{{Text: "tags and records of condensations disagree; the view that Roo would send was imported as one condensation"}}
	}
	var all []history.Condensation
	if c := f.asOne(); !c.Edit.Empty() {
		all = append(all, c)
	}
	j, err = history.Restore(timeline, all)
	return j, warnings, err
}

// records returns the condensations that notes hold, in order.
func (f *conversation) records(known map[string]bool) []history.Condensation {
	var records []record
	for i := range f.messages {
		records = append(records, f.messages[i].note.Records...)
	}
	slices.SortStableFunc(records, func(a, b record) int { return a.Order - b.Order })
	var all []history.Condensation
	for i := range records {
		if c, ok := records[i].within(known); ok {
			all = append(all, c)
		}
	}
	return all
}

// agrees reports whether the view of j equals the messages that Roo sends.
func (f *conversation) agrees(j *history.Journal) bool {
	entries := j.Timeline()
	if len(entries) != len(f.order) {
		return false
	}
	for e, i := range f.order {
		entry := &entries[e]
		if entry.Message.ID != f.messages[i].ID {
			return false
		}
		want := f.fateOf(i)
		switch inView := len(entry.HiddenBy) == 0; {
		case inView != want.shown:
			return false
		case !inView:
		case want.trimmed != (entry.RewrittenBy != ""):
			return false
		case want.parts != nil && !core.EqualParts(entry.Message.Parts, want.parts):
			return false
		}
	}
	return true
}

// fateOf returns the part of message i, or of its copy, that Roo sends.
func (f *conversation) fateOf(i int) fate {
	stand, ok := f.copies[f.messages[i].ID]
	if !ok || !f.fates[stand].shown {
		return f.fates[i]
	}
	got := f.fates[stand]
	if !got.trimmed {
		got.trimmed, got.parts = true, nil // the record has the parts
	}
	return got
}

// asOne returns a single condensation with Roo's view as the result.
func (f *conversation) asOne() history.Condensation {
	c := condensation("roo")
	for _, i := range f.order {
		m := &f.messages[i]
		switch got := f.fateOf(i); {
		case !got.shown:
			c.Edit.Hide = append(c.Edit.Hide, m.ID)
		case got.trimmed:
			parts := got.parts
			if parts == nil {
				parts = f.messages[f.copies[m.ID]].Parts
			}
			c.Edit.Rewrite = append(c.Edit.Rewrite, core.Rewrite{ID: m.ID, Parts: parts})
		}
	}
	return c
}
