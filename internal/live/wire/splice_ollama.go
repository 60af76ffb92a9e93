package wire

import (
	"bytes"
	"slices"

	"github.com/condensehq/condense/internal/rawjson"
)

// line reads a line, or the whole, of an answer of Ollama's.
func (s *Splice) line(data []byte) ([]byte, bool) {
	message := rawjson.Field(data, "message")
	if message == nil {
		return data, false
	}
	shown := s.grow(message)
	if !bytes.Equal(shown, message) {
		data = rawjson.ReplaceValue(data, message, shown)
	}
	if !rawjson.IsTrue(rawjson.Field(data, "done")) {
		s.pulse = rawjson.Append(nil, `{"model":?,"created_at":?,"message":{"role":"assistant","content":""},"done":false}`+"\n",
			rawjson.Text(rawjson.Field(data, "model")), rawjson.Text(rawjson.Field(data, "created_at")))
		if says(message) && !says(shown) {
			return nil, false
		}
		return data, false
	}
	if s.stop = rawjson.Text(rawjson.Field(data, "done_reason")); s.stop == "" {
		s.stop = "stop" // an old server
	}
	s.said.finish()
	s.usage = []byte("{}")
	for _, name := range counts {
		if n := rawjson.Field(data, name); n != nil {
			s.usage = set(s.usage, n, name)
		}
	}
	s.over = s.held()
	return data, s.over
}

// counts are the numbers at the end of Ollama's answers that the splice adds up. It leaves the numbers of the prompt: they
// are the size of the conversation.
var counts = []string{"total_duration", "load_duration", "eval_count", "eval_duration"}

// wholeCalls adds calls, which do not come in pieces, and returns the message without calls of the tool.
func (s *Splice) wholeCalls(message, calls []byte) []byte {
	var shown [][]byte
	n := 0
	for c := range rawjson.Elements(calls) {
		p := s.add(len(s.parts), c, rawjson.Text(rawjson.Field(rawjson.Field(c, "function"), "name")) == s.tool)
		if p.done = true; p.shown >= 0 {
			shown = append(shown, c)
		}
		n++
	}
	switch len(shown) {
	case n:
		return message
	case 0:
		return rawjson.CutField(message, "tool_calls")
	}
	return set(message, rawjson.Array(shown), "tool_calls")
}

// partedLine divides the last line of an answer: see parted.
func partedLine(data []byte) (early, late []byte) {
	message := rawjson.Field(data, "message")
	if !says(message) {
		return nil, data
	}
	early = rawjson.Append(nil, `{"model":?,"created_at":?,"message":?,"done":false}`, rawjson.Text(rawjson.Field(data, "model")),
		rawjson.Text(rawjson.Field(data, "created_at")), message)
	return early, rawjson.ReplaceValue(data, message, []byte(`{"role":"assistant","content":""}`))
}

// summed returns the end of an answer with the numbers of all answers.
func (s *Splice) summed(data []byte) []byte {
	data = slices.Clone(data)
	for _, name := range counts {
		sum := rawjson.Int(rawjson.Field(s.usage, name))
		for _, u := range s.usages {
			sum += rawjson.Int(rawjson.Field(u, name))
		}
		if rawjson.Field(data, name) != nil {
			data = set(data, number(sum), name)
		}
	}
	return data
}
