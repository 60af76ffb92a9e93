package upstream

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// readOllama reads the prompt of Ollama's /api/chat, as its types decode it: see api/types.go of its repository.
func (p *prompt) readOllama() *refusal {
	if v, ok := p.doc["stream"]; !ok || v == nil {
		p.stream = true
	}
	options, _ := p.doc["options"].(object)
	for name, to := range map[string]*int{"num_ctx": &p.window, "num_predict": &p.limit} {
		if n, ok := options[name].(json.Number); ok {
			i, _ := n.Int64()
			*to = int(i)
		}
	}
	p.format, _ = p.doc["format"].(object)
	p.forced = p.forced || p.format != nil || text(p.doc["format"]) == "json"
	list, ok := p.doc["messages"].([]any)
	if !ok {
		return invalid("messages", "json: cannot unmarshal into Go struct field ChatRequest.messages of type []api.Message")
	}
	for i, v := range list {
		m, _ := v.(object)
		switch m["content"].(type) {
		case nil, string:
		default:
			return invalid("field", "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string")
		}
		for _, image := range anys(m["images"]) {
			if _, err := base64.StdEncoding.DecodeString(text(image)); err != nil {
				return invalid("field", err.Error())
			}
		}
		role := text(m["role"])
		if !slices.Contains([]string{"system", "user", "assistant", "tool"}, role) {
			return invalid("role", fmt.Sprintf("invalid role: %q, must be one of: system, user, assistant, tool", role))
		}
		for _, call := range objects(m["tool_calls"]) {
			f, _ := call["function"].(object)
			if _, ok := f["arguments"].(object); !ok {
				return invalid("field", "json: cannot unmarshal string into Go struct field ToolCallFunction.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments")
			}
			p.name(text(call["id"]))
		}
		p.add(fmt.Sprintf("messages[%d]", i), role, i, m)
		if p.last = ""; role == "user" {
			p.last = text(m["content"])
			p.first = firstOf(p.first, p.last)
		}
	}
	return nil
}

// checkExchanges demands results for calls. The server refuses nothing of that kind, but the model is confused.
func checkExchanges(p *prompt, _ Model) *refusal {
	if p.model == "" {
		return invalid("field", "model is required")
	}
	open := 0
	for _, b := range p.blocks {
		if b.message < 0 {
			continue
		}
		if b.role == "tool" {
			if open--; open < 0 {
				return invalid("pairs", b.where+": a result without a call")
			}
			continue
		}
		if open > 0 {
			return invalid("pairs", b.where+": a call without a result")
		}
		open = len(anys(b.value["tool_calls"]))
	}
	if open > 0 {
		return invalid("pairs", "a call without a result")
	}
	return nil
}

// usualContext is the window of a model without a setting.
const usualContext = 4096

// cut returns how many tokens of a prompt the server takes: it cuts longer ones and says nothing.
func (v *Vendor) cut(p *prompt, n int) int {
	window := p.window
	if window == 0 {
		window = v.o.Context
	}
	if window == 0 {
		window = usualContext
	}
	return min(n, window)
}

func (a *answer) ollama(p *prompt, u usage) [][]byte {
	line := func(message object, more object) []byte {
		o := object{"model": p.model, "created_at": "2026-11-22T12:00:00.000000Z", "message": message, "done": false}
		maps.Copy(o, more)
		return append(encode(o), '\n')
	}
	var calls []any
	for i, c := range a.calls {
		calls = append(calls, object{"id": c.id, "function": object{"index": i, "name": c.tool.name, "arguments": c.input}})
	}
	end := object{
		"done": true, "done_reason": "stop", "total_duration": 1, "load_duration": 1, "prompt_eval_count": u.taken, "prompt_eval_duration": 1,
		"eval_count": a.tokens, "eval_duration": 1,
	}
	message := object{"role": "assistant", "content": a.text}
	if !p.stream {
		if len(calls) > 0 {
			message["tool_calls"] = calls
		}
		return [][]byte{line(message, end)}
	}
	var out [][]byte
	for _, s := range pieces(a.text) {
		out = append(out, line(object{"role": "assistant", "content": s}, nil))
	}
	if len(calls) > 0 {
		out = append(out, line(object{"role": "assistant", "content": "", "tool_calls": calls}, nil))
	}
	return append(out, line(object{"role": "assistant", "content": ""}, end))
}

// ollamaRequest is the next body of a client.
func (c *Client) ollamaRequest(system string, schema object) object {
	tools := []any{object{"type": "function", "function": object{"name": "bash", "parameters": schema}}}
	for _, name := range c.Tools {
		tools = append(tools, object{"type": "function", "function": object{"name": name, "parameters": object{"type": "object"}}})
	}
	o := object{
		"model": c.Model, "stream": c.Stream, "messages": append([]object{{"role": "system", "content": system}}, c.History...),
		"tools": tools,
	}
	if c.Window > 0 {
		o["options"] = object{"num_ctx": c.Window}
	}
	return o
}

func (c *Client) ollamaAnswer(stream []byte) ([]object, error) {
	message, ended := object{"role": "assistant", "content": ""}, false
	for line := range strings.SplitSeq(strings.TrimSpace(string(stream)), "\n") {
		o := decodeObject([]byte(line))
		if o["error"] != nil {
			return nil, fmt.Errorf("%w: %s", ErrRefused, line)
		}
		m, _ := o["message"].(object)
		message["content"] = text(message["content"]) + text(m["content"])
		if m["tool_calls"] != nil {
			message["tool_calls"] = append(anys(message["tool_calls"]), anys(m["tool_calls"])...)
		}
		if o["done"] == true {
			ended = true
			if n, ok := o["prompt_eval_count"].(json.Number); ok {
				i, _ := n.Int64()
				c.Prompt = int(i)
			}
		}
	}
	if !ended {
		return nil, ErrIncomplete
	}
	return []object{message}, nil
}
