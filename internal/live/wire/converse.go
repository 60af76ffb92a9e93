package wire

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/condensehq/condense/internal/rawjson"
)

// converseAPI is the dialect of Amazon Bedrock's Converse.
var converseAPI = &Dialect{
	API: Converse, Vendor: Amazon, Format: "bedrock-converse",
	Said: `{"role":"assistant","content":[{"text":?}]}`, Asked: `{"role":"user","content":[{"text":?}]}`, Extra: "additionalModelRequestFields",
	Apart: true, Joins: true,
	Refuse:    func(_ int, message string) []byte { return rawjson.Append(nil, `{"message":?}`, message) },
	ErrorType: func(status int) string { return cmp.Or(amazonErrors[status], "InternalServerException") },
	read: reading{
		members: map[string]place{"messages": inMessages, "system": inContent, "toolConfig": inTools},
		parts: &[inMessage + 1]map[string]place{
			inMessage: {"content": inContent},
			inBlock:   {"text": inText},
			inTools:   {"tools": inTools, "toolChoice": ignored}, // of the tool configuration
		},
		limits: [][]string{{"inferenceConfig", "maxTokens"}}, byMember: true, plainIDs: true, fullTexts: true,
		block: (*parser).converseBlock, message: (*parser).readConverse, request: (*parser).converseRequest, check: (*checker).anthropic,
	},
	edit: editing{content: "content", strip: stripThinking, mark: markPoint, says: func([]byte) bool { return true }},
	tool: tooling{
		form: `{"toolSpec":{"name":?,"description":?,"inputSchema":{"json":?}}}`, list: []string{"toolConfig", "tools"}, declared: asIs, turn: `{"role":"user","content":?}`, calls: callIDs,
		call: func(_ *Dialect, part []byte) (Call, bool) {
			c := rawjson.Field(part, toolUse)
			id := textAt(c, "toolUseId")
			return Call{id, rawjson.Field(c, "input"), id, textAt(c, "name")}, c != nil
		},
		result: func(_, call, text string, failed bool) []byte {
			status := "success"
			if failed {
				status = "error"
			}
			return rawjson.Append(nil, `{"toolResult":{"toolUseId":?,"content":[{"text":?}],"status":?}}`, call, text, status)
		},
		answers: func(block []byte) string { return textAt(block, toolResult, "toolUseId") },
	},
	reply: replying{
		leaves: fields(map[leaf]string{
			leafStop: "stopReason", leafFresh: "usage.inputTokens", leafFreshRead: "usage.cacheReadInputTokens",
			leafFreshWrite: "usage.cacheWriteInputTokens", leafOutput: "usage.outputTokens", leafMessage: "message Message",
			leafText: "delta.text delta.toolUse.input delta.reasoningContent.text",
		}),
		ends: []string{"tool_use"}, done: "end_turn", stops: [][]string{{"stopReason"}}, content: []string{"output", "message", "content"}, frames: true,
		event: nextConverse, last: (*Splice).ending, whole: wholeParts, keep: (*Splice).keepParts, message: inTurn(`{"role":"assistant","content":?}`),
	},
}

// Members of blocks: cachePoint of one that is nothing but a cache marker.
const (
	cachePoint = "cachePoint"
	toolUse    = "toolUse"
	toolResult = "toolResult"
)

// converseBlock extracts the facts about a block of a message's content, whose kind is the name of its member.
func (p *parser) converseBlock(own []member, _ bool) {
	m := &p.m
	for _, o := range own {
		switch string(o.key) {
		case cachePoint:
			return
		case toolUse:
			m.Calls = append(m.Calls, p.id(rawjson.Field(o.raw, "toolUseId")))
			if textAt(o.raw, "name") == "" || rawjson.Field(o.raw, "input") == nil {
				p.broken(noFields)
			}
		case toolResult:
			m.Results = append(m.Results, p.id(rawjson.Field(o.raw, "toolUseId")))
			m.lateResult = m.lateResult || m.other
			if c := rawjson.Field(o.raw, "content"); !rawjson.IsArray(c) {
				p.broken(noContent)
			} else if isEmptyArray(c) && textAt(o.raw, "status") == "error" {
				p.broken(emptyError)
			}
			return
		case "reasoningContent":
			m.firstThinks = m.firstThinks || !m.other && len(m.Results) == 0
			m.Thinking = true
		case "text":
			empty := isBlank(o.raw)
			if empty || !rawjson.IsString(o.raw) {
				p.broken(emptyText)
			}
			m.Typed = m.Typed || !empty && !o.gone
		default:
			m.Typed = true
		}
	}
	m.other = true
}

// readConverse extracts the facts about a message.
func (p *parser) readConverse(own []member, content []byte) {
	if p.m.Role == "system" && !p.m.Thinking {
		p.broken(noRole)
	}
	if p.readTurn(own, content); !rawjson.IsArray(content) {
		p.broken(noContent)
	}
}

// converseRequest extracts the facts about a request that only this API has.
func (p *parser) converseRequest(own []member) {
	r := p.r
	tools := find(own, "toolConfig")
	r.Tools = rawjson.Field(tools, "tools")
	choice := rawjson.Field(tools, "toolChoice")
	r.Structured = r.Structured || rawjson.Field(choice, "any") != nil || rawjson.Field(choice, "tool") != nil ||
		rawjson.Field(find(own, "outputConfig"), "textFormat") != nil
	more := find(own, p.d.Extra)
	for _, name := range []string{"thinking", "reasoning_config"} {
		if kind := textAt(more, name, "type"); kind != "" && kind != "disabled" {
			r.Thinking = kind
		}
	}
	r.Effort = textAt(more, "output_config", "effort")
	r.Compacts = r.Compacts || compacts(rawjson.Field(more, "context_management"))
}

// markPoint returns a message of the Converse API with a single cache marker, after its last block but thinking; the
// message without its markers if there is no such block.
func markPoint(message []byte, ttl time.Duration) []byte {
	message = cutPoints(message)
	content := rawjson.Field(message, "content")
	var blocks [][]byte
	at := 0
	for b := range rawjson.Elements(content) {
		blocks = append(blocks, b)
		if !thinks(b) {
			at = len(blocks)
		}
	}
	if at == 0 {
		return message
	}
	point := `{"cachePoint":{"type":"default"}}`
	if ttl >= time.Hour {
		point = `{"cachePoint":{"type":"default","ttl":"1h"}}`
	}
	out := append(append(append([][]byte(nil), blocks[:at]...), []byte(point)), blocks[at:]...)
	return rawjson.ReplaceValue(message, content, rawjson.Array(out))
}

// cutPoints returns a message without the cache markers of the Converse API, which are blocks.
func cutPoints(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"`+cachePoint+`"`)) {
		return message
	}
	content, kept, n := blocksWithout(message, func(b []byte) bool { return rawjson.IsObject(b) && rawjson.Field(b, cachePoint) != nil })
	if len(kept) == n || len(kept) == 0 {
		return message
	}
	return rawjson.ReplaceValue(message, content, rawjson.Array(kept))
}

// amazonErrors are the types of errors by status, for the header x-amzn-errortype; others are InternalServerException. Source: the
// service's model.
var amazonErrors = map[int]string{
	http.StatusBadRequest: "ValidationException", http.StatusMethodNotAllowed: "ValidationException",
	http.StatusRequestEntityTooLarge: "ValidationException", http.StatusNotFound: "ResourceNotFoundException",
	http.StatusUnauthorized: "AccessDeniedException", http.StatusForbidden: "AccessDeniedException",
	http.StatusRequestTimeout: "ModelTimeoutException", http.StatusTooManyRequests: "ThrottlingException",
	http.StatusBadGateway: "ServiceUnavailableException", http.StatusServiceUnavailable: "ServiceUnavailableException",
}

// nextConverse reads an event of the Converse API, whose kind is in a header of its frame.
func nextConverse(s *Splice, data []byte) ([]byte, bool) {
	const index = "contentBlockIndex"
	at := rawjson.Int(rawjson.Field(data, index))
	switch s.kind {
	case "messageStart":
		if s.rounds > 0 {
			return nil, false
		}
	case "contentBlockStart": // of a call; other blocks begin with their first delta
		if call := rawjson.Field(rawjson.Field(data, "start"), toolUse); call != nil {
			p := s.add(at, call, textAt(call, "name") == s.tool)
			p.raw, p.within = set(p.raw, []byte("{}"), "input"), []string{toolUse}
		}
		return s.indexed(data, index), false
	case "contentBlockDelta":
		delta := rawjson.Field(data, "delta")
		p := s.part(at)
		if p == nil {
			p = s.add(at, []byte("{}"), false)
		}
		thought := rawjson.Field(delta, "reasoningContent")
		switch call := rawjson.Field(delta, toolUse); {
		case call != nil:
			p.input = append(p.input, inside(rawjson.Field(call, "input"))...)
		case thought == nil:
			p.grow(delta)
		case rawjson.Field(thought, "redactedContent") != nil:
			p.within = []string{"reasoningContent"}
			p.grow(thought)
		default:
			p.within = []string{"reasoningContent", "reasoningText"}
			p.grow(thought)
		}
		return s.indexed(data, index), false
	case "contentBlockStop":
		if p := s.part(at); p != nil {
			p.finish()
		}
		return s.indexed(data, index), false
	case "messageStop":
		s.stop = textAt(data, "stopReason")
		return data, s.held()
	case "metadata":
		s.usage = slices.Clone(rawjson.Field(data, "usage"))
		s.over = s.held()
		return data, s.over
	}
	return data, false
}
