package gemini

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// A session as a log has a line for every event:
//
//	{"sessionId": …, "projectHash": …, "startTime": …}       the first
//	{"id": …, "timestamp": …, "type": "user", "content": …}  a message, or the same one again, changed
//	{"$rewindTo": ID}                                        this message and all after it are gone
//	{"$set": {"messages": [ … ]}}                            the whole history from now on
//	{"$set": { … }}                                          other properties of the session
//
// The whole history is set when Gemini CLI compressed it, or shortened results. That is imported
// as a condensation.

func detectLines(data []byte) bool {
	for raw := range jsonl.Head(data, 1) {
		raw = raw[rawjson.SkipSpace(raw, 0):]
		return rawjson.IsObject(raw) && rawjson.Complete(raw) && rawjson.IsString(rawjson.Field(raw, "sessionId")) &&
			rawjson.IsString(rawjson.Field(raw, "projectHash")) && rawjson.Field(raw, "messages") == nil
	}
	return false
}

// A logged message is one of the session, as its last line has it.
type logged struct {
	id       string
	raw      []byte
	messages []core.Message
}

// A stage is the history between two lines that set all of it.
type stage struct {
	line  int
	time  time.Time
	set   int // messages at the front that the line has set
	order []*logged
	at    map[string]*logged
}

func (s *stage) put(m *logged) {
	if was := s.at[m.id]; was != nil {
		*was = *m
		return
	}
	s.at[m.id] = m
	s.order = append(s.order, m)
}

// rewind drops the message id and all after it; all if there is none.
func (s *stage) rewind(id string) (dropped int) {
	at := max(0, slices.IndexFunc(s.order, func(m *logged) bool { return m.id == id }))
	for _, m := range s.order[at:] {
		delete(s.at, m.id)
	}
	dropped = len(s.order) - at
	s.order, s.set = s.order[:at], min(s.set, at)
	return dropped
}

func readLines(data []byte, f *codec.File) error {
	rows, warnings, err := jsonl.Rows(data)
	if err != nil {
		return err
	}
	f.Warnings = append(f.Warnings, warnings...)
	stages := []*stage{{at: map[string]*logged{}}}
	dropped, n := 0, 0
	for _, row := range rows {
		current := stages[len(stages)-1]
		add := func(raw []byte) *syntax.Error {
			n++
			m := &logged{id: rawjson.Text(rawjson.Field(raw, "id")), raw: raw}
			all, model, bad := decodeRecord(raw)
			if bad != nil {
				return bad.In(data, raw, n)
			}
			if model != "" {
				f.Model = model
			}
			m.messages = all
			current.put(m)
			return nil
		}
		set := rawjson.Field(row.Raw, "$set")
		list := rawjson.Field(row.Raw, "messages")
		switch to := rawjson.Field(row.Raw, "$rewindTo"); {
		case rawjson.IsString(to):
			dropped += current.rewind(rawjson.Text(to))
			continue
		case rawjson.IsString(rawjson.Field(row.Raw, "id")):
			if bad := add(row.Raw); bad != nil {
				return bad
			}
			continue
		case rawjson.IsArray(rawjson.Field(set, "messages")):
			list = rawjson.Field(set, "messages")
			current = &stage{set: -1, line: row.Line, time: rawjson.Time(rawjson.Field(set, "lastUpdated")), at: map[string]*logged{}}
			stages = append(stages, current)
		}
		for raw := range rawjson.Elements(list) {
			if !rawjson.IsString(rawjson.Field(raw, "id")) {
				continue // as Gemini CLI does
			}
			if bad := add(raw); bad != nil {
				return bad
			}
		}
		if current.set < 0 {
			current.set = len(current.order)
		}
	}
	if dropped > 0 {
		f.Warn("%s rewound: kept in the file, but not part of the conversation", codec.Count(dropped, "message"))
	}
	r := lineReader{Reader: session.Reader{File: f, Data: data, Taken: codec.IDs{}}, ids: map[string][]string{}}
	for _, s := range stages {
		if err := r.enter(s); err != nil {
			return err
		}
	}
	// Settle takes the messages by their positions in the file.
	slices.SortFunc(r.Places, func(a, b codec.Placement) int { return cmp.Compare(a.Start, b.Start) })
	r.Close(jsonl.LineBreak(data))
	return nil
}

// A lineReader makes a journal of stages.
type lineReader struct {
	session.Reader
	live []*logged           // of the stage before
	ids  map[string][]string // for each record, its messages
}

// enter makes the view equal to the view at the end of s.
func (r *lineReader) enter(s *stage) error {
	known := answers{}
	for _, m := range s.order {
		m.messages = known.once(m.messages)
	}
	if len(r.live) > 0 {
		if err := r.replace(s); err != nil {
			return fmt.Errorf("the history that line %d sets: %w", s.line, err)
		}
	} else {
		s.set = 0
	}
	for _, m := range s.order[s.set:] {
		if err := r.File.Add(r.take(m, true)...); err != nil {
			return err
		}
	}
	r.live = s.order
	return nil
}

func (r *lineReader) take(m *logged, placed bool) []core.Message {
	all := r.Take(m.raw, m.id, rawjson.Time(rawjson.Field(m.raw, "timestamp")), placed && len(m.messages) > 0, slices.Clone(m.messages))
	r.ids[m.id] = nil
	for i := range all {
		r.ids[m.id] = append(r.ids[m.id], all[i].ID)
	}
	return all
}

// replace applies a line that set the history: messages that are no longer in it are hidden, new ones inserted,
// changed ones rewritten.
func (r *lineReader) replace(s *stage) error {
	c := history.Condensation{ID: fmt.Sprint("history-", s.line), Provider: "gemini", Time: s.time}
	at := map[string]int{}
	for i, m := range r.live {
		at[m.id] = i
	}
	keeps := map[string]bool{}
	last, after := -1, ""
	for _, m := range s.order[:s.set] {
		i, was := at[m.id]
		if !was || i < last || !slices.EqualFunc(r.live[i].messages, m.messages, func(x, y core.Message) bool { return x.Role == y.Role }) {
			continue
		}
		last = i
		keeps[m.id] = true
		for k, id := range r.ids[m.id] {
			if !core.EqualParts(r.live[i].messages[k].Parts, m.messages[k].Parts) {
				c.Edit.Rewrite = append(c.Edit.Rewrite, core.Rewrite{ID: id, Parts: m.messages[k].Parts})
			}
		}
	}
	front := true
	for _, m := range r.live {
		if keeps[m.id] {
			front = front && len(r.ids[m.id]) == 0
			continue
		}
		for _, id := range r.ids[m.id] {
			c.Edit.Hide = append(c.Edit.Hide, id)
			if front { // a summary follows the messages that it replaces
				after = id
			}
		}
	}
	for _, m := range s.order[:s.set] {
		if !keeps[m.id] {
			for _, in := range r.take(m, false) {
				in.Kind = core.KindSummary
				c.Edit.Insert = append(c.Edit.Insert, core.Insert{After: after, Message: in})
			}
		} else if ids := r.ids[m.id]; len(ids) > 0 {
			after = ids[len(ids)-1]
		}
	}
	if c.Edit.Empty() {
		return nil
	}
	return r.File.Journal.Condense(c)
}
