package codec

import (
	"bytes"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// This file serves the formats whose files hold more than the view: messages that the agent's
// own compaction hides, abandoned branches, records of other kinds. Such a file is first
// reconstructed as it was read, and then changed where the journal changed.

// ByteOrderMark may begin a file that is UTF-8.
var ByteOrderMark = []byte("\xef\xbb\xbf")

// A stamp detects whether a journal changed since it was read: messages are only appended or
// dropped, and condensations applied or undone, each with a unique ID.
type stamp struct {
	Messages      int      `json:"messages"`
	Last          string   `json:"last,omitempty"`
	Condensations []string `json:"condensations,omitempty"`
}

func stampOf(j *history.Journal) stamp {
	messages := j.Messages()
	s := stamp{Messages: len(messages)}
	if len(messages) > 0 {
		s.Last = messages[len(messages)-1].ID
	}
	for _, c := range j.Condensations() {
		s.Condensations = append(s.Condensations, c.ID)
	}
	return s
}

// A Placement is the position of a message in the file.
type Placement struct {
	ID         string
	Start, End int
}

// Settle records in the envelope the text around the messages in data, from which f was read. The messages are at
// places, in this order, usually with sep between two of them. Messages without a position of their own, because they
// are part of another record, are not among places. The journal must be complete.
func (f *File) Settle(data []byte, places []Placement, sep string) {
	e := &f.Envelope
	e.Sep = []byte(sep)
	end := 0
	for i, p := range places {
		gap := data[end:p.Start:p.Start]
		if i == 0 {
			e.Head = gap
		} else {
			e.SetGap(p.ID, gap)
		}
		end = p.End
	}
	e.Tail = data[end:]
	s := stampOf(f.Journal)
	e.read = &s
	messages := f.Journal.Messages()
	if len(messages) != len(places) || !slices.EqualFunc(messages, places, func(m core.Message, p Placement) bool { return m.ID == p.ID }) {
		e.order = make([]string, len(places))
		for i, p := range places {
			e.order[i] = p.ID
		}
	}
}

// Unchanged reports whether the journal did not change since it was read.
func (f *File) Unchanged() bool {
	was, is := f.Envelope.read, stampOf(f.Journal)
	return was != nil && was.Messages == is.Messages && was.Last == is.Last && slices.Equal(was.Condensations, is.Condensations)
}

// Imported returns the condensations that the file had when it was read.
func (f *File) Imported() map[string]bool {
	own := map[string]bool{}
	if f.Envelope.read != nil {
		for _, id := range f.Envelope.read.Condensations {
			own[id] = true
		}
	}
	return own
}

// Original returns the file that f was read from: all of it if the journal is unchanged,
// otherwise without the messages that the journal no longer has.
func (f *File) Original() []byte {
	e := &f.Envelope
	out := slices.Clone(e.Head)
	first := true
	add := func(id string) {
		if !first {
			out = append(out, e.Gap(id)...)
		}
		first = false
		out = append(out, f.SourceOf(id)...)
	}
	if e.order != nil {
		for _, id := range e.order {
			add(id)
		}
	} else if e.read != nil {
		messages := f.Journal.Messages()
		for i := range messages[:min(e.read.Messages, len(messages))] {
			add(messages[i].ID)
		}
	}
	return append(out, e.Tail...)
}

// StartAgain begins to write a file of lines in its own format. If nothing changed it writes all of it and returns
// true. Otherwise it writes the byte order mark, if there is one, and returns the rest of the file as it was read.
func (f *File) StartAgain(out *Output) (data []byte, same bool) {
	data = f.Original()
	if f.Unchanged() {
		out.Add(data)
		return nil, true
	}
	if bytes.HasPrefix(data, ByteOrderMark) {
		out.Add(ByteOrderMark)
		data = data[len(ByteOrderMark):]
	}
	return data, false
}
