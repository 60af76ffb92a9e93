package wire

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// response reads an event of the Responses API.
func (s *Splice) response(data []byte) ([]byte, bool) {
	kind := rawjson.Text(rawjson.Field(data, "type"))
	item, at := rawjson.Field(data, "item"), rawjson.Int(rawjson.Field(data, "output_index"))
	hold := false
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if s.rounds > 0 {
			return nil, false
		}
		s.id = rawjson.Text(rawjson.Field(rawjson.Field(data, "response"), "id"))
	case "response.output_item.added":
		s.add(at, item, s.ours(item))
	case "response.output_item.done":
		p := s.part(at)
		if p == nil {
			p = s.add(at, item, s.ours(item))
		}
		p.raw, p.done = slices.Clone(item), true
	case "response.completed", "response.incomplete":
		r := rawjson.Field(data, "response")
		s.usage, s.stop = slices.Clone(rawjson.Field(r, "usage")), strings.TrimPrefix(kind, "response.")
		hold = s.held()
		s.over = hold
	}
	if rawjson.Field(data, "output_index") != nil {
		if data = s.indexed(data, "output_index"); data == nil {
			return nil, false
		}
	}
	if hold { // numbered when it is sent
		return data, true
	}
	return s.sequenced(data), false
}

// sequenced gives an event its number.
func (s *Splice) sequenced(data []byte) []byte {
	if n := rawjson.Field(data, "sequence_number"); n != nil {
		if rawjson.Int(n) != s.seq && s.held() {
			data = set(data, number(s.seq), "sequence_number")
		} else if !s.held() {
			s.seq = rawjson.Int(n)
		}
		s.seq++
	}
	return data
}

func (s *Splice) ours(item []byte) bool {
	return rawjson.Text(rawjson.Field(item, "type")) == "function_call" && rawjson.Text(rawjson.Field(item, "name")) == s.tool && rawjson.Field(item, "namespace") == nil
}
