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
