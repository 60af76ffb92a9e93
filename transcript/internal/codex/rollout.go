package codex

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/items"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
)

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
