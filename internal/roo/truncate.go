package roo

import (
	"math"
	"slices"
	"strings"
	"time"
)

// A Truncation is what [Truncate] did.
type Truncation struct {
	// Messages is the new history, with the marker in it. It is the old one, without a
	// marker, if Removed is 0.
	Messages []*Message
	// ID names the marker. There is one even if there is no marker.
	ID string
	// Removed is how many messages Roo says are hidden: more than were there if the
	// fraction is above 1.
	Removed int
}

// Truncate hides a fraction of the visible messages, the oldest but the first, rounded
// down to an even number, and puts a marker before the first one that stays. Visible are
// messages that are no marker and have no truncationParent; that a message is condensed
// already does not matter, nor do tool calls and their results stay together. With half,
// it takes 5 visible messages to hide any.
//
// NewID names the marker and is called exactly once. Now is called if no message stays
// that has a time. A fraction that is negative or not finite hides nothing.
func Truncate(messages []*Message, fraction float64, newID func() string, now func() time.Time) Truncation {
	id := newID()
	visible := 0
	for _, m := range messages {
		if m.truncatable() {
			visible++
		}
	}
	n := math.Floor(float64(visible-1) * fraction)
	n -= math.Mod(n, 2)
	if n <= 0 || math.IsNaN(n) || math.IsInf(n, 0) {
		return Truncation{Messages: messages, ID: id}
	}
	hide, boundary := oldest(messages, n)
	tagged := hideBehind(messages, hide, id)

	var ts float64
	if boundary < len(messages) && kindOf(messages[boundary].ts) > kindNull {
		ts = toNumber(messages[boundary].ts)
	} else {
		ts = milliseconds(now())
	}
	return Truncation{
		Messages: slices.Insert(tagged, boundary, newMarker(n, ts-1, id)),
		ID:       id,
		Removed:  clampInt(n),
	}
}

// truncatable reports whether truncation counts m as visible.
func (m *Message) truncatable() bool {
	return m.name(TruncationParent) == "" && !m.IsTruncationMarker()
}

// oldest returns the indices of the n oldest visible messages but the first, and that of
// the next visible one or else the length.
func oldest(messages []*Message, n float64) (hide []int, boundary int) {
	visible := 0
	for i, m := range messages {
		if !m.truncatable() {
			continue
		}
		if float64(visible) > n {
			return hide, i
		}
		if visible > 0 {
			hide = append(hide, i)
		}
		visible++
	}
	return hide, len(messages)
}

// hideBehind returns a copy of messages in which those at the indices which belong to the
// marker of that name.
func hideBehind(messages []*Message, which []int, marker string) []*Message {
	const tag = TruncationParent
	value := quote(marker)
	only := (*tags)(nil).with(tag, value) // shared by the messages that had no tag
	return editAll(messages, which, func(b *strings.Builder, m *Message) *tags {
		if m.has(tag) {
			b.WriteString(setMember(m.object(), tag.String(), value)) // it was there, but falsy
		} else {
			appendMember(b, m.object(), tag.String(), value)
		}
		if m.tags == nil {
			return only
		}
		return m.tags.with(tag, value)
	})
}

// newMarker returns the message that tells the model that n messages are hidden.
func newMarker(n, ts float64, id string) *Message {
	m := new(Message)
	m.parse(`{"role":"user","content":"[Sliding window truncation: ` + formatNumber(n) +
		` messages hidden to reduce context]","ts":` + formatNumber(ts) +
		`,"isTruncationMarker":true,"truncationId":` + quote(id) + `}`)
	return m
}

// clampInt converts f to an int without its fraction, to the nearest one there is.
func clampInt(f float64) int {
	const limit = 1 << 62 // far beyond any count, and two of them do not overflow
	return int(max(-limit, min(f, limit)))
}

// LegacyTruncate returns what v3.28 kept of messages: the first one, and the others
// without a fraction of them, the oldest, rounded down to an even number. Nothing marks
// what is gone. Like there, of no messages one is kept, which is undefined: the zero
// Message. A negative fraction keeps as many of the newest instead, one that is not
// finite keeps all.
func LegacyTruncate(messages []*Message, fraction float64) []*Message {
	if len(messages) == 0 {
		return []*Message{{}}
	}
	n := math.Floor(float64(len(messages)-1) * fraction)
	n -= math.Mod(n, 2)
	start := n + 1
	switch {
	case math.IsNaN(n) || start == 1:
		return messages
	case start < 0: // slice counts from the end
		start = max(0, start+float64(len(messages)))
	}
	rest := messages[int(min(start, float64(len(messages)))):]
	return append([]*Message{messages[0]}, rest...)
}
