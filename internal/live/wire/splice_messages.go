package wire

import (
	"github.com/condensehq/condense/internal/rawjson"
)

// messages reads an event of the Messages API. It returns the client's version, nil for none, and whether the event
// is held back.
func (s *Splice) messages(data []byte) ([]byte, bool) {
	switch rawjson.Text(rawjson.Field(data, "type")) {
	case "message_start":
		s.usage = overlay(s.usage, rawjson.Field(rawjson.Field(data, "message"), "usage"))
		if s.rounds > 0 {
			return nil, false
		}
	case "content_block_start":
		block := rawjson.Field(data, "content_block")
		s.add(rawjson.Int(rawjson.Field(data, "index")), block, rawjson.Text(rawjson.Field(block, "type")) == "tool_use" && rawjson.Text(rawjson.Field(block, "name")) == s.tool)
		return s.indexed(data, "index"), false
	case "content_block_delta":
		if p := s.part(rawjson.Int(rawjson.Field(data, "index"))); p != nil {
			p.grow(rawjson.Field(data, "delta"))
		}
		return s.indexed(data, "index"), false
	case "content_block_stop":
		if p := s.part(rawjson.Int(rawjson.Field(data, "index"))); p != nil {
			p.finish()
		}
		return s.indexed(data, "index"), false
	case "message_delta":
		s.usage = overlay(s.usage, rawjson.Field(data, "usage"))
		s.stop = rawjson.Text(rawjson.Field(rawjson.Field(data, "delta"), "stop_reason"))
		return data, s.held()
	case "message_stop":
		s.over = s.held()
		return data, s.over
	}
	return data, false
}
