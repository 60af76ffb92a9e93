package session

import (
	"slices"
	"strconv"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/codec"
)

// This file serves the formats of agents that keep a call and its result in one record, so
// that a record is several messages. Their sessions are read, and written again as they were.

// A Reader collects what the records of a session say.
type Reader struct {
	File    *codec.File
	Data    []byte
	Taken   codec.IDs
	Records int // so far
	Places  []codec.Placement
}

// Take returns all, what the record raw says, with IDs and the time. Own is the record's ID,
// empty if it has none. Placed says that the record is one of the conversation, and not what
// a compaction inserted.
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

// Turn returns what an assistant says in one request, and the results of its calls.
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

// Compact applies a compaction of the agent's own: what is shown now is hidden but for the
// messages from first on, and summary takes its place. An empty first keeps nothing.
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

// A Message is a message and the line that it stands in.
type Message struct {
	core.Message
	Line int // index into session.lines
}

func Append(f *codec.File, messages []Message) error {
	plain := make([]core.Message, len(messages))
	for i := range messages {
		plain[i] = messages[i].Message
	}
	return f.Add(plain...)
}
