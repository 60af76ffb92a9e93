package roo

import "strings"

// Cleanup returns messages without tags that name a summary or a marker that is not among
// them, so that what it hid is visible again. The messages to which nothing happened are
// the same ones, and if that is all, so is the slice.
func Cleanup(messages []*Message) []*Message {
	present := parents{summaries(messages), markers(messages)}
	var which []int
	for i, m := range messages {
		if present.lackOne(m) {
			which = append(which, i)
		}
	}
	if which == nil {
		return messages
	}
	return editAll(messages, which, func(b *strings.Builder, m *Message) *tags {
		return present.removeLost(b, m)
	})
}

// parents are the names of the summaries and markers that exist.
type parents struct{ summaries, markers nameSet }

// lackOne reports whether m has a parent that does not exist. A falsy one names nothing.
func (p parents) lackOne(m *Message) bool {
	condensed, truncated := m.name(CondenseParent), m.name(TruncationParent)
	return condensed != "" && !p.summaries.has(condensed) ||
		truncated != "" && !p.markers.has(truncated)
}

// removeLost writes m to b without the parents that do not exist, falsy ones included,
// and returns its new tags.
func (p parents) removeLost(b *strings.Builder, m *Message) *tags {
	keepCondense := p.summaries.has(m.name(CondenseParent))
	keepTruncation := p.markers.has(m.name(TruncationParent))
	removeMembers(b, m.raw, func(name string) bool {
		return name == "condenseParent" && !keepCondense || name == "truncationParent" && !keepTruncation
	})
	left := m.tags
	if !keepCondense {
		left = left.without(CondenseParent)
	}
	if !keepTruncation {
		left = left.without(TruncationParent)
	}
	return left
}
