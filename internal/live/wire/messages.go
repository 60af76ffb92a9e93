package wire

import (
	"slices"
	"time"

	"github.com/condensehq/condense/internal/rawjson"
)

// messagesAPI is the dialect of Anthropic's Messages API.
var messagesAPI = &Dialect{
	API: Messages, Vendor: Anthropic, Format: "anthropic",
	Said:  `{"role":"assistant","content":?}`,
	Asked: `{"role":"user","content":[{"type":"text","text":?}]}`,
	Apart: true, Texts: true, Signs: true, PromptFirst: true, Unnumbered: true,
	Refuse: refuseAnthropic, Plain: plainHash,
	read: reading{
		members: map[string]place{"messages": inMessages, "system": inContent, "tools": inTools}, parts: &parts, limits: usualLimits, plainIDs: true, fullTexts: true,
		block: (*parser).block, message: (*parser).readTurn, request: (*parser).messagesRequest, check: (*checker).anthropic,
	},
	edit: editing{content: "content", strip: stripThinking, mark: markBlock, says: isText},
	tool: tooling{
		form: `{"name":?,"description":?,"input_schema":?}`, turn: `{"role":"user","content":?}`, calls: callIDs, list: []string{"tools"}, declared: asIs,
		call: func(_ *Dialect, part []byte) (Call, bool) {
			id := textAt(part, "id")
			return Call{id, rawjson.Field(part, "input"), id, textAt(part, "name")}, textAt(part, "type") == "tool_use"
		},
		result: func(_, call, text string, failed bool) []byte {
			flag := ""
			if failed {
				flag = `,"is_error":true`
			}
			return rawjson.Append(nil, `{"type":"tool_result","tool_use_id":?,"content":[{"type":"text","text":?}]`+flag+`}`, call, text)
		},
		answers: func(block []byte) string { return textAt(block, "tool_use_id") },
	},
	reply: replying{
		leaves: fields(map[leaf]string{
			leafKind: "type", leafID: "id message.id", leafModel: "model message.model", leafStop: "stop_reason delta.stop_reason",
			leafFresh:      "input_tokens usage.input_tokens message.usage.input_tokens",
			leafFreshRead:  "usage.cache_read_input_tokens message.usage.cache_read_input_tokens",
			leafFreshWrite: "usage.cache_creation_input_tokens message.usage.cache_creation_input_tokens",
			leafOutput:     "usage.output_tokens message.usage.output_tokens", leafErrorType: "error.type",
			leafErrorText: "error.message error detail", leafMessage: "message", leafText: "delta.text delta.thinking delta.partial_json",
		}),
		ends: []string{"tool_use"}, done: "end_turn", stops: [][]string{{"stop_reason"}, {"delta", "stop_reason"}}, content: []string{"content"},
		steps:  []string{"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"},
		frames: true, encoded: "bytes",
		ping:    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
		pinging: newFrame("event", eventKind, "chunk", []byte(`{"bytes":"eyJ0eXBlIjoicGluZyJ9"}`)),
		event:   nextMessage, last: (*Splice).ending, whole: wholeParts, keep: (*Splice).keepParts, message: inTurn(`{"role":"assistant","content":?}`),
		failed: func(_ *Splice, body []byte) []byte {
			return slices.Concat([]byte("event: error\ndata: "), oneLine(body), []byte("\n\n"))
		},
	},
}

// messagesRequest extracts the facts about a request that only this API has.
func (p *parser) messagesRequest(own []member) {
	r := p.r
	if r.Thinking = textAt(find(own, "thinking"), "type"); r.Thinking == "disabled" {
		r.Thinking = ""
	}
	if d, ok := marker(find(own, "cache_control")); ok {
		r.wholeTTL = []time.Duration{d}
	}
	r.Effort = textAt(find(own, "output_config"), "effort")
	r.Session = sessionOf(textAt(find(own, "metadata"), "user_id"))
}

// anthropic checks messages as Anthropic's servers do.
func (c *checker) anthropic(r *Request) {
	c.turns()
	c.markers(r)
	c.thinking(r)
}

// nextMessage reads an event of the Messages API.
func nextMessage(s *Splice, data []byte) ([]byte, bool) {
	const index = "index"
	at := rawjson.Int(rawjson.Field(data, index))
	switch textAt(data, "type") {
	case "message_start":
		s.usage = overlay(s.usage, rawjson.Field(rawjson.Field(data, "message"), "usage"))
		if s.rounds > 0 {
			return nil, false
		}
	case "content_block_start":
		block := rawjson.Field(data, "content_block")
		s.add(at, block, s.ours(block))
	case "content_block_delta":
		if p := s.part(at); p != nil {
			p.grow(rawjson.Field(data, "delta"))
		}
	case "content_block_stop":
		if p := s.part(at); p != nil {
			p.finish()
		}
	case "message_delta":
		s.usage = overlay(s.usage, rawjson.Field(data, "usage"))
		s.stop = textAt(data, "delta", "stop_reason")
		return data, s.held()
	case "message_stop":
		s.over = s.held()
		return data, s.over
	}
	if rawjson.Field(data, index) != nil {
		data = s.indexed(data, index)
	}
	return data, false
}

// readTurn extracts the facts about a message of Anthropic's form.
func (p *parser) readTurn(own []member, content []byte) {
	m := &p.m
	tunes := m.Role == "system" && find(own, "output_config") != nil // changes the effort from here on, without a text
	switch m.Role {
	case "user", "system":
		if m.Thinking {
			p.broken(thinkingRole)
		}
	case "assistant":
	default:
		p.broken(noRole)
	}
	if len(m.Calls) > 0 && m.Role != "assistant" || len(m.Results) > 0 && m.Role != "user" {
		p.broken(callRole)
	}
	if !rawjson.IsArray(content) && !rawjson.IsString(content) || isBlank(content) || isEmptyArray(content) && !tunes {
		p.broken(noContent)
	}
}

// maxMarkers is the limit of cache markers in a request. Source: Anthropic's documentation of prompt caching.
const maxMarkers = 4

// turns checks roles and pairs of the Messages API, which joins messages of one role to turns.
func (c *checker) turns() {
	open, calls := pairs{}, pairs{} // calls of the previous turn, and of this one
	at, begin := -1, 0              // where these turns begin
	used := map[string]bool{}
	role, before := "", "" // of the turn, of the message before
	front := true          // only results so far
	served := false
	end := func() {
		if open.unanswered() {
			c.add(at, noResult)
		}
		open, calls, at, front = calls, pairs{}, begin, true
	}
	for i, m := range c.messages {
		if m.Role == "system" {
			if before != "user" && (before != "assistant" || !served) {
				c.add(i, systemPlace)
			}
			before = m.Role
			continue
		}
		switch {
		case before == "" && m.Role != "user":
			c.add(i, notUserFirst)
		case before == "system" && m.Role != "assistant":
			c.add(i, systemPlace)
		}
		if m.Role != role || before == "system" {
			end()
			role, begin = m.Role, i
		}
		before, served = m.Role, m.lastServed
		for _, id := range m.Results {
			if rule := open.answer(id); rule != "" {
				c.add(i, rule)
			}
		}
		if m.lateResult || len(m.Results) > 0 && !front {
			c.add(i, lateResults)
		}
		front = front && !m.other
		for _, id := range m.Calls {
			if used[id] {
				c.add(i, sameIDs)
			}
			used[id] = true
			calls[id] = false
		}
	}
	end()
	end()
	switch role {
	case "":
		c.add(-1, noMessages)
	case "assistant":
		c.add(len(c.messages)-1, prefill)
	}
}

// markers checks the cache markers of the Messages API.
func (c *checker) markers(r *Request) {
	all := slices.Clone(r.headTTLs)
	for i := range c.messages {
		all = append(all, c.messages[i].ttls...)
	}
	all = append(all, r.wholeTTL...)
	if len(all) > maxMarkers {
		c.add(-1, tooMany)
	}
	if !slices.IsSortedFunc(all, func(a, b time.Duration) int { return int(b - a) }) {
		c.add(-1, longAfter)
	}
}

// thinking checks that an open round of tools begins with thinking where it must.
func (c *checker) thinking(r *Request) {
	if r.Thinking != "enabled" {
		return
	}
	at := OpenRound(c.messages)
	if at == len(c.messages) || c.messages[at].firstThinks {
		return
	}
	for _, m := range c.messages[at:] {
		if len(m.Results) > 0 {
			c.add(at, noThinking)
			return
		}
	}
}

// markBlock returns a message with a cache marker on its last block that may have one: see [Mark].
func markBlock(message []byte, ttl time.Duration) []byte {
	value := []byte(`{"type":"ephemeral"}`)
	if ttl >= time.Hour {
		value = []byte(`{"type":"ephemeral","ttl":"1h"}`)
	}
	content := rawjson.Field(message, "content")
	if rawjson.IsString(content) && !isBlank(content) {
		block := rawjson.Append(nil, `[{"type":"text","text":?,"cache_control":?}]`, content, value)
		return rawjson.ReplaceValue(message, content, block)
	}
	blocks := slices.Collect(rawjson.Elements(content))
	for _, b := range slices.Backward(blocks) {
		text := rawjson.Field(b, "text")
		if !rawjson.IsObject(b) || thinks(b) || text != nil && isBlank(text) {
			continue
		}
		return rawjson.ReplaceValue(message, b, rawjson.SetField(slices.Clip(b), "cache_control", value))
	}
	return message
}
