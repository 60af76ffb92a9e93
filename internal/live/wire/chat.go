package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// chatAPI is the dialect of OpenAI's Chat Completions API.
var chatAPI = &Dialect{
	API: Chat, Vendor: OpenAI, Format: "openai",
	Said: `{"role":"assistant","content":?}`, Asked: `{"role":"user","content":?}`,
	Refuse: refuseOpenAI,
	read: reading{
		members: map[string]place{"messages": inMessages, "tools": inTools}, parts: &parts, limits: usualLimits,
		block: (*parser).block, message: (*parser).readChat, check: (*checker).chat,
		request: func(p *parser, own []member) { p.r.Effort = rawjson.Text(find(own, "reasoning_effort")) },
	},
	edit: editing{content: "content", strip: asIs, says: isText},
	tool: tooling{
		form: `{"type":"function","function":{"name":?,"description":?,"parameters":?}}`, list: []string{"tools"}, declared: asIs, choices: [][]string{{"n"}}, calls: callIDs,
		call: func(_ *Dialect, part []byte) (Call, bool) {
			id, f := textAt(part, "id"), rawjson.Field(part, "function")
			return Call{id, []byte(textAt(f, "arguments")), id, textAt(f, "name")}, true
		},
		result: func(_, call, text string, _ bool) []byte {
			return rawjson.Append(nil, `{"role":"tool","tool_call_id":?,"content":?}`, call, text)
		},
	},
	reply: replying{
		leaves: fields(map[leaf]string{
			leafKind: "", leafID: "id", leafModel: "model", leafStop: "choices.finish_reason", leafInput: "usage.prompt_tokens",
			leafOutput: "usage.completion_tokens", leafRead: "usage.prompt_tokens_details.cached_tokens usage.prompt_cache_hit_tokens",
			leafWrite: "usage.prompt_tokens_details.cache_write_tokens", leafErrorType: "error.type", leafErrorCode: "error.code",
			leafErrorText: "error.message error detail",
			leafText:      "choices.delta.content choices.delta.reasoning_content choices.delta.reasoning choices.delta.refusal choices.delta.tool_calls.function.name choices.delta.tool_calls.function.arguments",
		}),
		ends: []string{"tool_calls", "stop"}, looseEnd: true, done: "stop", stops: [][]string{{"choices", "finish_reason"}}, ping: comment,
		content: []string{"choices", "message", "tool_calls"}, said: []string{"choices", "message"},
		event: nextChunk, divide: divideChunk, last: (*Splice).ending, whole: wholeChoice,
		failed: func(_ *Splice, body []byte) []byte {
			return slices.Concat([]byte("data: "), oneLine(body), []byte("\n\n"))
		},
		keep: func(s *Splice) {
			if s.said != nil {
				s.spoken = s.spoken || textAt(s.said.raw, "content") != ""
				s.seen = append(s.seen, s.said.raw)
			}
		},
		message: func(s *Splice, calls [][]byte) [][]byte {
			message := []byte(`{"role":"assistant","content":null}`)
			if s.said != nil {
				message = s.said.raw
			}
			if len(calls) > 0 {
				message = rawjson.SetField(slices.Clip(message), "tool_calls", rawjson.Array(calls))
			}
			return [][]byte{message}
		},
	},
}

// nextChunk reads a chunk of the Chat API. Only the first choice counts.
func nextChunk(s *Splice, data []byte) ([]byte, bool) {
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
	choice := firstOf(rawjson.Field(data, "choices"))
	if choice == nil {
		return data, s.held() && s.stop != ""
	}
	delta := rawjson.Field(choice, "delta")
	shown := s.grow(delta)
	stop := textAt(choice, "finish_reason")
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

// divideChunk divides the last chunk of a choice.
func divideChunk(data []byte) (early, late []byte) {
	choice := firstOf(rawjson.Field(data, "choices"))
	if choice == nil || !says(rawjson.Field(choice, "delta")) {
		return nil, data
	}
	early = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "finish_reason", []byte("null")))
	late = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "delta", []byte("{}")))
	return early, late
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
		} else if textAt(c, "id") != "" {
			at = len(s.parts)
		}
		p := s.part(at)
		if p == nil {
			p = s.add(at, rawjson.CutField(slices.Clone(c), "index"), s.ours(c))
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

// readChat extracts the facts about a message of the Chat API.
func (p *parser) readChat(own []member, content []byte) {
	m := &p.m
	for _, o := range own {
		switch string(o.key) {
		case "tool_calls":
			n := 0
			for call := range rawjson.Elements(o.raw) {
				n++
				m.Calls = append(m.Calls, p.id(rawjson.Field(call, "id")))
			}
			if n == 0 && rawjson.IsArray(o.raw) {
				p.broken(noCalls)
			}
		case "function_call": // before calls had IDs, one was answered at once, by name
			if rawjson.IsObject(o.raw) {
				m.Calls = append(m.Calls, "function:"+textAt(o.raw, "name"))
			}
		case "reasoning_content", "reasoning", "reasoning_details":
			m.Thinking = m.Thinking || !rawjson.IsNull(o.raw) && !isBlank(o.raw) && !isEmptyArray(o.raw)
		}
	}
	none := content == nil || rawjson.IsNull(content)
	if isEmptyArray(content) {
		p.broken(noContent)
	}
	switch m.Role {
	case "tool":
		m.Results = append(m.Results, p.id(find(own, "tool_call_id")))
	case "function":
		m.Role = "tool"
		m.Results = append(m.Results, "function:"+rawjson.Text(find(own, "name")))
	case "assistant":
		none = none && len(m.Calls) == 0 && find(own, "refusal") == nil && find(own, "audio") == nil && !m.Thinking
	case "user", "system", "developer":
	default:
		p.broken(noRole)
	}
	if len(m.Calls) > 0 && m.Role != "assistant" {
		p.broken(callRole)
	}
	if none && m.Role != "tool" {
		p.broken(noContent)
	}
}

// chat checks pairs of the Chat API: the results of a message's calls follow it directly. Old calls by name, without
// IDs, are not checked.
func (c *checker) chat(*Request) {
	byName := func(id string) bool { return strings.HasPrefix(id, "function:") }
	open, at := pairs{}, 0
	used := map[string]bool{}
	end := func() {
		if open.unanswered() {
			c.add(at, noResult)
		}
	}
	for i, m := range c.messages {
		for _, id := range m.Results {
			if rule := open.answer(id); rule != "" && !byName(id) {
				c.add(i, rule)
			}
		}
		if m.Role == "tool" {
			continue
		}
		end()
		open, at = pairs{}, i
		for _, id := range m.Calls {
			if byName(id) {
				continue
			}
			if used[id] {
				c.add(i, sameIDs)
			}
			used[id] = true
			open[id] = false
		}
	}
	end()
	if len(c.messages) == 0 {
		c.add(-1, noMessages)
	}
}

// wholeChoice merges the answers into the last body.
func wholeChoice(s *Splice, body []byte) []byte {
	body = s.ending(s.totals(body))
	if s.said == nil {
		return body
	}
	message := s.joined(s.said.raw)
	if kept := s.shownParts(); len(kept) > 0 {
		message = set(message, rawjson.Array(kept), "tool_calls")
	}
	return set(body, message, "choices", "message")
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
