package wire

import (
	"bytes"
	"slices"

	"github.com/condensehq/condense/internal/rawjson"
)

func functionCall(part []byte) []byte {
	if f := rawjson.Field(part, "functionCall"); f != nil {
		return f
	}
	return rawjson.Field(part, "function_call")
}

// signed reports whether a part has the signature of the thoughts before it.
func signed(part []byte) bool {
	for name, value := range rawjson.Fields(part) {
		if isSignature(name) && len(inside(value)) > 0 {
			return true
		}
	}
	return false
}

// emptyPart stands where a content would have no part: Google's own last chunk has it.
var emptyPart = []byte(`{"text":""}`)

// candidate reads a chunk, or the whole, of an answer of the Gemini API. Only the first candidate counts.
func (s *Splice) candidate(data []byte) ([]byte, bool) {
	s.usage = overlay(s.usage, rawjson.Field(data, "usageMetadata"))
	id := rawjson.Text(rawjson.Field(data, "responseId"))
	if s.rounds == 0 && s.id == "" {
		s.id = id
	}
	c := firstOf(rawjson.Field(data, "candidates"))
	if c == nil {
		return data, s.held() && s.stop != ""
	}
	stop := rawjson.Text(rawjson.Field(c, "finishReason"))
	list := rawjson.Field(rawjson.Field(c, "content"), "parts")
	var shown [][]byte
	same := true
	for raw := range rawjson.Elements(list) {
		p := s.addPart(raw)
		if p == nil {
			same = false
			continue
		}
		if s.rounds > 0 && s.spoken && isPlain(raw) && !bytes.Equal(raw, emptyPart) { // the texts of two answers
			p.as = set(slices.Clone(raw), quoted(slices.Concat([]byte(`\n\n`), inside(rawjson.Field(raw, "text")))), "text")
			raw, same, s.spoken = p.as, false, false
		}
		shown = append(shown, raw)
	}
	if stop != "" {
		s.stop = stop
	}
	if !same {
		if len(shown) == 0 && stop == "" {
			return nil, false
		}
		if len(shown) == 0 {
			shown = [][]byte{emptyPart}
		}
		data = rawjson.ReplaceValue(data, list, rawjson.Array(shown))
	}
	if s.rounds > 0 && id != "" && id != s.id && s.id != "" {
		data = set(data, rawjson.AppendQuote(nil, s.id), "responseId")
	}
	return data, s.stop != "" && s.held()
}

func firstOf(array []byte) []byte {
	for raw := range rawjson.Elements(array) {
		return raw
	}
	return nil
}

// isPlain reports whether a part is text, and nothing else.
func isPlain(part []byte) bool {
	n := 0
	for range rawjson.Fields(part) {
		n++
	}
	return n == 1 && rawjson.IsString(rawjson.Field(part, "text"))
}

// addPart adds a part of the answer, if it says something. It returns nil for a call of the tool. Pieces of text become
// one part.
func (s *Splice) addPart(raw []byte) *part {
	if f := functionCall(raw); f != nil && rawjson.Text(rawjson.Field(f, "name")) == s.tool {
		s.add(len(s.parts), raw, true).done = true
		return nil
	}
	n := len(s.parts)
	switch {
	case bytes.Equal(raw, emptyPart):
		return &part{}
	case n == 0 || !isPlain(raw) || s.parts[n-1].shown < 0 || !isPlain(s.parts[n-1].raw):
		p := s.add(n, raw, false)
		p.done = true
		return p
	}
	p := s.parts[n-1]
	for _, to := range []*[]byte{&p.raw, &p.as} {
		if *to != nil {
			*to = rawjson.Append(nil, `{"text":?}`, quoted(slices.Concat(inside(rawjson.Field(*to, "text")), inside(rawjson.Field(raw, "text")))))
		}
	}
	return p
}

// partedCandidate divides the last chunk of a candidate: see parted.
func partedCandidate(data []byte) (early, late []byte) {
	c := firstOf(rawjson.Field(data, "candidates"))
	list := rawjson.Field(rawjson.Field(c, "content"), "parts")
	if first := firstOf(list); first == nil || bytes.Equal(first, emptyPart) {
		return nil, data
	}
	early = rawjson.ReplaceValue(data, c, rawjson.CutField(slices.Clone(c), "finishReason"))
	late = rawjson.ReplaceValue(data, list, rawjson.Array([][]byte{emptyPart}))
	return early, late
}

// wholeCandidate merges the answers into the last body.
func (s *Splice) wholeCandidate(body []byte) []byte {
	c := firstOf(rawjson.Field(body, "candidates"))
	if !rawjson.IsObject(c) {
		return body
	}
	content := rawjson.Field(c, "content")
	if !rawjson.IsObject(content) {
		content = []byte(`{"role":"model"}`)
	}
	parts := append(slices.Clone(s.seen), slices.Collect(rawjson.Elements(rawjson.Field(content, "parts")))...)
	parts = slices.DeleteFunc(parts, func(p []byte) bool { return bytes.Equal(p, emptyPart) })
	if len(parts) == 0 {
		parts = [][]byte{emptyPart}
	}
	content = set(slices.Clone(content), rawjson.Array(parts), "parts")
	return s.total(rawjson.ReplaceValue(body, c, set(slices.Clone(c), content, "content")))
}

// used returns the usage of all answers. As with tools that Google runs, the prompt counts once, and the prompts of
// earlier rounds count as the tools' tokens.
func (s *Splice) used() []byte {
	total := slices.Clone(s.usage)
	tools, all := rawjson.Int(rawjson.Field(total, "toolUsePromptTokenCount")), rawjson.Int(rawjson.Field(total, "totalTokenCount"))
	for _, u := range s.usages {
		tools += rawjson.Int(rawjson.Field(u, "promptTokenCount"))
		all += rawjson.Int(rawjson.Field(u, "totalTokenCount"))
		for _, name := range []string{"candidatesTokenCount", "thoughtsTokenCount"} {
			if n := rawjson.Int(rawjson.Field(u, name)); n > 0 {
				total = set(total, number(n+rawjson.Int(rawjson.Field(total, name))), name)
			}
		}
	}
	return set(set(total, number(tools), "toolUsePromptTokenCount"), number(all), "totalTokenCount")
}
