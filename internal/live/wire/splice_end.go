package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/condensehq/condense/internal/rawjson"
)

// body reads an answer that is no stream, and returns the client's version as far as it is known.
func (s *Splice) body(body []byte) []byte {
	if !json.Valid(body) || !rawjson.IsObject(bytes.TrimSpace(body)) || rawjson.IsObject(rawjson.Field(body, "error")) {
		return body
	}
	r := &s.d.reply
	if r.content == nil {
		body, _ = r.event(s, body)
		s.over = s.held()
		return body
	}
	if u := rawjson.Field(body, "usage"); rawjson.IsObject(u) {
		s.usage = slices.Clone(u)
	}
	if s.rounds == 0 {
		s.id = textAt(body, "id")
	}
	s.stop = textAt(body, r.stops[0]...)
	if message := at(body, r.said...); r.said != nil && message != nil {
		s.said = &part{raw: rawjson.CutField(slices.Clone(message), "tool_calls")}
	}
	for raw := range rawjson.Elements(at(body, r.content...)) {
		s.add(len(s.parts), raw, s.ours(raw)).done = true
	}
	s.over = s.held()
	return body
}

// ending returns data of the end of the last answer as the end of all.
func (s *Splice) ending(data []byte) []byte {
	for _, path := range s.d.reply.stops {
		if textAt(data, path...) == s.d.reply.ends[0] && !s.Own() {
			data = set(data, rawjson.AppendQuote(nil, s.d.reply.done), path[0], path[1:]...)
		}
	}
	if s.rounds > 0 && rawjson.IsObject(rawjson.Field(data, "usage")) {
		data = set(data, s.sum(), "usage")
	}
	return data
}

// wholeParts merges the answers into the last body.
func wholeParts(s *Splice, body []byte) []byte {
	path := s.d.reply.content
	return set(s.ending(s.totals(body)), rawjson.Array(s.allParts()), path[0], path[1:]...)
}

// totals returns the last body with the usage of all answers and the ID of the first.
func (s *Splice) totals(body []byte) []byte {
	body = slices.Clone(body)
	if s.id != "" {
		body = set(body, rawjson.AppendQuote(nil, s.id), "id")
	}
	if s.rounds > 0 && s.usage != nil {
		body = set(body, s.sum(), "usage")
	}
	return body
}

// allParts returns the parts of all answers that the client gets.
func (s *Splice) allParts() [][]byte { return append(slices.Clone(s.seen), s.shownParts()...) }

// shownParts returns the parts of this answer that the client gets.
func (s *Splice) shownParts() (parts [][]byte) {
	for _, p := range s.parts {
		if p.shown >= 0 {
			parts = append(parts, p.raw)
		}
	}
	return parts
}

// sum returns the usage of all answers. If the API has steps, it also lists the usage of each answer in their form: the last of them is
// the size of the conversation.
func (s *Splice) sum() []byte {
	all := append(slices.Clone(s.usages), s.usage)
	total := all[0]
	for _, u := range all[1:] {
		total = plus(total, u)
	}
	if s.d.reply.steps == nil || rawjson.Field(total, "iterations") != nil {
		return total
	}
	var steps [][]byte
	for _, u := range all {
		step := []byte(`{"type":"message"}`)
		for _, name := range s.d.reply.steps {
			if n := rawjson.Field(u, name); n != nil {
				step = set(step, n, name)
			}
		}
		steps = append(steps, step)
	}
	return set(total, rawjson.Array(steps), "iterations")
}

// plus adds the numbers of two objects; of other values, the second counts.
func plus(a, b []byte) []byte {
	if !rawjson.IsObject(a) {
		return b
	}
	out := slices.Clone(a)
	for key, value := range rawjson.Fields(b) {
		name := string(key)
		was := rawjson.Field(a, name)
		switch {
		case rawjson.IsNull(value):
			continue
		case rawjson.IsObject(value):
			value = plus(was, value)
		case rawjson.IsArray(value):
			value = rawjson.Array(append(slices.Collect(rawjson.Elements(was)), slices.Collect(rawjson.Elements(value))...))
		case len(value) > 0 && value[0] >= '0' && value[0] <= '9':
			value = number(rawjson.Int(was) + rawjson.Int(value))
		}
		out = set(out, value, name)
	}
	return out
}

// overlay returns the members of a, replaced by those of b where both have them.
func overlay(a, b []byte) []byte {
	if !rawjson.IsObject(b) {
		return a
	}
	if a == nil {
		return slices.Clone(b)
	}
	for name, value := range rawjson.Fields(b) {
		if !rawjson.IsNull(value) {
			a = set(slices.Clone(a), value, string(name))
		}
	}
	return a
}
