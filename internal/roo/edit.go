package roo

import (
	"encoding/json"
	"slices"
	"strings"
)

// appendMember writes object to b with one more member at its end. It is spaced like the
// object's first member, and every byte of object is kept. The object must not have a
// member of that name.
func appendMember(b *strings.Builder, object, name, value string) {
	end := len(object) - 1
	for isSpace(object[end-1]) && end > 1 {
		end--
	}
	comma, before, colon := "", "", ":"
	c := cursor{s: object, i: 1}
	c.space()
	if object[c.i] == '"' {
		comma, before = ",", object[1:c.i]
		c.str()
		afterName := c.i
		c.space()
		c.i++ // the colon
		c.space()
		colon = object[afterName:c.i]
	} else {
		end = 1 // an empty object: the space in it stays behind the member
	}
	b.WriteString(object[:end])
	b.WriteString(comma)
	b.WriteString(before)
	b.WriteByte('"')
	b.WriteString(name)
	b.WriteByte('"')
	b.WriteString(colon)
	b.WriteString(value)
	b.WriteString(object[end:])
}

// setMember returns object with the named member set to value, in its place or else at
// the end. Every other byte stays as it was.
func setMember(object, name, value string) string {
	start, end := -1, -1
	for c := (cursor{s: object, i: 1}); c.more(); {
		key := c.key()
		at := c.i
		c.value()
		if key == name {
			start, end = at, c.i // of members with one name, the last counts
		}
	}
	if start >= 0 {
		return object[:start] + value + object[end:]
	}
	var b strings.Builder
	appendMember(&b, object, name, value)
	return b.String()
}

// removeMembers writes object to b without the members whose names drop picks. A member
// goes with the comma and the space before it, the first one with those behind it, so that
// removing what appendMember added gives the same bytes again.
func removeMembers(b *strings.Builder, object string, drop func(name string) bool) {
	kept := false
	last := 0 // end of the member before, whether kept or not
	for c := (cursor{s: object, i: 1}); c.more(); {
		start := c.i
		if last == 0 {
			b.WriteString(object[:start])
		}
		name := c.key()
		c.value()
		if !drop(name) {
			if kept {
				start = last
			}
			b.WriteString(object[start:c.i])
			kept = true
		}
		last = c.i
	}
	b.WriteString(object[last:])
}

// removeMember returns object without the members of that name.
func removeMember(object, name string) string {
	var b strings.Builder
	b.Grow(len(object))
	removeMembers(&b, object, func(n string) bool { return n == name })
	return b.String()
}

// editAll returns a copy of messages in which those at the indices which are edited. Edit
// writes the new JSON of a message to b and returns its new tags.
//
// All new texts are cut from one string and all new messages from one array: a truncation
// of a long history edits half of it.
func editAll(messages []*Message, which []int, edit func(b *strings.Builder, m *Message) *tags) []*Message {
	const slack = 64 // a tag with a UUID
	size := 0
	for _, i := range which {
		size += len(messages[i].raw) + slack
	}
	var text strings.Builder
	text.Grow(size)
	edited := make([]Message, len(which))
	ends := make([]int, len(which))
	for k, i := range which {
		edited[k] = *messages[i]
		edited[k].tags = edit(&text, messages[i])
		ends[k] = text.Len()
	}
	out := slices.Clone(messages)
	all, start := text.String(), 0
	for k, i := range which {
		edited[k].raw = all[start:ends[k]]
		start = ends[k]
		out[i] = &edited[k]
	}
	return out
}

// quote spells text as a JSON string. What is no valid UTF-8 becomes U+FFFD.
func quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Encoding a string cannot fail, nor can a Builder.
	_ = e.Encode(text)
	return strings.TrimSuffix(b.String(), "\n")
}
