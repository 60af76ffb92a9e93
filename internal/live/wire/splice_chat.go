package wire

import (
	"bytes"
	"slices"

	"github.com/condensehq/condense/internal/rawjson"
)

// chunk reads a chunk of the Chat API. Only the first choice counts.
func (s *Splice) chunk(data []byte) ([]byte, bool) {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		s.over = s.held()
		return data, s.over
	}
	if u := rawjson.Field(data, "usage"); rawjson.IsObject(u) {
		s.usage = slices.Clone(u)
	}
	if id := rawjson.Field(data, "id"); s.rounds == 0 && s.id == "" {
		s.id = rawjson.Text(id)
	} else if s.rounds > 0 && id != nil && s.id != "" {
		data = set(data, rawjson.AppendQuote(nil, s.id), "id")
	}
	var choice []byte
	for choice = range rawjson.Elements(rawjson.Field(data, "choices")) {
		break
	}
	if choice == nil {
		return data, s.held() && s.stop != ""
	}
	delta := rawjson.Field(choice, "delta")
	shown := s.grow(delta)
	stop := rawjson.Text(rawjson.Field(choice, "finish_reason"))
	if stop != "" {
		s.stop = stop
		s.said.finish()
		for _, p := range s.parts {
			if p.done = true; rawjson.Field(p.raw, "function") != nil {
				p.raw = set(p.raw, quoted(p.input), "function", "arguments")
			}
		}
	} else if len(shown) != len(delta) && says(delta) && !says(shown) || s.rounds > 0 && !says(shown) {
		return nil, false
	}
	if !bytes.Equal(shown, delta) {
		data = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "delta", shown))
	}
	return data, s.stop != "" && s.held()
}

// says reports whether a delta has more than a role and empty values.
func says(delta []byte) bool {
	for name, value := range rawjson.Fields(delta) {
		if string(name) != "role" && !rawjson.IsNull(value) && string(value) != `""` && !isEmptyArray(value) {
			return true
		}
	}
	return false
}

// partedChunk divides the last chunk of a choice: see parted.
func partedChunk(data []byte) (early, late []byte) {
	for choice := range rawjson.Elements(rawjson.Field(data, "choices")) {
		if !says(rawjson.Field(choice, "delta")) {
			return nil, data
		}
		early = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "finish_reason", []byte("null")))
		late = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "delta", []byte("{}")))
		return early, late
	}
	return nil, data
}

// grow adds a delta to the message of the Chat API, and returns the client's version.
func (s *Splice) grow(delta []byte) []byte {
	shown := delta
	if s.said == nil {
		s.said = &part{raw: []byte(`{"role":"assistant","content":null}`)}
	}
	for key, value := range rawjson.Fields(delta) {
		switch name := string(key); {
		case name == "role":
			if s.rounds > 0 {
				shown = rawjson.CutField(shown, name)
			}
		case name == "tool_calls":
			shown = s.growCalls(shown, value)
		case rawjson.IsString(value):
			if len(inside(value)) == 0 {
				continue
			}
			if name == "content" && s.spoken && len(s.said.texts[name]) == 0 {
				shown = set(shown, quoted(slices.Concat([]byte(`\n\n`), inside(value))), name)
			}
			s.said.append(name, value)
		case rawjson.IsArray(value):
			was := rawjson.Field(s.said.raw, name)
			s.said.raw = set(s.said.raw, rawjson.Array(append(slices.Collect(rawjson.Elements(was)), slices.Collect(rawjson.Elements(value))...)), name)
		case !rawjson.IsNull(value):
			s.said.raw = set(s.said.raw, value, name)
		}
	}
	return shown
}

// growCalls adds pieces of calls, and returns the delta without calls of the tool.
func (s *Splice) growCalls(delta, calls []byte) []byte {
	var shown [][]byte
	same := true
	for c := range rawjson.Elements(calls) {
		at, f := max(0, len(s.parts)-1), rawjson.Field(c, "function")
		if i := rawjson.Field(c, "index"); i != nil {
			at = rawjson.Int(i)
		} else if rawjson.Text(rawjson.Field(c, "id")) != "" {
			at = len(s.parts)
		}
		p := s.part(at)
		if p == nil {
			p = s.add(at, rawjson.CutField(slices.Clone(c), "index"), rawjson.Text(rawjson.Field(f, "name")) == s.tool)
		}
		p.growCall(c, f)
		switch {
		case p.shown < 0:
			same = false
		case p.shown != at:
			same = false
			shown = append(shown, set(slices.Clone(c), number(p.shown), "index"))
		default:
			shown = append(shown, c)
		}
	}
	switch {
	case same:
		return delta
	case len(shown) == 0:
		return rawjson.CutField(delta, "tool_calls")
	}
	return set(delta, rawjson.Array(shown), "tool_calls")
}

// growCall adds a piece to a call of the Chat API.
func (p *part) growCall(c, f []byte) {
	p.input = append(p.input, inside(rawjson.Field(f, "arguments"))...)
	for key, value := range rawjson.Fields(c) {
		if name := string(key); name != "index" && name != "function" && !rawjson.IsNull(value) && string(value) != `""` {
			p.raw = set(p.raw, value, name)
		}
	}
}
