// Package codec is the contract between package transcript and its formats: a [Codec] reads and writes a [File]. It
// also has the means to write a file again exactly as it was read.
package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/plain"
)

// A Codec reads and writes one file format.
type Codec struct {
	Name string // as --format and --to take it
	Doc  string // one line: the program and the form of the file
	Tool string // the program that writes these sessions; empty for an API or a library
	// Vendor is the maker of the models whose signed or encrypted reasoning the messages hold, which no other vendor
	// can read. It is empty if a file may mix vendors.
	Vendor Vendor
	// Request says that a file is a request to a vendor's API.
	Request bool
	// Detect reports whether data, the whole file after decompression and without byte
	// order mark, is of this format. It must be cheap: it looks at the first records and
	// never decodes everything. Data need not be valid in any way.
	Detect func(data []byte) bool
	// Read fills f from data, which it may keep: every Source is a part of it. The journal
	// of f is new and Origin is the codec's name. Where data is malformed, the error is a
	// *syntax.Error.
	Read func(data []byte, f *File) error
	// Write writes f in the format of its origin. Unchanged content is written byte for byte. Formats that can record
	// condensations write everything, the others the view.
	Write func(f *File, out *Output) error
	// Convert writes a conversation of another format. Write and Convert are both set, or both nil: then
	// conversations are read from the format, and written only if nothing changed.
	Convert func(f *File, out *Output) error
}

// A Vendor is a maker of models with a wire format of its own.
type Vendor string

// The vendors that sign or encrypt reasoning.
const (
	Anthropic Vendor = "anthropic"
	OpenAI    Vendor = "openai"
)

// A File is a conversation and the rest of its file.
type File struct {
	// Origin is the name of the format of the file that the conversation was first in;
	// empty if it never was in one.
	Origin    string
	Vendor    Vendor // of the origin
	Journal   *history.Journal
	System    string          // the system prompt, if the format keeps it apart
	Tools     json.RawMessage // the definitions of the tools, in the file's format
	Model     string          // that answered last
	MaxOutput int             // tokens that a request allows for the answer; 0 if unknown
	Counts    []Counted       // by the vendor, that are in records of their own, in order
	Warnings  []Warning
	Envelope  Envelope
	// Apart tells a writer not to merge user messages that a condensation made adjacent.
	Apart bool
}

// Counted is a vendor's count of the messages up to the one with the ID, and of what else was sent with them.
type Counted struct {
	Message string
	Tokens  int
}

// View returns the messages that would be sent.
func (f *File) View() []core.Message { return f.Journal.View() }

// SourceOf returns the Source that the message id was read with; nil if it had none.
func (f *File) SourceOf(id string) []byte {
	if m, ok := f.Journal.Message(id); ok {
		return m.Source
	}
	return nil
}

// Add appends messages that were read.
func (f *File) Add(messages ...core.Message) error { return f.Journal.Append(messages...) }

// Warn adds a warning about the file.
func (f *File) Warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, Warning{Text: fmt.Sprintf(format, args...)})
}

// A Warning is something that was repaired, ignored or lost.
type Warning struct {
	Message string // ID of the message concerned; empty if none
	Text    string
}

// An Output is a file that is being written, and the content for which it had no place. It is made in memory, so that
// an error leaves no partial file.
type Output struct {
	bytes.Buffer
	Warnings []Warning
}

// Add appends pieces.
func (o *Output) Add(pieces ...[]byte) {
	for _, p := range pieces {
		_, _ = o.Write(p) // a buffer cannot fail
	}
}

// Warn records a loss at the message with the given ID; empty if it concerns no single
// message.
func (o *Output) Warn(message, format string, args ...any) {
	o.Warnings = append(o.Warnings, Warning{Message: message, Text: fmt.Sprintf(format, args...)})
}

// Count returns "n things".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// IDs makes the IDs of the messages of one file. The same file gives the same IDs, and so does
// its beginning: messages that are appended later change none.
//
// The value of an ID is the suffix to try next. If it were always the first, a file with n
// equal IDs would take n² steps.
type IDs map[string]int

// Next returns the ID of the nth message, the first is 1: own, the ID in the file, or its
// position if own is empty; with a suffix if another message has that ID already.
func (t IDs) Next(n int, own string) string {
	base := own
	if base == "" {
		base = "m" + strconv.Itoa(n)
	}
	id := base
	for t[id] > 0 {
		t[base] = max(t[base], 1) + 1
		id = base + "#" + strconv.Itoa(t[base])
	}
	t[id] = 1
	return id
}

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
	s.Condensations = append(s.Condensations, plain.Each(j.Condensations(), func(c history.Condensation) string { return c.ID })...)
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
func (f *File) Settle(data []byte, places []Placement, sep []byte) {
	e := &f.Envelope
	e.Sep = slices.Clip(sep)
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
	if f.Envelope.read == nil {
		return map[string]bool{}
	}
	return plain.Set(f.Envelope.read.Condensations)
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
