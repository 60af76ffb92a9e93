package wire

import (
	"slices"

	"github.com/condensehq/condense/internal/rawjson"
)

// converse reads an event of the Converse API, whose kind is in a header of its frame: see [Splice.messages].
func (s *Splice) converse(e *amazonEvent, data []byte) ([]byte, bool) {
	if e == nil {
		return data, false
	}
	const index = "contentBlockIndex"
	at := rawjson.Int(rawjson.Field(data, index))
	switch e.kind {
	case "messageStart":
		if s.rounds > 0 {
			return nil, false
		}
	case "contentBlockStart": // of a call; other blocks begin with their first delta
		if call := rawjson.Field(rawjson.Field(data, "start"), toolUse); call != nil {
			p := s.add(at, call, rawjson.Text(rawjson.Field(call, "name")) == s.tool)
			p.raw, p.within = set(p.raw, []byte("{}"), "input"), []string{toolUse}
		}
		return s.indexed(data, index), false
	case "contentBlockDelta":
		delta := rawjson.Field(data, "delta")
		p := s.part(at)
		if p == nil {
			p = s.add(at, []byte("{}"), false)
		}
		thought := rawjson.Field(delta, "reasoningContent")
		switch call := rawjson.Field(delta, toolUse); {
		case call != nil:
			p.input = append(p.input, inside(rawjson.Field(call, "input"))...)
		case thought == nil:
			p.grow(delta)
		case rawjson.Field(thought, "redactedContent") != nil:
			p.within = []string{"reasoningContent"}
			p.grow(thought)
		default:
			p.within = []string{"reasoningContent", "reasoningText"}
			p.grow(thought)
		}
		return s.indexed(data, index), false
	case "contentBlockStop":
		if p := s.part(at); p != nil {
			p.finish()
		}
		return s.indexed(data, index), false
	case "messageStop":
		s.stop = rawjson.Text(rawjson.Field(data, "stopReason"))
		return data, s.held()
	case "metadata":
		s.usage = slices.Clone(rawjson.Field(data, "usage"))
		s.over = s.held()
		return data, s.over
	}
	return data, false
}

// lastConverse returns an event of the end of the last answer as the end of the whole stream.
func (s *Splice) lastConverse(data []byte) []byte {
	if rawjson.Text(rawjson.Field(data, "stopReason")) == "tool_use" && !s.Own() {
		data = set(data, []byte(`"end_turn"`), "stopReason")
	}
	if s.rounds > 0 && rawjson.Field(data, "usage") != nil {
		data = set(data, s.sum(), "usage")
	}
	return data
}
