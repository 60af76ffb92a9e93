package wire

import (
	"cmp"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// responsesAPI is the dialect of OpenAI's Responses API.
var responsesAPI = &Dialect{
	API: Responses, Vendor: OpenAI, Format: "responses",
	Said:  `{"type":"message","role":"assistant","content":[{"type":"output_text","text":?}]}`,
	Asked: `{"type":"message","role":"user","content":[{"type":"input_text","text":?}]}`,
	Apart: true, Seals: true, Stores: true, Chains: true, Sockets: true, Announces: true,
	Refuse: refuseOpenAI, Plain: plainItem,
	read: reading{
		members: map[string]place{"input": inMessages, "instructions": inContent, "tools": inTools}, parts: &parts, limits: usualLimits, loose: true,
		block: (*parser).block, message: (*parser).readItem, request: (*parser).responsesRequest, marginal: marginalInItem, check: (*checker).items,
	},
	edit: editing{
		content: "content", says: isText,
		strip: func(item []byte) []byte {
			if textAt(item, "type") == "reasoning" {
				return nil
			}
			return item
		},
	},
	tool: tooling{
		form:  `{"type":"function","name":?,"description":?,"parameters":?,"strict":false}`,
		calls: callIDs, list: []string{"tools"}, declared: asIs,
		call: func(_ *Dialect, item []byte) (Call, bool) {
			raw, kind, name := rawjson.Field(item, "call_id"), textAt(item, "type"), textAt(item, "name")
			if kind != "function_call" || rawjson.Field(item, "namespace") != nil {
				name = kind + ":" + name
			}
			id := rawjson.Text(raw)
			return Call{id, []byte(textAt(item, "arguments")), id, name}, kind == "function_call" || raw != nil && strings.HasSuffix(kind, "_call")
		},
		result: func(_, call, text string, _ bool) []byte {
			return rawjson.Append(nil, `{"type":"function_call_output","call_id":?,"output":?}`, call, text)
		},
	},
	reply: replying{
		leaves: fields(map[leaf]string{
			leafKind: "type", leafID: "id response.id", leafModel: "model response.model", leafStatus: "status response.status",
			leafStop:  "incomplete_details.reason response.incomplete_details.reason",
			leafInput: "usage.input_tokens response.usage.input_tokens", leafOutput: "usage.output_tokens response.usage.output_tokens",
			leafRead:      "usage.input_tokens_details.cached_tokens response.usage.input_tokens_details.cached_tokens",
			leafWrite:     "usage.input_tokens_details.cache_write_tokens response.usage.input_tokens_details.cache_write_tokens",
			leafErrorType: "error.type", leafErrorCode: "error.code response.error.code",
			leafErrorText: "error.message error detail response.error.message", leafCode: "code", leafMessage: "message", leafText: "delta",
		}),
		ends: []string{"completed"}, stops: [][]string{{"status"}}, content: []string{"output"}, ping: comment,
		event: nextResponse, failed: failResponse, whole: finishResponse, keep: (*Splice).keepParts,
		last: func(s *Splice, data []byte) []byte {
			return set(s.sequenced(data), finishResponse(s, rawjson.Field(data, "response")), "response")
		},
		message: func(_ *Splice, items [][]byte) [][]byte { return items },
		forgets: func(item []byte) bool { // a vendor that stores nothing does not know it any more
			return textAt(item, "type") == "reasoning" && textAt(item, "encrypted_content") == ""
		},
	},
}

// responsesRequest extracts the facts about a request that only this API has.
func (p *parser) responsesRequest(own []member) {
	p.r.Effort = textAt(find(own, "reasoning"), "effort")
	conversation := find(own, "conversation")
	if rawjson.IsObject(conversation) {
		conversation = rawjson.Field(conversation, "id")
	}
	p.r.Session = rawjson.Text(conversation)
}

// nextResponse reads an event of the Responses API.
func nextResponse(s *Splice, data []byte) ([]byte, bool) {
	kind := textAt(data, "type")
	item, at := rawjson.Field(data, "item"), rawjson.Int(rawjson.Field(data, "output_index"))
	hold := false
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if s.rounds > 0 {
			return nil, false
		}
		s.id = textAt(data, "response", "id")
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

// readItem extracts the facts about an item of the Responses API. A call and an output with the same call_id need
// each other; tools that the vendor runs have none.
func (p *parser) readItem(own []member, content []byte) {
	m := &p.m
	m.item = word(find(own, "type"))
	m.item = cmp.Or(m.item, "message")
	raw := find(own, "call_id")
	if raw == nil && strings.HasSuffix(m.item, "_call_output") {
		raw = find(own, "id") // of local_shell_call_output
	}
	paired := raw != nil && !rawjson.IsNull(raw)
	role := "assistant"
	switch kind := m.item; {
	case kind == "message":
		role = m.Role
		switch role {
		case "user", "assistant", "system", "developer":
		default:
			p.broken(noRole)
		}
		if content == nil || rawjson.IsNull(content) || isEmptyArray(content) {
			p.broken(noContent)
		}
	case kind == "reasoning":
		m.Thinking = true
	case kind == "item_reference":
		p.r.Stateful = true
	case kind == "compaction_trigger":
		p.r.Compacts = true
	case strings.HasPrefix(kind, "compaction"), kind == "context_compaction":
		m.Compaction = true
	case kind == "additional_tools", kind == "configuration_update":
		role = "developer"
	case strings.HasSuffix(kind, "_call") && (paired || kind == "function_call" || kind == "custom_tool_call"):
		m.Calls = append(m.Calls, p.id(raw))
	case strings.HasSuffix(kind, "_output") && (paired || kind == "function_call_output" || kind == "custom_tool_call_output"):
		role = "tool"
		m.Results = append(m.Results, p.id(raw))
	}
	m.Role = role
}

// items checks pairs of the Responses API, which are matched by ID wherever they are, and that reasoning is followed
// by its item.
func (c *checker) items(*Request) {
	calls, results := map[string]int{}, map[string]bool{}
	kind := func(item string) string { return strings.TrimSuffix(strings.TrimSuffix(item, "_output"), "_call") }
	for i, m := range c.messages {
		for _, id := range m.Calls {
			if _, ok := calls[id]; ok {
				c.add(i, sameIDs)
			}
			calls[id] = i
		}
		for _, id := range m.Results {
			n, ok := calls[id]
			switch {
			case !ok || kind(c.messages[n].item) != kind(m.item):
				c.add(i, noCall)
			case results[id]:
				c.add(i, twoResults)
			}
			results[id] = true
		}
		if m.item != "reasoning" {
			continue
		}
		if i+1 == len(c.messages) || c.messages[i+1].Role != "assistant" || c.messages[i+1].item == "reasoning" {
			c.add(i, alone)
		}
	}
	for i, m := range c.messages {
		if slices.ContainsFunc(m.Calls, func(id string) bool { return !results[id] }) {
			c.add(i, noResult)
		}
	}
}

// marginalInItem reports whether a member of an item, or of a block in one, is left out by some clients when they send an answer back.
func marginalInItem(at place, own []member, m member) bool {
	switch string(m.key) {
	case "type":
		return at == inMessage && string(m.raw) == `"message"`
	case "id", "status":
		switch word(find(own, "type")) {
		case "function_call", "custom_tool_call", "reasoning":
			return at == inMessage
		case "message":
			return at == inMessage && word(find(own, "role")) == "assistant"
		}
	case "annotations", "logprobs":
		return at == inBlock && isEmptyArray(m.raw)
	case "internal_chat_message_metadata_passthrough": // of Codex, in every item that it sends itself
		return at == inMessage
	case "content": // of reasoning that Codex sends itself
		return at == inMessage && rawjson.IsNull(m.raw)
	}
	return false
}

// finishResponse merges the answers into the final response object.
func finishResponse(s *Splice, r []byte) []byte {
	return set(s.totals(r), rawjson.Array(s.allParts()), "output")
}

// failResponse returns the end of a stream whose next answer is an error of the vendor.
func failResponse(s *Splice, body []byte) []byte {
	o := rawjson.Field(body, "error")
	code := cmp.Or(textAt(o, "code"), textAt(o, "type"))
	data := rawjson.Append(nil, `{"type":"response.failed","sequence_number":?,"response":{"id":?,"object":"response","status":"failed","output":[],"error":{"code":?,"message":?}}}`,
		number(s.seq), s.id, code, textAt(o, "message"))
	return slices.Concat([]byte("event: response.failed\ndata: "), data, []byte("\n\n"))
}
