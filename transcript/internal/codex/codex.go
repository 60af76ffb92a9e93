// Package codex reads and writes rollouts of Codex.
//
// Codex records a session in ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl. A line is
//
//	{"timestamp": …, "type": …, "payload": { … }}
//
// where type is session_meta (the session and its instructions), turn_context (the model and
// the rules of a turn), response_item (an item as OpenAI's Responses API has it), compacted,
// event_msg (events for the user interface) or one that only the interface needs. Files from
// before September 2025 have the bare items, after a first line with the id of the session.
// This follows the source of Codex, which is public (codex-rs: protocol, rollout, core).
//
// An item is a message, reasoning, a call or a result. A compacted line restarts the history,
// with its replacement_history if it has one; older ones have only a summary, and then the
// user's own messages are kept, up to 20,000 tokens by Codex's estimate. It is imported as a
// condensation. An event thread_rolled_back undoes the last turns: their items are kept in the
// file but are not part of the conversation.
package codex

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/items"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// none is not an index.
const none = -1

// Codec is the format.
var Codec = codec.Codec{
	Name:    "codex",
	Doc:     "Codex rollout: ~/.codex/sessions/*/*/*/rollout-*.jsonl",
	Vendor:  codec.OpenAI,
	Detect:  detect,
	Read:    read,
	Write:   write,
	Convert: convertFile,
}

// detect looks at the first lines.
func detect(data []byte) bool {
	for raw := range jsonl.Head(data, 20) {
		var kind, role, record, payload, id, instructions, answer []byte // an answer of the API has instructions too
		rawjson.Pick(raw, []string{"type", "payload", "record_type", "id", "instructions", "git", "object", "role"},
			&kind, &payload, &record, &id, &instructions, &instructions, &answer, &role)
		switch {
		case rawjson.IsObject(payload) && slices.Contains(kinds, rawjson.Text(kind)):
			return true
		case rawjson.Text(record) == "state",
			id != nil && instructions != nil && answer == nil && rawjson.Text(kind) == "" && rawjson.Text(role) == "":
			return true
		case !rawjson.IsObject(payload) && rawjson.Text(record) == "":
			return false
		}
	}
	return false
}

// kinds are the types of lines that identify a rollout.
var kinds = []string{"session_meta", "response_item", "event_msg", "turn_context", "compacted"}

func read(data []byte, f *codec.File) error {
	r, err := parseRollout(data)
	if err != nil {
		return err
	}
	f.Warnings = append(f.Warnings, r.warnings...)
	f.System, f.Tools, f.Model = r.system, r.tools, r.model
	messages, err := r.messages(data)
	if err != nil {
		return err
	}
	places := make([]codec.Placement, len(messages))
	done := 0
	for i := range messages {
		l := &r.lines[messages[i].Line]
		places[i] = codec.Placement{ID: messages[i].ID, Start: l.At, End: l.At + len(l.Raw)}
	}
	for i := range r.lines {
		l := &r.lines[i]
		if l.void || l.kind != "compacted" {
			continue
		}
		end := done
		for end < len(messages) && messages[end].Line < i {
			end++
		}
		if err := session.Append(f, messages[done:end]); err != nil {
			return err
		}
		done = end
		c, bad := l.compaction(f.View(), r.taken)
		if bad != nil {
			return bad.In(data, l.payload, 0)
		}
		if c.Edit.Empty() {
			continue
		}
		if err := f.Journal.Condense(c); err != nil {
			return fmt.Errorf("compaction in line %d: %w", l.Line, err)
		}
	}
	if err := session.Append(f, messages[done:]); err != nil {
		return err
	}
	next := 0
	for i := range r.lines {
		for next < len(messages) && messages[next].Line < i {
			next++
		}
		said := rawjson.Field(rawjson.Field(r.lines[i].payload, "info"), "last_token_usage")
		if n := rawjson.Int(rawjson.Field(said, "input_tokens")); n > 0 && next > 0 {
			n += rawjson.Int(rawjson.Field(said, "output_tokens"))
			f.Counts = append(f.Counts, codec.Counted{Message: messages[next-1].ID, Tokens: n})
		}
	}
	f.Settle(data, places, jsonl.LineBreak(data))
	return nil
}

// messages returns the messages of the items that were not undone.
func (r *rollout) messages(data []byte) ([]session.Message, error) {
	var all []session.Message
	n := 0
	for i := range r.lines {
		l := &r.lines[i]
		if l.kind != "response_item" {
			continue
		}
		n++
		m, sent, bad := items.Decode(l.payload)
		if bad != nil {
			return nil, bad.In(data, l.payload, n)
		}
		id := r.taken.Next(n, m.ID)
		if l.void || !sent {
			continue
		}
		m.ID, m.Time, m.Source = id, l.time, slices.Clip(l.Raw)
		all = append(all, session.Message{Message: m, Line: i})
	}
	return all, nil
}

// compactionID returns the ID of the condensation that the compacted line l is imported as.
func (l *rolloutLine) compactionID() string { return "compaction-" + strconv.Itoa(l.Line) }

// compaction returns the condensation of view that the compacted line l is.
func (l *rolloutLine) compaction(view []core.Message, taken codec.IDs) (history.Condensation, *syntax.Error) {
	id := l.compactionID()
	c := history.Condensation{ID: id, Provider: "codex", Time: l.time}
	after := ""
	if len(view) > 0 {
		after = view[len(view)-1].ID
	}
	insert := func(m core.Message) {
		m.ID, m.Time = taken.Next(0, id+"."+strconv.Itoa(len(c.Edit.Insert)+1)), l.time
		c.Edit.Insert = append(c.Edit.Insert, core.Insert{After: after, Message: m})
	}
	summary := rawjson.Text(rawjson.Field(l.payload, "message"))
	if replacement := rawjson.Field(l.payload, "replacement_history"); rawjson.IsArray(replacement) {
		for item := range rawjson.Elements(replacement) {
			m, sent, err := items.Decode(item)
			if err != nil {
				err.Offset += rawjson.Offset(l.payload, item)
				return c, err
			}
			if !sent {
				continue
			}
			if m.Kind == core.KindOriginal && summary != "" && blocks.Join(m.Parts) == summary {
				m.Kind = core.KindSummary
			}
			m.Source = slices.Clip(item)
			insert(m)
		}
		c.Edit.Hide = append(c.Edit.Hide, plain.Each(view, func(x core.Message) string { return x.ID })...)
		return c, nil
	}
	room := 4 * 20_000 // bytes: Codex estimates 4 for a token
	for i := len(view) - 1; i >= 0; i-- {
		if m := &view[i]; m.Role == core.RoleUser && m.Kind == core.KindOriginal && !contextual(m.Parts) && room > 0 {
			room -= len(blocks.Join(m.Parts))
			continue
		}
		c.Edit.Hide = append(c.Edit.Hide, view[i].ID)
	}
	slices.Reverse(c.Edit.Hide)
	summary = cmp.Or(summary, "(no summary available)")
	insert(core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(summary)}})
	return c, nil
}

// contextual reports whether a message of the user was written by Codex.
func contextual(parts []core.Part) bool {
	return slices.ContainsFunc(parts, func(p core.Part) bool {
		t, ok := p.(core.Text)
		s := strings.TrimLeft(string(t), " \t\r\n")
		e, _ := toolcall.Begins(s)
		return ok && e.Agent == "codex"
	})
}

// A rollout is a parsed file.
type rollout struct {
	lines    []rolloutLine
	warnings []codec.Warning
	bare     bool // the lines are items without a wrapper
	system   string
	tools    json.RawMessage
	model    string
	taken    codec.IDs
}

// A rolloutLine is the relevant part of a line.
type rolloutLine struct {
	jsonl.Row
	kind    string
	payload []byte // of a bare item, the line
	time    time.Time
	void    bool // it was undone
}

func parseRollout(data []byte) (*rollout, error) {
	all, warnings, err := jsonl.Rows(data)
	if err != nil {
		return nil, err
	}
	r := &rollout{lines: make([]rolloutLine, len(all)), warnings: warnings, taken: codec.IDs{}}
	meta := false
	for i, raw := range all {
		l := &r.lines[i]
		l.parse(raw)
		switch l.kind {
		case "session_meta":
			if !meta { // a fork has its own first, then its parent's
				r.meta(l.payload)
			}
			meta = true
		case "turn_context":
			if m := rawjson.Text(rawjson.Field(l.payload, "model")); m != "" {
				r.model = m
			}
		case "response_item":
			r.bare = r.bare || &l.payload[0] == &l.Raw[0]
		}
	}
	r.rollBack()
	return r, nil
}

func (l *rolloutLine) parse(r jsonl.Row) {
	l.Row = r
	var when, kind, of []byte
	rawjson.Pick(r.Raw, []string{"timestamp", "type", "payload", "record_type"}, &when, &kind, &l.payload, &of)
	record := rawjson.Text(of)
	l.time, l.kind = rawjson.Time(when), rawjson.Text(kind)
	switch {
	case l.payload != nil:
	case l.kind != "" && (record == "" || record == "response"):
		l.kind, l.payload = "response_item", r.Raw
	default:
		l.kind = ""
	}
}

func (r *rollout) meta(payload []byte) {
	for k, v := range rawjson.Fields(payload) {
		switch string(k) {
		case "base_instructions":
			if r.system = rawjson.Text(v); rawjson.IsObject(v) {
				r.system = rawjson.Text(rawjson.Field(v, "text"))
			}
		case "dynamic_tools":
			if rawjson.IsArray(v) {
				r.tools = json.RawMessage(slices.Clip(v))
			}
		}
	}
}

// rollBack marks the lines that a later one undoes, from the user message that begins the turn. A compaction in a
// turn is undone with it.
func (r *rollout) rollBack() {
	var turns []int // the lines that begin one
	left := 0
	for i := range r.lines {
		l := &r.lines[i]
		switch l.kind {
		case "response_item":
			if rawjson.Text(rawjson.Field(l.payload, "role")) != string(core.RoleUser) {
				continue
			}
			if m, _, bad := items.Decode(l.payload); bad == nil && m.Role == core.RoleUser && !contextual(m.Parts) {
				turns = append(turns, i)
			}
		case "event_msg":
			n := rawjson.Int(rawjson.Field(l.payload, "num_turns"))
			if rawjson.Text(rawjson.Field(l.payload, "type")) != "thread_rolled_back" || n == 0 || len(turns) == 0 {
				continue
			}
			first := max(0, len(turns)-n)
			for j := turns[first]; j < i; j++ {
				if kind := r.lines[j].kind; !r.lines[j].void && (kind == "response_item" || kind == "compacted") {
					r.lines[j].void = true
					left++
				}
			}
			turns = turns[:first]
		}
	}
	if left > 0 {
		r.warnings = append(r.warnings, codec.Warning{Text: fmt.Sprintf(
			"%s undone: kept in the file, but not part of the conversation", codec.Count(left, "item"))})
	}
}
