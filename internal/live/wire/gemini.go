package wire

import (
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

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

// geminiParts are the places of members in a request of the Gemini API.
var geminiParts = [inMessage + 1]map[string]place{
	inMessage: {"parts": inContent},
	inContent: {"parts": inContent}, // of the system instruction
	inBlock:   {"text": inText},
}

// isSignature reports whether a member is the signature of a part. Clients add and leave out signatures of earlier
// turns, and the vendor does not mind.
func isSignature(key []byte) bool {
	return string(key) == "thoughtSignature" || string(key) == "thought_signature"
}

// part extracts the facts about a part of a content. Calls and responses are paired by the function's name and their
// order, because only some clients send the optional IDs, and some send them in one of the two.
func (p *parser) part(own []member) {
	m := &p.m
	named := func(o []byte) string {
		name := rawjson.Text(rawjson.Field(o, "name"))
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

func (p *parser) readGemini(own []member) {
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
	field := func(raw []byte, name, other string) []byte {
		if v := rawjson.Field(raw, name); v != nil {
			return v
		}
		return rawjson.Field(raw, other)
	}
	r.MaxOutput = max(0, rawjson.Int(field(config, "maxOutputTokens", "max_output_tokens")))
	switch rawjson.Text(field(config, "responseMimeType", "response_mime_type")) {
	case "", "text/plain":
	default:
		r.Structured = true
	}
	thinking := field(config, "thinkingConfig", "thinking_config")
	if r.Effort = rawjson.Text(field(thinking, "thinkingLevel", "thinking_level")); r.Effort == "" {
		r.Effort = string(field(thinking, "thinkingBudget", "thinking_budget"))
	}
	calling := field(either(own, "toolConfig", "tool_config"), "functionCallingConfig", "function_calling_config")
	r.Structured = r.Structured || strings.EqualFold(rawjson.Text(rawjson.Field(calling, "mode")), "ANY")
}

// contents checks the order of contents of the Gemini API. The API joins consecutive contents of one role into a turn, because
// Google's own client makes a content of each chunk of a stream.
func (c *checker) contents() {
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

// geminiLeaves are the fields of an answer of the Gemini API, streamed or not.
var geminiLeaves = map[string]leaf{
	"responseId": leafID, "modelVersion": leafModel, "candidates.finishReason": leafStop, "promptFeedback.blockReason": leafStop,
	"usageMetadata.promptTokenCount": leafInput, "usageMetadata.cachedContentTokenCount": leafRead, "totalTokens": leafInput,
	"usageMetadata.candidatesTokenCount": leafOutput, "usageMetadata.thoughtsTokenCount": leafThought,
	"candidates.content.parts.text": leafText, "candidates.content.parts.functionCall.name": leafText,
	"error.status": leafErrorType, "error.message": leafErrorText, "error.code": leafCode,
}
