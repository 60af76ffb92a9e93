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
func (p *parser) broken(rule string) { p.m.fault = cmp.Or(p.m.fault, rule) }

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
	if at == inBlock {
		p.d.read.block(p, own, marked)
	} else if at == inMessage {
		p.readMessage(own)
	} else if text := find(own, "text"); at == inResultBlock && p.d.read.fullTexts && word(find(own, "type")) == "text" && (isBlank(text) || !rawjson.IsString(text)) {
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
		if p.d.read.fullTexts && (empty || !rawjson.IsString(text)) {
			p.broken(emptyText)
			if marked {
				p.broken(emptyTextMark)
			}
		}
		gone := slices.ContainsFunc(own, func(o member) bool { return o.gone })
		m.Typed = m.Typed || !empty && !gone
	case "compaction":
		p.r.Compacts = p.r.Compacts || p.d.Signs
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
	if s == "" || p.d.read.plainIDs && strings.IndexFunc(s, invalid) >= 0 {
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
	p.d.read.message(p, own, content)
	m.Typed = m.Typed && m.Role == "user"
}

// request extracts the facts about a request.
func (p *parser) request(own []member) {
	r := p.r
	if r.wholeTTL = nil; p.requires != "" && find(own, p.requires) == nil {
		p.fail("there is no " + p.requires)
	}
	for _, o := range own { // of members with the same name the last one counts
		raw := o.raw
		if rawjson.IsNull(raw) {
			raw = nil
		}
		field := func(name string) []byte { return rawjson.Field(raw, name) }
		if p.d.read.members[string(o.key)] == inContent {
			r.System = raw
		}
		switch string(o.key) {
		case "tools":
			r.Tools = raw
		case "model":
			r.Model = rawjson.Text(raw)
		case "stream":
			r.Stream = rawjson.IsTrue(raw)
		case "previous_response_id", "conversation":
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
		case "text", "output_config":
			r.Structured = r.Structured || isFormat(field("format"))
		case "tool_choice", "function_call":
			r.Structured = r.Structured || forces(raw)
			r.Toolless = r.Toolless || rawjson.Text(raw) == "none" || rawjson.Text(field("type")) == "none"
		}
	}
	for _, path := range p.d.read.limits {
		if n := rawjson.Int(at(find(own, path[0]), path[1:]...)); n > 0 {
			r.MaxOutput = n
		}
	}
	p.d.read.request(p, own)
	if r.Session == "" {
		r.Session = rawjson.Text(find(own, "prompt_cache_key"))
	}
}

// usualLimits are those of the APIs of OpenAI and of Anthropic.
var usualLimits = [][]string{{"max_tokens"}, {"max_completion_tokens"}, {"max_output_tokens"}}

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
