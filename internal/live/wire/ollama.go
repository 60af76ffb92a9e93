package wire

import (
	"github.com/condensehq/condense/internal/rawjson"
)

// readOllama extracts the facts about a message of Ollama's chat API. Calls have IDs only in newer versions, and
// results often name their tool instead: they are paired by order, which the names of tools approximate.
func (p *parser) readOllama(own []member, content []byte) {
	m := &p.m
	for call := range rawjson.Elements(find(own, "tool_calls")) {
		m.Calls = append(m.Calls, "function:"+rawjson.Text(rawjson.Field(rawjson.Field(call, "function"), "name")))
	}
	m.Thinking = !isBlank(find(own, "thinking"))
	m.Typed = m.Typed || rawjson.IsArray(find(own, "images")) && !isEmptyArray(find(own, "images"))
	switch m.Role {
	case "tool":
		name := find(own, "tool_name")
		if name == nil {
			name = find(own, "name")
		}
		m.Results = append(m.Results, "function:"+rawjson.Text(name))
	case "user", "assistant", "system":
	default:
		p.broken(noRole)
	}
	if content != nil && !rawjson.IsString(content) && !rawjson.IsNull(content) {
		p.broken(noContent)
	}
	if len(m.Calls) > 0 && m.Role != "assistant" {
		p.broken(callRole)
	}
}

// ollamaRequest extracts the facts about a request that only this API has: it streams unless told otherwise, and
// decides about the window.
func (p *parser) ollamaRequest(own []member) {
	r := p.r
	r.Stream = find(own, "stream") == nil || r.Stream
	options := find(own, "options")
	r.Window = max(0, rawjson.Int(rawjson.Field(options, "num_ctx")))
	r.MaxOutput = max(0, rawjson.Int(rawjson.Field(options, "num_predict")))
	format := find(own, "format")
	r.Structured = r.Structured || rawjson.IsObject(format) || rawjson.Text(format) == "json"
}

// exchanges checks the order of messages of Ollama's API, whose server refuses little: a result without a call before
// it, or a call without a result, would confuse the model.
func (c *checker) exchanges() {
	open, at := 0, -1
	for i, m := range c.messages {
		if len(m.Results) > 0 {
			if open--; open < 0 {
				c.add(i, noCall)
				open = 0
			}
			continue
		}
		if open > 0 {
			c.add(at, noResult)
		}
		open, at = len(m.Calls), i
	}
	if open > 0 {
		c.add(at, noResult)
	}
	if len(c.messages) == 0 {
		c.add(-1, noMessages)
	}
}

// ollamaLeaves are the fields of an answer, which is a line of JSON for each piece of a stream.
var ollamaLeaves = map[string]leaf{
	"model": leafModel, "done": leafKind, "done_reason": leafStop, "prompt_eval_count": leafInput, "eval_count": leafOutput,
	"message.content": leafText, "message.thinking": leafText, "message.tool_calls.function.name": leafText, "response": leafText,
	"error": leafErrorText,
}
