package roo

import (
	"slices"
	"strconv"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
)

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
		for _, i := range h.hides {
			c.Edit.Hide = append(c.Edit.Hide, f.messages[i].ID)
		}
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
			for _, j := range slices.Compact(slices.Clone(truncated[t.truncationID])) {
				if f.pivot == none || j < f.pivot || i > f.pivot {
					h.hides = append(h.hides, j)
				}
			}
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
