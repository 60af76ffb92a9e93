package wire

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/rawjson"
)

// Rules that a message may break by itself, in words similar to the vendors'.
const (
	noRole        = "the role is none that the API knows"
	noContent     = "the content is missing or empty"
	noBlock       = "the content has an element that is no object"
	noFields      = "a tool call needs an id, a name and an object as input"
	emptyText     = "text content blocks must be non-empty"
	noID          = "a tool call or result has no valid ID"
	callRole      = "tool calls must be the assistant's, results the user's"
	noCalls       = "tool_calls must not be empty"
	emptyError    = "the result of a failed call must not be empty"
	thinkingMark  = "cache_control cannot be set on thinking blocks"
	emptyTextMark = "cache_control cannot be set on empty text blocks"
	thinkingRole  = "thinking blocks must be the assistant's"
)

// broken records the first rule that the message breaks.
func (p *parser) broken(rule string) {
	p.m.fault = cmp.Or(p.m.fault, rule)
}

// read extracts the facts about an object at a place. Its parts have been read before.
func (p *parser) read(at place, own []member) {
	if at == ordinary {
		return
	}
	marked := false
	for _, m := range own {
		if !isMarker(m.key) {
			continue
		}
		if d, ok := marker(m.raw); ok {
			marked = true
			p.m.Markers++
			p.m.ttls = append(p.m.ttls, d)
		}
	}
	if at == inBlock && p.api == Gemini {
		p.part(own)
	} else if at == inBlock && p.api == Converse {
		p.converseBlock(own)
	} else if at == inBlock {
		p.block(own, marked)
	} else if at == inMessage {
		p.readMessage(own)
	} else if text := find(own, "text"); at == inResultBlock && p.api == Messages && word(find(own, "type")) == "text" && (isBlank(text) || !rawjson.IsString(text)) {
		p.broken(emptyText)
	}
}

// block extracts the facts about a block of a message's content.
func (p *parser) block(own []member, marked bool) {
	m := &p.m
	kind := word(find(own, "type"))
	m.lastServed = false
	switch kind {
	case "thinking", "redacted_thinking":
		m.firstThinks = m.firstThinks || !m.other && len(m.Results) == 0
		m.Thinking, m.other = true, true
		if marked {
			p.broken(thinkingMark)
		}
		return
	case "tool_use":
		m.Calls = append(m.Calls, p.id(find(own, "id")))
		if len(rawjson.Text(find(own, "name"))) == 0 || !rawjson.IsObject(find(own, "input")) {
			p.broken(noFields)
		}
	case "tool_result":
		m.Results = append(m.Results, p.id(find(own, "tool_use_id")))
		m.lateResult = m.lateResult || m.other
		if c := find(own, "content"); rawjson.IsTrue(find(own, "is_error")) && (c == nil || isBlank(c) || isEmptyArray(c)) {
			p.broken(emptyError)
		}
		return
	case "text", "input_text", "output_text":
		text := find(own, "text")
		empty := isBlank(text)
		if p.api == Messages && (empty || !rawjson.IsString(text)) {
			p.broken(emptyText)
			if marked {
				p.broken(emptyTextMark)
			}
		}
		gone := slices.ContainsFunc(own, func(o member) bool { return o.gone })
		m.Typed = m.Typed || !empty && !gone
	case "compaction":
		p.r.Compacts = p.r.Compacts || p.api == Messages
	default:
		if strings.HasSuffix(kind, "_tool_result") {
			m.lastServed = true
		} else {
			m.Typed = true
		}
	}
	m.other = true
}

// id returns the ID raw of a call or a result.
func (p *parser) id(raw []byte) string {
	s := rawjson.Text(raw)
	invalid := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	if s == "" || (p.api == Messages || p.api == Converse) && strings.IndexFunc(s, invalid) >= 0 {
		p.broken(noID)
	}
	return s
}

// readMessage extracts the facts about a message. Its blocks have been read.
func (p *parser) readMessage(own []member) {
	m := &p.m
	m.Role = word(find(own, "role"))
	content := find(own, "content")
	if rawjson.IsString(content) {
		gone := slices.ContainsFunc(own, func(o member) bool { return o.gone })
		m.Typed, m.other = !gone && !isBlank(content), true
	}
	switch p.api {
	case Messages, Converse:
		p.readAnthropic(content)
	case Chat:
		p.readChat(own, content)
	case Responses:
		p.readItem(own, content)
	case Gemini:
		p.readGemini(own)
	}
	m.Typed = m.Typed && m.Role == "user"
}

func (p *parser) readAnthropic(content []byte) {
	m := &p.m
	switch m.Role {
	case "user", "system":
		if m.Thinking {
			p.broken(thinkingRole)
		}
		if p.api == Converse && m.Role == "system" {
			p.broken(noRole)
		}
	case "assistant":
	default:
		p.broken(noRole)
	}
	if len(m.Calls) > 0 && m.Role != "assistant" || len(m.Results) > 0 && m.Role != "user" {
		p.broken(callRole)
	}
	if !rawjson.IsArray(content) && (!rawjson.IsString(content) || p.api == Converse) || isBlank(content) || isEmptyArray(content) {
		p.broken(noContent)
	}
}

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
				m.Calls = append(m.Calls, "function:"+rawjson.Text(rawjson.Field(o.raw, "name")))
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
	case strings.HasPrefix(kind, "compaction"), kind == "context_compaction": // items, and compaction_trigger
		p.r.Compacts = true
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

// request extracts the facts about a request.
func (p *parser) request(own []member) {
	r := p.r
	if r.wholeTTL = nil; p.requires != "" && find(own, p.requires) == nil {
		p.fail("there is no " + p.requires)
	}
	system := "system"
	if p.api == Responses {
		system = "instructions"
	}
	for _, o := range own { // of members with the same name the last one counts
		raw := o.raw
		if rawjson.IsNull(raw) {
			raw = nil
		}
		field := func(name string) []byte { return rawjson.Field(raw, name) }
		switch name := string(o.key); name {
		case system:
			if p.api == Messages || p.api == Responses || p.api == Converse {
				r.System = raw
			}
		case "tools":
			r.Tools = raw
		case "model":
			r.Model = rawjson.Text(raw)
		case "stream":
			r.Stream = rawjson.IsTrue(raw)
		case "thinking":
			if r.Thinking = rawjson.Text(field("type")); r.Thinking == "disabled" || p.api != Messages {
				r.Thinking = ""
			}
		case "cache_control":
			if d, ok := marker(raw); ok && p.api == Messages {
				r.wholeTTL = []time.Duration{d}
			}
		case "previous_response_id":
			r.Stateful = r.Stateful || raw != nil
		case "conversation":
			r.Stateful = r.Stateful || raw != nil
		case "compaction":
			r.Compacts = r.Compacts || raw != nil
		case "context_management":
			r.Compacts = r.Compacts || compacts(raw)
		case "prompt_cache_options":
			r.TTL = max(r.TTL, duration(field("ttl")))
		case "prompt_cache_retention":
			r.TTL = max(r.TTL, duration(raw))
		case "output_format", "response_format":
			r.Structured = r.Structured || isFormat(raw)
		case "text":
			r.Structured = r.Structured || isFormat(field("format"))
		case "output_config":
			r.Structured = r.Structured || isFormat(field("format"))
		case "tool_choice", "function_call":
			r.Structured = r.Structured || forces(raw)
		}
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if n := rawjson.Int(find(own, name)); n > 0 {
			r.MaxOutput = n
		}
	}
	p.ofAPI(own)
	if r.Session == "" {
		r.Session = rawjson.Text(find(own, "prompt_cache_key"))
	}
}

// ofAPI extracts the facts about a request that each API has in its own place.
func (p *parser) ofAPI(own []member) {
	r := p.r
	switch p.api {
	case Messages:
		r.Effort = rawjson.Text(rawjson.Field(find(own, "output_config"), "effort"))
		r.Session = sessionOf(rawjson.Text(rawjson.Field(find(own, "metadata"), "user_id")))
	case Chat:
		r.Effort = rawjson.Text(find(own, "reasoning_effort"))
	case Responses:
		r.Effort = rawjson.Text(rawjson.Field(find(own, "reasoning"), "effort"))
		conversation := find(own, "conversation")
		if rawjson.IsObject(conversation) {
			conversation = rawjson.Field(conversation, "id")
		}
		r.Session = rawjson.Text(conversation)
	case Gemini:
		p.geminiRequest(own)
	case Converse:
		p.converseRequest(own)
	}
}

// compacts reports whether the value of context_management asks for more than older thinking to be left out.
func compacts(raw []byte) bool {
	edits := raw // an array in the Responses API
	if rawjson.IsObject(raw) {
		edits = rawjson.Field(raw, "edits")
	}
	for e := range rawjson.Elements(edits) {
		if kind := rawjson.Text(rawjson.Field(e, "type")); !strings.HasPrefix(kind, "clear_thinking") {
			return true
		}
	}
	return false
}

func isFormat(raw []byte) bool {
	return rawjson.IsObject(raw) && rawjson.Text(rawjson.Field(raw, "type")) != "text"
}

// forces reports whether the value of tool_choice makes the model call a tool.
func forces(raw []byte) bool {
	switch rawjson.Text(raw) {
	case "required", "any":
		return true
	}
	switch kind := rawjson.Text(rawjson.Field(raw, "type")); kind {
	case "auto", "none":
		return false
	case "allowed_tools":
		mode := rawjson.Field(raw, "mode")
		if mode == nil {
			mode = rawjson.Field(rawjson.Field(raw, "allowed_tools"), "mode")
		}
		return rawjson.Text(mode) == "required"
	}
	return rawjson.IsObject(raw)
}

// marker returns the lifetime that the marker raw asks for; false if it is none.
func marker(raw []byte) (time.Duration, bool) {
	if !rawjson.IsObject(raw) {
		return 0, false
	}
	if d := duration(rawjson.Field(raw, "ttl")); d > 0 {
		return d, true
	}
	return 5 * time.Minute, true
}

func duration(raw []byte) time.Duration {
	d, err := time.ParseDuration(rawjson.Text(raw))
	if err != nil || d < 0 {
		return 0
	}
	return d
}

func longestOf(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Max(all)
}

// known are the words that are found in every request.
var known = func() map[string]string {
	m := map[string]string{}
	for _, s := range []string{
		"user", "assistant", "system", "developer", "tool", "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document",
		"message", "model", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "input_text", "output_text", "image_url",
	} {
		m[`"`+s+`"`] = s
	}
	return m
}()

// word returns the string raw, without an allocation if it is a known one.
func word(raw []byte) string {
	if s, ok := known[string(raw)]; ok {
		return s
	}
	return rawjson.Text(raw)
}

// isBlank reports whether raw is absent, or a string without anything but space.
func isBlank(raw []byte) bool {
	if !rawjson.IsString(raw) {
		return raw == nil
	}
	for i := 1; i < len(raw)-1; i++ {
		switch c := raw[i]; {
		case c == '\\' || c >= 0x80:
			return strings.TrimSpace(rawjson.Text(raw)) == ""
		case c != ' ':
			return false
		}
	}
	return true
}

func isEmptyArray(raw []byte) bool {
	return rawjson.IsArray(raw) && rawjson.SkipSpace(raw, 1) == len(raw)-1
}

// sessionOf returns the session in a user ID as Claude Code writes it: JSON, or words.
func sessionOf(user string) string {
	if raw := []byte(user); rawjson.IsObject(raw) {
		return rawjson.Text(rawjson.Field(raw, "session_id"))
	}
	_, id, _ := strings.Cut(user, "_session_")
	return id
}
