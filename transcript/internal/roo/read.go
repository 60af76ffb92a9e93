package roo

import (
	"slices"
	"strconv"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
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
	at := plain.Index(f.messages, func(x message) string { return x.ID })
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
	records := slices.Concat(plain.Each(f.messages, func(x message) []record { return x.note.Records })...)
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

// fromTags returns the condensations that are in tags but have no record: Roo made them since the journal was last
// written.
func (f *conversation) fromTags(records []history.Condensation) []history.Condensation {
	hidden := map[string]bool{}
	names := codec.IDs{}
	for _, c := range records {
		names.Next(0, c.ID)
		for _, id := range c.Edit.Hide {
			hidden[id] = true
		}
	}
	hiders := f.hiders(hidden)
	f.explain(hiders, hidden)
	early := f.hiddenEarly(hiders)
	var all []history.Condensation
	for _, h := range hiders {
		if len(h.hides) == 0 && len(h.rewrites) == 0 {
			continue
		}
		m := &f.messages[h.at]
		c := condensation(names.Next(h.at+1, h.name))
		if h.name == "" {
			c.ID = names.Next(0, "tag-"+strconv.Itoa(h.at+1))
		}
		if m.Kind == core.KindSummary {
			c.Time, c.Newest = m.Time, m.ID // Roo appends it
		}
		c.Edit.Hide = append(c.Edit.Hide, plain.Each(h.hides, func(i int) string { return f.messages[i].ID })...)
		for _, i := range h.rewrites {
			c.Edit.Rewrite = append(c.Edit.Rewrite, core.Rewrite{ID: f.messages[i].ID, Parts: f.fates[i].parts})
		}
		if !early[h.at] {
			c.Edit.Insert = []core.Insert{{Message: core.Message{ID: m.ID}}}
		}
		all = append(all, c)
	}
	return all
}

// A hider is a message whose tags hide others.
type hider struct {
	at       int
	name     string
	hides    []int
	rewrites []int
}

// hiders returns the messages without a record whose tags hide others. A summary hides everything before it that is
// not hidden yet, a marker the messages that name it. If there is no summary, a message whose isSummary is only
// truthy hides the messages that name it. Messages that they hide are added to hidden.
func (f *conversation) hiders(hidden map[string]bool) []hider {
	condensed, truncated := map[string][]int{}, map[string][]int{}
	for i := range f.messages {
		if m := &f.messages[i]; !m.aside() {
			tags := []*tags{&m.tags}
			if stand, ok := f.copies[m.ID]; ok {
				tags = append(tags, &f.messages[stand].tags)
			}
			for _, t := range tags {
				condensed[t.condenseParent] = append(condensed[t.condenseParent], i)
				truncated[t.truncationParent] = append(truncated[t.truncationParent], i)
			}
		}
	}
	var all []hider
	seen := 0 // everything before is hidden by a summary
	for i := range f.messages {
		m := &f.messages[i]
		t := &m.tags
		if m.aside() || m.note.ID != "" {
			continue
		}
		h := hider{at: i}
		switch {
		case t.summary == "true":
			h.name = plainName(t.condenseID)
			for j := seen; j < i; j++ {
				if other := &f.messages[j]; !other.aside() && !hidden[other.ID] {
					h.hides = append(h.hides, j)
				}
			}
			seen = i
		case t.summary != "" && f.pivot == none && t.condenseID != "":
			h.name, h.hides = plainName(t.condenseID), slices.Compact(slices.Clone(condensed[t.condenseID]))
		case t.marker && t.truncationID != "":
			h.name = plainName(t.truncationID)
			h.hides = append(h.hides, plain.Only(slices.Compact(slices.Clone(truncated[t.truncationID])),
				func(j int) bool { return f.pivot == none || j < f.pivot || i > f.pivot })...)
		default:
			continue
		}
		for _, j := range h.hides {
			hidden[f.messages[j].ID] = true
		}
		all = append(all, h)
	}
	return all
}

// explain attributes hidden messages without a tag to the last summary: tool results whose call is before it, and
// messages that hold nothing else.
func (f *conversation) explain(hiders []hider, hidden map[string]bool) {
	for k := range hiders {
		h := &hiders[k]
		if h.at != f.pivot {
			continue
		}
		for i := range f.messages {
			m := &f.messages[i]
			_, copied := f.copies[m.ID]
			switch {
			case m.aside() || copied || hidden[m.ID]:
			case !f.fates[i].shown:
				h.hides = append(h.hides, i)
				hidden[m.ID] = true
			case f.fates[i].trimmed:
				h.rewrites = append(h.rewrites, i)
			}
		}
	}
}

// hiddenEarly returns the messages that hide others and are hidden or rewritten by themselves
// or by an earlier one. They cannot be inserted by their condensation, which would be older
// than itself.
func (f *conversation) hiddenEarly(hiders []hider) map[int]bool {
	early := map[int]bool{}
	for _, h := range hiders {
		for _, i := range slices.Concat(h.hides, h.rewrites) {
			if i >= h.at {
				early[i] = true
			}
		}
	}
	return early
}

// tags are the tags of a message. Names that are equal to Roo are spelled alike: a string in
// quotes, anything else as JSON; empty if the tag names nothing.
type tags struct {
	summary          string // isSummary as JSON: true, or another value that counts as true
	marker           bool
	condenseID       string
	condenseParent   string
	truncationID     string
	truncationParent string
}

// see sets a tag from a field of a message.
func (t *tags) see(name string, raw []byte) {
	switch name {
	case "isSummary":
		t.summary = ""
		if truthy(raw) {
			t.summary = string(raw)
		}
	case "isTruncationMarker":
		t.marker = truthy(raw)
	case "condenseId":
		t.condenseID = tagName(raw)
	case "condenseParent":
		t.condenseParent = tagName(raw)
	case "truncationId":
		t.truncationID = tagName(raw)
	case "truncationParent":
		t.truncationParent = tagName(raw)
	}
}

// truthy reports whether JavaScript takes raw for true.
func truthy(raw []byte) bool {
	switch raw[0] {
	case '"':
		return len(raw) > 2
	case 't', '{', '[':
		return true
	case 'f', 'n':
		return false
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return err != nil || n != 0
}

// tagName returns the name that the value of a tag is; empty if it is none.
func tagName(raw []byte) string {
	if !truthy(raw) || rawjson.IsArray(raw) || rawjson.IsObject(raw) {
		return ""
	}
	switch raw[0] {
	case '"':
		return `"` + rawjson.Unquote(raw) + `"`
	case 't':
		return "true"
	}
	n, _ := strconv.ParseFloat(string(raw), 64)
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// plainName returns a name as an ID.
func plainName(name string) string {
	if len(name) >= 2 && name[0] == '"' {
		return name[1 : len(name)-1]
	}
	return name
}

// A fate is Roo's treatment of a message.
type fate struct {
	shown   bool
	trimmed bool        // only parts of it are sent
	parts   []core.Part // these
}

// effective returns, by index, Roo's treatment of the messages of a file.
//
// If there is a summary, Roo sends the last one and everything after it, whatever the tags say, except the tool
// results in user messages whose call is not among them (a user message that holds nothing else, or nothing, is left
// out) and the messages that a marker among them hides.
//
// If there is none, Roo sends all messages except those hidden by an existing marker, or by a summary whose flag
// counts as true without being true. Tool results remain.
//
// This is the behaviour of getEffectiveApiHistory in Roo-Code v3.52.1, defects included: other rules would show
// another conversation than Roo does.
func effective(file []message) []fate {
	fates := make([]fate, len(file))
	pivot := lastSummary(file)
	summaries, markers := map[string]bool{}, map[string]bool{}
	if pivot == none {
		for i := range file {
			fates[i].shown = true
			if t := &file[i].tags; t.summary != "" {
				summaries[t.condenseID] = true
			}
		}
	} else {
		withoutOrphans(file[pivot:], fates[pivot:])
	}
	for i := range file {
		if t := &file[i].tags; t.marker && fates[i].shown {
			markers[t.truncationID] = true
		}
	}
	delete(summaries, "") // a tag that names nothing hides nothing
	delete(markers, "")
	for i := range file {
		if t := &file[i].tags; summaries[t.condenseParent] || markers[t.truncationParent] {
			fates[i] = fate{}
		}
	}
	return fates
}

// lastSummary returns the index of the summary that Roo begins with, or none.
func lastSummary(file []message) int {
	for i, m := range slices.Backward(file) {
		if m.tags.summary == "true" {
			return i
		}
	}
	return none
}

// withoutOrphans shows the messages of file without the tool results whose call is in none of them.
func withoutOrphans(file []message, fates []fate) {
	calls := map[string]bool{}
	for i := range file {
		if file[i].role != string(core.RoleAssistant) || !file[i].blocks {
			continue
		}
		for _, p := range file[i].said {
			if c, ok := p.(core.ToolCall); ok && c.ID != "" {
				calls[c.ID] = true
			}
		}
	}
	orphan := func(p core.Part) bool {
		r, ok := p.(core.ToolResult)
		return ok && !calls[r.CallID]
	}
	for i := range file {
		m := &file[i]
		fates[i].shown = true
		if m.role != string(core.RoleUser) || !m.blocks {
			continue
		}
		switch kept := slices.DeleteFunc(slices.Clone(m.said), orphan); {
		case len(kept) == 0:
			fates[i].shown = false
		case len(kept) < len(m.said):
			fates[i].trimmed, fates[i].parts = true, kept
		}
	}
}
