// Package session is shared by the formats of agents' sessions.
package session

import (
	"slices"
	"strconv"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
)

// A Reader collects the messages of a session in which a record can be several messages,
// because a call and its result are in one record.
type Reader struct {
	File    *codec.File
	Data    []byte
	Taken   codec.IDs
	Records int // so far
	Places  []codec.Placement
}

// Take returns all, the messages of the record raw, with their IDs and the time. Own is the
// record's ID, empty if it has none. Placed says that the record is a part of the
// conversation, and not inserted by a compaction.
func (s *Reader) Take(raw []byte, own string, when time.Time, placed bool, all []core.Message) []core.Message {
	s.Records++
	for i := range all {
		m := &all[i]
		m.Time = when
		if i > 0 {
			m.ID = s.Taken.Next(s.Records, all[0].ID+"."+strconv.Itoa(i+1))
			continue
		}
		m.ID = s.Taken.Next(s.Records, own)
		m.Source = slices.Clip(raw)
		if placed {
			at := rawjson.Offset(s.Data, raw)
			s.Places = append(s.Places, codec.Placement{ID: m.ID, Start: at, End: at + len(raw)})
		}
	}
	return all
}

// Add adds the messages of the record raw: see [Reader.Take].
func (s *Reader) Add(raw []byte, own string, when time.Time, all []core.Message) error {
	return s.File.Add(s.Take(raw, own, when, true, all)...)
}

// Open returns a reader of data, a JSON file whose records are the elements of its member "messages", and these
// records.
func Open(data []byte, f *codec.File) (*Reader, []byte, error) {
	if err := syntax.Validate(data); err != nil {
		return nil, nil, err
	}
	records := rawjson.Field(data, "messages")
	if !rawjson.IsArray(records) {
		return nil, nil, syntax.NoMessages(data, "messages", records)
	}
	return &Reader{File: f, Data: data, Taken: codec.IDs{}}, records, nil
}

// Close records the positions of the messages. The journal must be complete; sep is the text between two records.
func (s *Reader) Close(sep string) { s.File.Settle(s.Data, s.Places, sep) }

// Turn returns the messages of one request: the assistant's content and the results of its calls.
func Turn(said, results []core.Part) []core.Message {
	var all []core.Message
	if len(said) > 0 {
		all = append(all, core.Message{Role: core.RoleAssistant, Parts: said})
	}
	if len(results) > 0 {
		all = append(all, core.Message{Role: core.RoleTool, Parts: results})
	}
	return all
}

// Split returns parts, which role said or, if a program did, a program in its name, as messages: results become messages of their own.
func Split(role core.Role, program bool, parts ...core.Part) (all []core.Message) {
	for _, p := range parts {
		of := role
		if _, ok := p.(core.ToolResult); ok {
			of = core.RoleTool
		} else if p == core.Part(core.Text("")) {
			continue
		}
		if n := len(all); n == 0 || all[n-1].Role != of {
			all = append(all, core.Message{Role: of, Program: program && of == core.RoleUser})
		}
		all[len(all)-1].Parts = append(all[len(all)-1].Parts, p)
	}
	return all
}

// Compact applies the agent's own compaction: all messages of the view before first are
// hidden, and summary is inserted in their place. An empty first keeps none.
func Compact(f *codec.File, id, provider string, when time.Time, first string, summary []core.Message) error {
	c := history.Condensation{ID: id, Provider: provider, Time: when}
	after := ""
	for _, m := range f.View() {
		if m.ID == first {
			break
		}
		c.Edit.Hide = append(c.Edit.Hide, m.ID)
		after = m.ID
	}
	if len(c.Edit.Hide) == 0 {
		return f.Add(summary...)
	}
	for i := range summary {
		c.Edit.Insert = append(c.Edit.Insert, core.Insert{After: after, Message: summary[i]})
	}
	return f.Journal.Condense(c)
}

// A Message is a message and the line that it is in.
type Message struct {
	core.Message
	Line int // index into the lines of the session
}

// Append adds messages to f.
func Append(f *codec.File, messages []Message) error {
	plain := make([]core.Message, len(messages))
	for i := range messages {
		plain[i] = messages[i].Message
	}
	return f.Add(plain...)
}

// Changes describe a changed session for its writer.
type Changes struct {
	Line   map[string]int  // the line of a message, by its ID
	Own    map[string]bool // the compactions of the agent's own that the file had
	Active map[string]bool // the compactions of Own that are not undone
}

// ChangesOf returns the changes of f, which had messages when it was read.
func ChangesOf(f *codec.File, messages []Message) Changes {
	c := Changes{Line: make(map[string]int, len(messages)), Own: f.Imported(), Active: map[string]bool{}}
	for i := range messages {
		c.Line[messages[i].ID] = messages[i].Line
	}
	for _, done := range f.Journal.Condensations() {
		c.Active[done.ID] = c.Own[done.ID]
	}
	return c
}
