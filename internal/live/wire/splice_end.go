package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/condensehq/condense/internal/rawjson"
)

// last returns an event of the end of the last answer as the end of the whole stream.
func (s *Splice) last(data []byte) []byte {
	switch s.api {
	case Messages:
		if rawjson.Text(rawjson.Field(data, "type")) != "message_delta" {
			return data
		}
		if s.stop == "tool_use" && !s.Own() {
			data = set(data, []byte(`"end_turn"`), "delta", "stop_reason")
		}
		if s.rounds > 0 {
			data = set(data, s.sum(), "usage")
		}
		return data
	case Chat:
		if rawjson.IsObject(rawjson.Field(data, "usage")) && s.rounds > 0 {
			data = set(data, s.sum(), "usage")
		}
		for choice := range rawjson.Elements(rawjson.Field(data, "choices")) {
			if rawjson.Text(rawjson.Field(choice, "finish_reason")) == "tool_calls" && !s.Own() {
				data = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "finish_reason", []byte(`"stop"`)))
			}
			break
		}
		return data
	case Gemini:
		return s.total(data)
	case Converse:
		return s.lastConverse(data)
	case Responses:
	}
	return set(s.sequenced(data), s.finished(rawjson.Field(data, "response")), "response")
}

// total returns the end of an answer of Google's with the usage of all answers.
func (s *Splice) total(data []byte) []byte {
	switch {
	case s.rounds == 0 || s.usage == nil:
		return data
	case rawjson.Field(data, "usageMetadata") == nil:
		return data
	}
	return set(slices.Clone(data), s.used(), "usageMetadata")
}

// finished merges the answers into the final response object.
func (s *Splice) finished(r []byte) []byte {
	r = slices.Clone(r)
	items := append(slices.Clone(s.seen), s.shownParts()...)
	if s.id != "" {
		r = set(r, rawjson.AppendQuote(nil, s.id), "id")
	}
	if s.rounds > 0 && s.usage != nil {
		r = set(r, s.sum(), "usage")
	}
	return set(r, rawjson.Array(items), "output")
}

// body reads an answer that is no stream, and returns the client's version as far as it is known.
func (s *Splice) body(body []byte) []byte {
	if !json.Valid(body) || !rawjson.IsObject(bytes.TrimSpace(body)) || rawjson.IsObject(rawjson.Field(body, "error")) {
		return body
	}
	shown := body
	switch s.api {
	case Gemini:
		shown, _ = s.candidate(body)
	case Messages, Chat, Responses, Converse:
		s.typed(body)
	}
	s.over = s.held()
	return shown
}

// typed reads an answer of Anthropic's or of OpenAI's.
func (s *Splice) typed(body []byte) {
	if u := rawjson.Field(body, "usage"); rawjson.IsObject(u) {
		s.usage = slices.Clone(u)
	}
	if s.rounds == 0 {
		s.id = rawjson.Text(rawjson.Field(body, "id"))
	}
	var parts []byte
	switch s.api {
	case Messages:
		parts, s.stop = rawjson.Field(body, "content"), rawjson.Text(rawjson.Field(body, "stop_reason"))
	case Responses:
		parts, s.stop = rawjson.Field(body, "output"), rawjson.Text(rawjson.Field(body, "status"))
	case Chat:
		for choice := range rawjson.Elements(rawjson.Field(body, "choices")) {
			message := rawjson.Field(choice, "message")
			parts, s.stop = rawjson.Field(message, "tool_calls"), rawjson.Text(rawjson.Field(choice, "finish_reason"))
			s.said = &part{raw: rawjson.CutField(slices.Clone(message), "tool_calls")}
			break
		}
	case Converse:
		parts = rawjson.Field(rawjson.Field(rawjson.Field(body, "output"), "message"), "content")
		s.stop = rawjson.Text(rawjson.Field(body, "stopReason"))
	case Gemini: // read by body
	}
	for raw := range rawjson.Elements(parts) {
		name := rawjson.Text(rawjson.Field(raw, "name"))
		ours := s.api == Messages && name == s.tool && rawjson.Text(rawjson.Field(raw, "type")) == "tool_use" ||
			s.api == Chat && rawjson.Text(rawjson.Field(rawjson.Field(raw, "function"), "name")) == s.tool || s.api == Responses && s.ours(raw) ||
			s.api == Converse && isCall(s.api, raw) && rawjson.Text(rawjson.Field(rawjson.Field(raw, toolUse), "name")) == s.tool
		s.add(len(s.parts), raw, ours).done = true
	}
}

// whole merges the answers into the last body.
func (s *Splice) whole(body []byte) []byte {
	switch s.api {
	case Gemini:
		return s.wholeCandidate(body)
	case Messages, Chat, Responses, Converse:
	}
	if s.rounds > 0 && s.usage != nil && s.api != Responses {
		body = set(slices.Clone(body), s.sum(), "usage")
	}
	if s.id != "" {
		body = set(slices.Clone(body), rawjson.AppendQuote(nil, s.id), "id")
	}
	kept := s.shownParts()
	stop := s.called() && !s.Own()
	switch s.api {
	case Messages:
		if stop && s.stop == "tool_use" {
			body = set(body, []byte(`"end_turn"`), "stop_reason")
		}
		return set(body, rawjson.Array(append(slices.Clone(s.seen), kept...)), "content")
	case Converse:
		return set(s.lastConverse(body), rawjson.Array(append(slices.Clone(s.seen), kept...)), "output", "message", "content")
	case Responses:
		return s.finished(body)
	case Chat, Gemini:
	}
	for choice := range rawjson.Elements(rawjson.Field(body, "choices")) {
		message := s.joined(s.said.raw)
		if len(kept) > 0 {
			message = set(message, rawjson.Array(kept), "tool_calls")
		}
		changed := set(slices.Clone(choice), message, "message")
		if stop && s.stop == "tool_calls" {
			changed = set(changed, []byte(`"stop"`), "finish_reason")
		}
		return rawjson.ReplaceValue(body, choice, changed)
	}
	return body
}

// shownParts returns the parts of this answer that the client gets.
func (s *Splice) shownParts() (parts [][]byte) {
	for _, p := range s.parts {
		if p.shown >= 0 {
			parts = append(parts, p.raw)
		}
	}
	return parts
}

// joined returns the message of the last answer with the texts of those before it.
func (s *Splice) joined(message []byte) []byte {
	message = slices.Clone(message)
	for _, before := range slices.Backward(s.seen) {
		for _, name := range []string{"content", "reasoning_content", "reasoning", "thinking"} {
			a, b := inside(rawjson.Field(before, name)), inside(rawjson.Field(message, name))
			if len(a) > 0 && len(b) > 0 {
				a = slices.Concat(a, []byte(`\n\n`))
			}
			if len(a) > 0 {
				message = set(message, quoted(slices.Concat(a, b)), name)
			}
		}
	}
	return message
}

// sum returns the usage of all answers. In the Messages API it also lists the usage of each answer, in the form of
// the API's own steps: the last of them is the size of the conversation.
func (s *Splice) sum() []byte {
	all := append(slices.Clone(s.usages), s.usage)
	total := all[0]
	for _, u := range all[1:] {
		total = plus(total, u)
	}
	if s.api != Messages || rawjson.Field(total, "iterations") != nil {
		return total
	}
	var steps [][]byte
	for _, u := range all {
		step := []byte(`{"type":"message"}`)
		for _, name := range []string{"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
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
