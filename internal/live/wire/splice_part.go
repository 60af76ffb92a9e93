package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/condensehq/condense/internal/rawjson"
)

// A part is a block of content, a call or an item, while it is assembled.
type part struct {
	at    int // the vendor's index
	shown int // the client's, -1 for a call of the tool
	raw   []byte
	as    []byte            // for the client, if that is not raw
	texts map[string][]byte // strings of raw that come in pieces: the inside of their quotes
	input []byte            // the same, of the JSON that is the input of a call
	// Names of the objects around raw when it is finished: the kind of a block of the Converse API.
	within []string
	done   bool
}

// add begins a part.
func (s *Splice) add(at int, raw []byte, ours bool) *part {
	p := &part{at: at, shown: -1, raw: slices.Clone(raw)}
	if !ours {
		p.shown = s.shown
		s.shown++
	}
	s.parts = append(s.parts, p)
	return p
}

func (s *Splice) part(at int) *part {
	for _, p := range slices.Backward(s.parts) {
		if p.at == at {
			return p
		}
	}
	return nil
}

// indexed returns data with the client's index in place of the vendor's; nil if it is about a call of the tool.
func (s *Splice) indexed(data []byte, name string) []byte {
	at := rawjson.Int(rawjson.Field(data, name))
	switch p := s.part(at); {
	case p == nil || p.shown == at:
		return data
	case p.shown < 0:
		return nil
	default:
		return set(data, number(p.shown), name)
	}
}

// grow adds a delta to the part: strings are pieces of a string.
func (p *part) grow(delta []byte) {
	for key, value := range rawjson.Fields(delta) {
		switch name := string(key); {
		case name == "type":
		case name == "partial_json":
			p.input = append(p.input, inside(value)...)
		case name == "citation":
			list := slices.Collect(rawjson.Elements(rawjson.Field(p.raw, "citations")))
			p.raw = set(p.raw, rawjson.Array(append(list, value)), "citations")
		case rawjson.IsString(value):
			p.append(name, value)
		default:
			p.raw = set(p.raw, value, name)
		}
	}
}

// append adds to a string of the part.
func (p *part) append(name string, value []byte) {
	if p.texts == nil {
		p.texts = map[string][]byte{}
	}
	text, ok := p.texts[name]
	if was := rawjson.Field(p.raw, name); !ok && rawjson.IsString(was) {
		text = slices.Clone(inside(was))
	}
	p.texts[name] = append(text, inside(value)...)
}

// finish assembles the part. A call whose input is not JSON is incomplete.
func (p *part) finish() {
	for _, name := range slices.Sorted(maps.Keys(p.texts)) {
		p.raw = set(p.raw, quoted(p.texts[name]), name)
	}
	p.texts = nil
	if len(p.input) > 0 {
		input := []byte(rawjson.Unquote(quoted(p.input)))
		if !json.Valid(input) || !rawjson.IsObject(bytes.TrimSpace(input)) {
			return
		}
		p.raw, p.input = set(p.raw, oneLine(input), "input"), nil
	}
	for _, name := range slices.Backward(p.within) {
		p.raw = set([]byte("{}"), p.raw, name)
	}
	p.within, p.done = nil, true
}

// inside returns the inside of the quotes of a string.
func inside(raw []byte) []byte {
	if !rawjson.IsString(raw) || len(raw) < 2 {
		return nil
	}
	return raw[1 : len(raw)-1]
}

func quoted(inside []byte) []byte { return slices.Concat([]byte{'"'}, inside, []byte{'"'}) }

// set replaces a value inside of an object: the member called name or, within that, the member at the path deeper. Of an array
// its first element is meant.
func set(raw, value []byte, name string, deeper ...string) []byte {
	raw = slices.Clip(raw)
	if len(deeper) > 0 {
		inner := rawjson.Field(raw, name)
		if inner == nil {
			inner = []byte("{}")
		}
		first := inner
		if rawjson.IsArray(inner) {
			first = firstOf(inner)
		}
		value = rawjson.ReplaceValue(inner, first, set(slices.Clone(first), value, deeper[0], deeper[1:]...))
	}
	return rawjson.SetField(raw, name, value)
}

func number(n int) []byte { return []byte(strconv.Itoa(n)) }

func oneLine(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return []byte("{}")
	}
	return b.Bytes()
}

// firstOf returns the first element of an array; nil if there is none.
func firstOf(array []byte) []byte {
	for raw := range rawjson.Elements(array) {
		return raw
	}
	return nil
}

// at returns the value at a path of members: see set.
func at(raw []byte, path ...string) []byte {
	for _, name := range path {
		if rawjson.IsArray(raw) {
			raw = firstOf(raw)
		}
		raw = rawjson.Field(raw, name)
	}
	return raw
}

// textAt returns the string at a path of members.
func textAt(raw []byte, path ...string) string { return rawjson.Text(at(raw, path...)) }

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
