package wire

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// geminiAPI is the dialect of Google's generateContent.
var geminiAPI = &Dialect{
	API: Gemini, Vendor: Google, Format: "gemini-api",
	Said: `{"role":"model","parts":[{"text":?}]}`, Asked: `{"role":"user","parts":[{"text":?}]}`,
	Apart: true, Arrays: true,
	Refuse: func(status int, message string) []byte {
		name := cmp.Or(googleStatus[status], "INTERNAL")
		return rawjson.Append(nil, `{"error":{"code":?,"message":?,"status":?}}`, []byte(strconv.Itoa(status)), message, name)
	},
	read: reading{
		members: map[string]place{"contents": inMessages, "systemInstruction": inContent, "system_instruction": inContent, "tools": inTools},
		parts: &[inMessage + 1]map[string]place{
			inMessage: {"parts": inContent},
			inContent: {"parts": inContent}, // of the system instruction
			inBlock:   {"text": inText},
		},
		limits: [][]string{{"generation_config", "max_output_tokens"}, {"generationConfig", "max_output_tokens"}, {"generationConfig", "maxOutputTokens"}},
		block:  (*parser).part, message: (*parser).readGemini, request: (*parser).geminiRequest, check: (*checker).contents,
		marginal: func(at place, _ []member, m member) bool { return at == inBlock && isSignature(m.key) },
	},
	edit: editing{content: "parts", strip: asIs, says: func(part []byte) bool { return !rawjson.IsTrue(rawjson.Field(part, "thought")) || isText(part) }},
	tool: tooling{
		form: `{"name":?,"description":?,"parametersJsonSchema":?}`, turn: `{"role":"user","parts":?}`, list: []string{"tools"}, declared: declared,
		choices: [][]string{{"generationConfig", "candidateCount"}, {"generationConfig", "candidate_count"}},
		call: func(d *Dialect, part []byte) (Call, bool) {
			f := functionCall(part)
			name, arguments := textAt(f, "name"), rawjson.Field(f, "args")
			return Call{textAt(f, "id"), arguments, nameKey(d, name, arguments), name}, f != nil
		},
		calls: func(d *Dialect, m *Message) (keys []string) {
			for part := range rawjson.Elements(rawjson.Field(m.Raw, "parts")) {
				if c, ok := d.tool.call(d, part); ok {
					keys = append(keys, c.key)
				}
			}
			return keys
		},
		result: func(tool, call, text string, failed bool) []byte {
			id, kind := "", "output"
			if call != "" {
				id = string(rawjson.Append(nil, `"id":?,`, call))
			}
			if failed {
				kind = "error"
			}
			return rawjson.Append(nil, `{"functionResponse":{?"name":?,"response":{?:?}}}`, []byte(id), tool, kind, text)
		},
	},
	reply: replying{
		leaves: fields(map[leaf]string{
			leafID: "responseId", leafModel: "modelVersion", leafStop: "candidates.finishReason promptFeedback.blockReason",
			leafInput: "usageMetadata.promptTokenCount totalTokens", leafRead: "usageMetadata.cachedContentTokenCount",
			leafOutput: "usageMetadata.candidatesTokenCount", leafThought: "usageMetadata.thoughtsTokenCount",
			leafText: "candidates.content.parts.text candidates.content.parts.functionCall.name", leafErrorType: "error.status",
			leafErrorText: "error.message", leafCode: "error.code",
		}),
		ends: []string{"STOP"}, looseEnd: true, noEnd: true,
		event: nextCandidate, divide: divideCandidate, last: totalUsage, whole: wholeCandidate, message: inTurn(`{"role":"model","parts":?}`),
		failed: func(s *Splice, body []byte) []byte {
			return slices.Concat(s.render(sseEvent{}, oneLine(body)), s.close())
		},
		keep: func(s *Splice) {
			s.keepParts()
			s.spoken = s.spoken || slices.ContainsFunc(s.parts, func(p *part) bool { return isPlain(p.raw) })
		},
		forgets: func(part []byte) bool { // a summary for readers
			return rawjson.IsTrue(rawjson.Field(part, "thought")) && !signed(part)
		},
	},
}

// Rules of the Gemini API, in words similar to Google's.
const (
	noParts       = "contents.parts must not be empty"
	noTool        = "a function call or response needs the name of the function"
	responseCount = "the number of function response parts must be equal to the number of function call parts of the function call turn"
	responsePlace = "a function response turn must come immediately after a function call turn"
)

// either returns a member by either of its names: the Gemini API writes camel case, and also reads names with underscores.
func either(own []member, name, other string) []byte {
	if v := find(own, name); v != nil {
		return v
	}
	return find(own, other)
}

func fieldOf(raw []byte, name, other string) []byte {
	if v := rawjson.Field(raw, name); v != nil {
		return v
	}
	return rawjson.Field(raw, other)
}

// isSignature reports whether a member is the signature of a part. Clients add and leave out signatures of earlier
// turns, and the vendor does not mind.
func isSignature(key []byte) bool {
	return string(key) == "thoughtSignature" || string(key) == "thought_signature"
}

// part extracts the facts about a part of a content. Calls and responses are paired by the function's name and their
// order, because only some clients send the optional IDs, and some send them in one of the two.
func (p *parser) part(own []member, _ bool) {
	m := &p.m
	named := func(o []byte) string {
		name := textAt(o, "name")
		if name == "" {
			p.broken(noTool)
		}
		return "function:" + name
	}
	call, response := either(own, "functionCall", "function_call"), either(own, "functionResponse", "function_response")
	switch text := find(own, "text"); {
	case response != nil:
		m.Results = append(m.Results, named(response))
		return
	case call != nil:
		m.Calls = append(m.Calls, named(call))
	case rawjson.IsTrue(find(own, "thought")):
		m.Thinking = true
	default:
		m.Typed = m.Typed || !isBlank(text) || text == nil && len(own) > 0
	}
	m.other = true
}

// readGemini extracts the facts about a content.
func (p *parser) readGemini(own []member, _ []byte) {
	m := &p.m
	switch m.Role {
	case "model":
		m.Role = "assistant"
	case "", "function":
		m.Role = "user"
	case "user":
	default:
		p.broken(noRole)
	}
	if parts := find(own, "parts"); !rawjson.IsArray(parts) || isEmptyArray(parts) {
		p.broken(noParts)
	}
	if len(m.Calls) > 0 && m.Role != "assistant" || len(m.Results) > 0 && m.Role != "user" {
		p.broken(callRole)
	}
}

// geminiRequest extracts the facts about a request that only this API has.
func (p *parser) geminiRequest(own []member) {
	r := p.r
	r.System = either(own, "systemInstruction", "system_instruction")
	r.Model = strings.TrimPrefix(r.Model, "models/")
	cached := either(own, "cachedContent", "cached_content")
	r.Stateful = r.Stateful || cached != nil && !rawjson.IsNull(cached) // the beginning of the prompt is at the vendor
	config := either(own, "generationConfig", "generation_config")
	switch rawjson.Text(fieldOf(config, "responseMimeType", "response_mime_type")) {
	case "", "text/plain":
	default:
		r.Structured = true
	}
	thinking := fieldOf(config, "thinkingConfig", "thinking_config")
	if r.Effort = rawjson.Text(fieldOf(thinking, "thinkingLevel", "thinking_level")); r.Effort == "" {
		r.Effort = string(fieldOf(thinking, "thinkingBudget", "thinking_budget"))
	}
	calling := fieldOf(either(own, "toolConfig", "tool_config"), "functionCallingConfig", "function_calling_config")
	mode := textAt(calling, "mode")
	r.Structured, r.Toolless = r.Structured || strings.EqualFold(mode, "ANY"), strings.EqualFold(mode, "NONE")
}

// contents checks the order of contents of the Gemini API. The API joins consecutive contents of one role into a turn, because
// Google's own client makes a content of each chunk of a stream.
func (c *checker) contents(*Request) {
	calls, results := 0, 0 // of this turn
	open, at := 0, 0       // calls of the turn before, and where this turn begins
	end := func() {
		if open != results {
			c.add(max(0, at-1), responseCount)
		}
		open, calls, results = calls, 0, 0
	}
	role := "user"
	for i, m := range c.messages {
		if i == 0 && m.Role != "user" {
			c.add(i, notUserFirst)
		}
		if m.Role != role {
			end()
			role, at = m.Role, i
		}
		if len(m.Results) > 0 && open == 0 {
			c.add(i, responsePlace)
		}
		calls, results = calls+len(m.Calls), results+len(m.Results)
	}
	end()
	end()
	if len(c.messages) == 0 {
		c.add(-1, noMessages)
	}
}

// googleStatus are the names of statuses in Google's errors; others are errors of the server.
var googleStatus = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusNotFound: "NOT_FOUND", http.StatusMethodNotAllowed: "INVALID_ARGUMENT", http.StatusRequestEntityTooLarge: "INVALID_ARGUMENT",
	http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusBadGateway: "UNAVAILABLE", http.StatusServiceUnavailable: "UNAVAILABLE",
	http.StatusGatewayTimeout: "DEADLINE_EXCEEDED",
}

func functionCall(part []byte) []byte { return fieldOf(part, "functionCall", "function_call") }

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

// nextCandidate reads a chunk, or the whole, of an answer of the Gemini API. Only the first candidate counts.
func nextCandidate(s *Splice, data []byte) ([]byte, bool) {
	s.usage = overlay(s.usage, rawjson.Field(data, "usageMetadata"))
	id := textAt(data, "responseId")
	if s.rounds == 0 && s.id == "" {
		s.id = id
	}
	c := firstOf(rawjson.Field(data, "candidates"))
	if c == nil {
		return data, s.held() && s.stop != ""
	}
	stop := textAt(c, "finishReason")
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
	if s.ours(raw) {
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

// divideCandidate divides the last chunk of a candidate.
func divideCandidate(data []byte) (early, late []byte) {
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
func wholeCandidate(s *Splice, body []byte) []byte {
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
	return totalUsage(s, rawjson.ReplaceValue(body, c, set(slices.Clone(c), content, "content")))
}

// totalUsage returns the end of an answer with the usage of all answers. As with tools that Google runs, the prompt counts once, and
// the prompts of earlier rounds count as the tools' tokens.
func totalUsage(s *Splice, data []byte) []byte {
	if s.rounds == 0 || s.usage == nil || rawjson.Field(data, "usageMetadata") == nil {
		return data
	}
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
	total = set(set(total, number(tools), "toolUsePromptTokenCount"), number(all), "totalTokenCount")
	return set(slices.Clone(data), total, "usageMetadata")
}

// declared returns the last list of functions of a request's tools, which may have several.
func declared(tools []byte) (list []byte) {
	for group := range rawjson.Elements(tools) {
		for _, name := range []string{"functionDeclarations", "function_declarations"} {
			if o := rawjson.Field(group, name); rawjson.IsArray(o) && !isEmptyArray(o) {
				list = o
			}
		}
	}
	return list
}

// nameKey returns the name of a function and a hash of its arguments that does not depend on how they are written.
func nameKey(d *Dialect, name string, arguments []byte) string {
	if !rawjson.IsObject(arguments) {
		arguments = []byte("{}")
	}
	m, _ := parseMessage(d, rawjson.Append(nil, `{"parts":[{"functionCall":{"name":"f","args":?}}]}`, arguments))
	return name + ":" + hex.EncodeToString(m.Hash[:])
}
