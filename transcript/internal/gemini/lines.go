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
	"github.com/condensehq/condense/internal/plain"
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
	r.ids[m.id] = append(r.ids[m.id], plain.Each(all, func(x core.Message) string { return x.ID })...)
	return all
}

// replace applies a line that set the history: messages that are no longer in it are hidden, new ones inserted,
// changed ones rewritten.
func (r *lineReader) replace(s *stage) error {
	c := history.Condensation{ID: fmt.Sprint("history-", s.line), Provider: "gemini", Time: s.time}
	at := plain.Index(r.live, func(m *logged) string { return m.id })
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

// Qwen is the format of Qwen Code, a descendant of Gemini CLI: ~/.qwen/projects/PROJECT/chats/ID.jsonl has a line for every event,
//
//	{"uuid": …, "parentUuid": …, "sessionId": …, "timestamp": …, "type": "user", "cwd": …, "message": {"role": "user", "parts": [ … ]}}
//
// of the types user, assistant, tool_result and system; the parts are those of Gemini's API. The lines are a tree, and the conversation
// ends with the last one. A line of the subtype chat_compression sets the whole history, in systemPayload.compressedHistory; that is
// imported as a condensation. This follows packages/core/src/services of Qwen Code 0.24
// (chatRecordingService.ts, session-api-history.ts, utils/conversation-chain.ts), which are public, and records of versions 0.14 to 0.22.
var Qwen = codec.Codec{
	Name:   "qwen",
	Doc:    "Qwen Code session: ~/.qwen/projects/*/chats/*.jsonl",
	Tool:   "Qwen Code",
	Detect: detectQwen,
	Read:   readQwen,
}

func detectQwen(data []byte) bool {
	for raw := range jsonl.Head(data, 100) {
		switch message := rawjson.Field(raw, "message"); {
		case !rawjson.IsString(rawjson.Field(raw, "uuid")) || !rawjson.IsString(rawjson.Field(raw, "sessionId")):
			return false
		case message != nil:
			return rawjson.IsArray(rawjson.Field(message, "parts"))
		case rawjson.Text(rawjson.Field(raw, "type")) == "system" && rawjson.Field(raw, "systemPayload") != nil:
			return true
		}
	}
	return false
}

// byProgram are the subtypes of a user's line that Qwen Code wrote itself.
var byProgram = rawjson.Set("notification", "goal_runtime", "goal_control", "agent_retry", "background_task_completed")

func readQwen(data []byte, f *codec.File) error {
	rows, warnings, err := jsonl.Rows(data)
	if err != nil {
		return err
	}
	f.Warnings = append(f.Warnings, warnings...)
	s := session.Reader{File: f, Data: data, Taken: codec.IDs{}}
	live, left := qwenBranch(rows, f), 0
	for i, row := range rows {
		if !live[i] {
			left += min(1, len(rawjson.Field(row.Raw, "message")))
			continue
		}
		id, when := rawjson.Text(rawjson.Field(row.Raw, "uuid")), rawjson.Time(rawjson.Field(row.Raw, "timestamp"))
		all, bad := decodeQwen(row.Raw)
		if bad != nil {
			return bad.In(data, row.Raw, s.Records+1)
		}
		if model := rawjson.Text(rawjson.Field(row.Raw, "model")); model != "" {
			f.Model = model
		}
		if history := rawjson.Field(rawjson.Field(row.Raw, "systemPayload"), "compressedHistory"); rawjson.IsArray(history) {
			if err := setQwen(&s, row, id, when, history); err != nil {
				return fmt.Errorf("the history that line %d sets: %w", row.Line, err)
			}
		} else if len(all) > 0 {
			if err := s.Add(row.Raw, id, when, all); err != nil {
				return err
			}
		}
	}
	if left > 0 {
		f.Warn("%s on abandoned branches: kept in the file, but not part of the conversation", codec.Count(left, "message"))
	}
	s.Close(jsonl.LineBreak(data))
	return nil
}

// qwenBranch returns which rows are on the branch of the last one. Where a parent is missing the row before takes its place, as in Qwen
// Code, but for a rewind, which begins anew.
func qwenBranch(rows []jsonl.Row, f *codec.File) []bool {
	text := func(i int, name string) string { return rawjson.Text(rawjson.Field(rows[i].Raw, name)) }
	at, live := map[string][]int{}, make([]bool, len(rows)) // a message may be in several rows
	for i := range rows {
		at[text(i, "uuid")] = append(at[text(i, "uuid")], i)
	}
	for i := len(rows) - 1; i >= 0 && !live[i]; {
		same := at[text(i, "uuid")]
		for _, k := range same {
			live[k] = true
		}
		first, up := same[0], text(same[0], "parentUuid")
		if above := at[up]; above != nil && up != "" {
			i = above[len(above)-1]
		} else if i = -1; up != "" && text(first, "subtype") != "rewind" {
			f.Warn("line %d follows one that is missing: taken to follow the line before it", rows[first].Line)
			i = first - 1
		}
	}
	return live
}

// decodeQwen returns the messages of the line raw; none if it is not sent.
func decodeQwen(raw []byte) ([]core.Message, *syntax.Error) {
	message, subtype := rawjson.Field(raw, "message"), rawjson.Text(rawjson.Field(raw, "subtype"))
	if message == nil || rawjson.Text(rawjson.Field(raw, "type")) == "system" || subtype == "realtime_message" || subtype == "code_mode_tool_result" {
		return nil, nil
	}
	program := byProgram[subtype] || rawjson.Text(rawjson.Field(raw, "type")) == "tool_result" // a file beside its result
	all, bad := decodeContent(raw, message, program)
	status := rawjson.Text(rawjson.Field(rawjson.Field(raw, "toolCallResult"), "status"))
	for i := range all {
		for k, p := range all[i].Parts {
			if r, ok := p.(core.ToolResult); ok {
				r.IsError = r.IsError || status == "error" || status == "cancelled"
				all[i].Parts[k] = r
			}
		}
	}
	return all, bad
}

// decodeContent returns the messages that the content message, a part of raw, is: results apart from what was said.
func decodeContent(raw, message []byte, program bool) ([]core.Message, *syntax.Error) {
	role := core.RoleUser
	if rawjson.Text(rawjson.Field(message, "role")) == "model" {
		role = core.RoleAssistant
	}
	parts, bad := decodeGemini(raw, rawjson.Field(message, "parts"))
	return session.Split(role, program, parts...), bad
}

// setQwen imports a history that a line set: messages at its end that were there before stay, the others come in their place.
func setQwen(s *session.Reader, row jsonl.Row, id string, when time.Time, list []byte) error {
	var all []core.Message
	for content := range rawjson.Elements(list) {
		messages, bad := decodeContent(row.Raw, content, false)
		if bad != nil {
			return bad
		}
		all = append(all, messages...)
	}
	view, kept, first := s.File.View(), 0, ""
	for kept < min(len(view), len(all)) && same(view[len(view)-1-kept], all[len(all)-1-kept]) {
		kept++
		first = view[len(view)-kept].ID
	}
	all = all[:len(all)-kept]
	if len(all) > 0 {
		all = s.Take(row.Raw, id, when, false, all)
	}
	for i := range all {
		all[i].Kind = core.KindSummary
	}
	return session.Compact(s.File, cmp.Or(id, fmt.Sprint("history-", row.Line)), "qwen", when, first, all)
}

func same(a, b core.Message) bool { return a.Role == b.Role && core.EqualParts(a.Parts, b.Parts) }
