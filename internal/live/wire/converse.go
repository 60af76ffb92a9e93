package wire

import (
	"bytes"
	"slices"
	"time"

	"github.com/condensehq/condense/internal/rawjson"
)

// converseParts are the places of members in a request of the Converse API.
var converseParts = [inMessage + 1]map[string]place{
	inMessage: {"content": inContent},
	inBlock:   {"text": inText},
	inTools:   {"tools": inTools, "toolChoice": ignored}, // of the tool configuration
}

// Members of blocks: cachePoint of one that is nothing but a cache marker.
const (
	cachePoint = "cachePoint"
	toolUse    = "toolUse"
	toolResult = "toolResult"
)

// isPoint reports whether an object is a cache marker of the Converse API.
func isPoint(own []member) bool { return len(own) == 1 && string(own[0].key) == cachePoint }

// converseBlock extracts the facts about a block of a message's content, whose kind is the name of its member.
func (p *parser) converseBlock(own []member) {
	m := &p.m
	for _, o := range own {
		switch string(o.key) {
		case cachePoint:
			return
		case toolUse:
			m.Calls = append(m.Calls, p.id(rawjson.Field(o.raw, "toolUseId")))
			if rawjson.Text(rawjson.Field(o.raw, "name")) == "" || rawjson.Field(o.raw, "input") == nil {
				p.broken(noFields)
			}
		case toolResult:
			m.Results = append(m.Results, p.id(rawjson.Field(o.raw, "toolUseId")))
			m.lateResult = m.lateResult || m.other
			if c := rawjson.Field(o.raw, "content"); !rawjson.IsArray(c) {
				p.broken(noContent)
			} else if isEmptyArray(c) && rawjson.Text(rawjson.Field(o.raw, "status")) == "error" {
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

// converseRequest extracts the facts about a request that only this API has.
func (p *parser) converseRequest(own []member) {
	r := p.r
	tools := find(own, "toolConfig")
	r.Tools = rawjson.Field(tools, "tools")
	choice := rawjson.Field(tools, "toolChoice")
	r.Structured = r.Structured || rawjson.Field(choice, "any") != nil || rawjson.Field(choice, "tool") != nil ||
		rawjson.Field(find(own, "outputConfig"), "textFormat") != nil
	r.MaxOutput = max(0, rawjson.Int(rawjson.Field(find(own, "inferenceConfig"), "maxTokens")))
	more := find(own, "additionalModelRequestFields") // of the model's own API
	for _, name := range []string{"thinking", "reasoning_config"} {
		if kind := rawjson.Text(rawjson.Field(rawjson.Field(more, name), "type")); kind != "" && kind != "disabled" {
			r.Thinking = kind
		}
	}
	r.Effort = rawjson.Text(rawjson.Field(rawjson.Field(more, "output_config"), "effort"))
	r.Compacts = r.Compacts || compacts(rawjson.Field(more, "context_management"))
}

// Marks reports whether requests of an API have cache markers at places of their own.
func Marks(api API) bool { return api == Messages || api == Converse }

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

// Joined returns messages with neighbours of one role joined if the API is Converse's, which refuses them, and for each the index of the
// first that it is made of.
func Joined(api API, view [][]byte) (out [][]byte, origin []int) {
	role := ""
	for i, raw := range view {
		was, n := role, len(out)-1
		if role = rawjson.Text(rawjson.Field(raw, "role")); api != Converse || n < 0 || role != was {
			out, origin = append(out, raw), append(origin, i)
			continue
		}
		before := rawjson.Field(out[n], "content")
		var blocks [][]byte
		for _, content := range [][]byte{before, rawjson.Field(raw, "content")} {
			blocks = slices.AppendSeq(blocks, rawjson.Elements(content))
		}
		out[n] = rawjson.ReplaceValue(out[n], before, rawjson.Array(blocks))
	}
	return out, origin
}

// converseLeaves are the fields of an answer of the Converse API, and of the events of its stream.
var converseLeaves = map[string]leaf{
	"stopReason": leafStop, "usage.inputTokens": leafFresh, "usage.cacheReadInputTokens": leafFreshRead,
	"usage.cacheWriteInputTokens": leafFreshWrite, "usage.outputTokens": leafOutput, "message": leafMessage, "Message": leafMessage,
	"delta.text": leafText, "delta.toolUse.input": leafText, "delta.reasoningContent.text": leafText,
}
