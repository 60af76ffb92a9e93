// Package session is shared by the formats of agents' sessions.
package session

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
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
func (s *Reader) Close(sep []byte) { s.File.Settle(s.Data, s.Places, sep) }

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
	return f.Add(plain.Each(messages, func(m Message) core.Message { return m.Message })...)
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

// A Record is a part of a file that was read as one or several messages.
type Record struct {
	Raw   []byte
	IDs   []string // of the messages that it was and that the journal still has
	Steps int      // how many messages it was
}

// A Group is the content of one record: an existing record's remaining messages, or new messages.
type Group struct {
	Record  *Record // nil if it is new
	Again   bool    // another group has a part of the same record
	Role    core.Role
	Entries []*history.Entry
}

// A View is the view of a session as records.
type View struct {
	Groups []Group
	// added are the results that no record has: new messages that answer a call.
	added map[string]core.ToolResult
}

// ViewOf returns the visible messages of entries. Steps returns the number of messages of a record.
func ViewOf(entries []history.Entry, steps func(raw []byte) int) *View {
	of := recordsOf(entries, steps)
	v := &View{added: map[string]core.ToolResult{}}
	seen := map[*Record]bool{}
	for i := range entries {
		e := &entries[i]
		if len(e.HiddenBy) > 0 {
			continue
		}
		r, role := of[e.Message.ID], e.Message.Role
		if role == core.RoleTool {
			role = core.RoleAssistant
		}
		if r == nil {
			for _, p := range e.Message.Parts {
				if result, ok := p.(core.ToolResult); ok {
					v.added[result.CallID] = result
				}
			}
		}
		if n := len(v.Groups); n > 0 {
			last := &v.Groups[n-1]
			follows := r == nil && role == core.RoleAssistant && last.Role == role && e.Message.Role == core.RoleTool
			if last.Record == r && (r != nil || follows) {
				last.Entries = append(last.Entries, e)
				continue
			}
		}
		v.Groups = append(v.Groups, Group{Record: r, Again: r != nil && seen[r], Role: role, Entries: []*history.Entry{e}})
		seen[r] = true
	}
	return v
}

// recordsOf returns the record that each message comes from.
func recordsOf(entries []history.Entry, steps func(raw []byte) int) map[string]*Record {
	of := map[string]*Record{}
	var last *Record
	for i := range entries {
		m := &entries[i].Original
		switch {
		case m.Source != nil:
			last = &Record{Raw: m.Source, IDs: []string{m.ID}, Steps: steps(m.Source)}
		case last != nil && len(last.IDs) < last.Steps && strings.HasPrefix(m.ID, last.IDs[0]+"."):
			last.IDs = append(last.IDs, m.ID) // later messages of the same record are named after the first
		default:
			continue
		}
		of[m.ID] = last
	}
	return of
}

// Result returns the result of a call in g, if that belongs into its record.
func (v *View) Result(g *Group, call string) (core.ToolResult, bool) {
	for _, e := range g.Entries {
		for _, p := range e.Message.Parts {
			if r, ok := p.(core.ToolResult); ok && r.CallID == call {
				return r, true
			}
		}
	}
	r, ok := v.added[call]
	return r, ok
}

// Same reports whether g is all that its record said.
func (v *View) Same(g *Group) bool {
	if g.Record == nil || g.Again || len(g.Entries) != g.Record.Steps || len(g.Record.IDs) != g.Record.Steps {
		return false
	}
	answered := map[string]bool{}
	for i, e := range g.Entries {
		if e.Message.ID != g.Record.IDs[i] || e.RewrittenBy != "" {
			return false
		}
		for _, p := range e.Message.Parts {
			if r, ok := p.(core.ToolResult); ok {
				answered[r.CallID] = true
			}
		}
	}
	for _, e := range g.Entries {
		for _, p := range e.Message.Parts {
			if c, ok := p.(core.ToolCall); ok && !answered[c.ID] {
				if _, ok := v.added[c.ID]; ok {
					return false
				}
			}
		}
	}
	return true
}

// Said returns the parts of g but the results, by message; none that says nothing.
func (g *Group) Said() [][]core.Part {
	var all [][]core.Part
	for _, e := range g.Entries {
		said := plain.Only(e.Message.Parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return !ok })
		if len(said) > 0 {
			all = append(all, said)
		}
	}
	return all
}

// A Patcher changes an array of parts.
type Patcher struct {
	// Decode returns the content of a part; nil if it is not sent.
	Decode func(raw []byte) core.Part
	// Encode returns p as a part; was said it before, or is nil.
	Encode func(was []byte, p core.Part) []byte
	// Step returns a new part "step-start", which begins a request; nil if there are none.
	Step func() []byte
	// Only leaves out parts that are not sent.
	Only bool
}

// Parts returns the parts was, changed to the content of several messages. Parts that are not sent keep their place.
func (c *Patcher) Parts(was []byte, said [][]core.Part) [][]byte {
	var raw, begins, out [][]byte
	var old []core.Part
	for part := range rawjson.Elements(was) {
		if c.Step != nil && rawjson.Text(rawjson.Field(part, "type")) == "step-start" {
			begins = append(begins, part)
			continue
		}
		raw, old = append(raw, part), append(old, c.Decode(part))
	}
	sent := plain.Each(old, func(x core.Part) bool { return x != nil || c.Only })
	next := 0
	unsent := func(to int) {
		for ; next < to; next++ {
			if !sent[next] {
				out = append(out, raw[next])
			}
		}
	}
	for n, parts := range said {
		switch {
		case n < len(begins):
			out = append(out, begins[n])
		case c.Step != nil && (n > 0 || was == nil):
			out = append(out, c.Step())
		}
		match := blocks.Match(old, parts)
		for i, p := range parts {
			j := match[i]
			if j >= 0 && j < next {
				if _, ok := p.(core.Text); ok && old[j] != p { // another text, at the same position
					j = -1
				}
			}
			if j < 0 {
				out = append(out, c.Encode(nil, p))
				continue
			}
			unsent(j)
			out = append(out, c.Encode(raw[j], p))
			old[j] = nil // it is used
		}
	}
	unsent(len(raw))
	return out
}

// An Array writes the records of a file that has them in an array.
type Array struct {
	Envelope *codec.Envelope // nil if the file is new
	records  [][]byte
	gaps     [][]byte
}

// Add adds a record, which was the message with the given ID; empty if it is new.
func (a *Array) Add(raw []byte, id string) {
	var gap []byte
	if a.Envelope != nil {
		if gap = a.Envelope.Sep; id != "" {
			gap = a.Envelope.Gap(id)
		}
	}
	a.records, a.gaps = append(a.records, raw), append(a.gaps, gap)
}

// Len returns how many records there are.
func (a *Array) Len() int { return len(a.records) }

// Records returns the records.
func (a *Array) Records() [][]byte { return a.records }

// Write writes the file. List finds the array in the whole of one without messages.
func (a *Array) Write(out *codec.Output, list func(data []byte) []byte) {
	head, tail := a.frame(list)
	out.Add(head)
	for i, raw := range a.records {
		if i > 0 {
			out.Add(a.gaps[i])
		}
		out.Add(raw)
	}
	out.Add(tail)
}

// frame returns the text before and after the records.
func (a *Array) frame(list func(data []byte) []byte) (head, tail []byte) {
	head, tail = a.Envelope.Head, a.Envelope.Tail
	if len(head) == 0 { // no message of the file had a place
		at := 0
		if bytes.HasPrefix(tail, codec.ByteOrderMark) {
			at = len(codec.ByteOrderMark)
		}
		records := list(tail[at:])
		end := at + rawjson.Offset(tail[at:], records) + rawjson.SkipValue(records, 0) - 1
		head, tail = tail[:end:end], tail[end:]
		if trimmed := bytes.TrimRight(head, " \t\r\n"); a.Len() > 0 && !bytes.HasSuffix(trimmed, []byte("[")) {
			head = append(head, ',')
		}
		return head, tail
	}
	if a.Len() == 0 { // records that are not sent may be on both sides, with their commas
		trimmed := bytes.TrimRight(head, " \t\r\n")
		if before, ok := bytes.CutSuffix(trimmed, []byte(",")); ok {
			head = before
		} else if after, ok := bytes.CutPrefix(bytes.TrimLeft(tail, " \t\r\n"), []byte(",")); ok {
			tail = after
		}
	}
	return head, tail
}
