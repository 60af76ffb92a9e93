package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"github.com/condensehq/condense/internal/plain"
)

// A Client is a small agent for tests. It sends its whole history, runs the calls of each answer with [Output], and
// goes on until an answer has no calls. It moves its cache markers as agents do, and returns thinking as it came. It
// is not safe for concurrent use.
type Client struct {
	URL      string // for example an httptest.Server's, without /v1
	API      API
	Cloud    Cloud // "" is the vendor itself
	Model    string
	Session  string // sent as agents do; "" sends none
	Agent    string // of a sub-agent
	Header   http.Header
	Stream   bool
	Thinking string // "", "adaptive" or "enabled"
	Unmarked bool   // without cache markers
	System   string // "" is a short text
	HTTP     *http.Client
	Run      func(command string) string // nil is Output
	Tools    []string                    // names of more tools, without arguments
	Array    bool                        // a stream of Gemini's is an array
	More     map[string]any              // further members of each request

	History []object // messages or items: tests may change it between requests
	Body    []byte   // of the last request
	Answer  []byte   // of the last request: body or stream, as it came
	Prompt  int      // tokens of the last prompt, by the vendor's report

	Socket  bool // speak Responses over a WebSocket, and send only what is new
	Chained bool // of Responses: have the vendor store the answers, and send only what is new

	memory   *memory
	conn     *websocket.Conn
	previous string // the response that the next request continues; "" for none
	known    int    // length of the history up to its end
}

// ErrRefused is the error of an answer that is none: a status other than 200, or an error in the stream.
var ErrRefused = errors.New("refused")

// ErrIncomplete is the error of a stream without its last event.
var ErrIncomplete = errors.New("the stream has no end")

// Say sends a message of the user and plays until the model has no more calls. It returns the last text.
func (c *Client) Say(ctx context.Context, message string) (string, error) {
	switch c.API {
	case Messages:
		c.History = append(c.History, object{"role": "user", "content": []any{object{"type": "text", "text": message}}})
	case Gemini:
		c.History = append(c.History, object{"role": "user", "parts": []any{object{"text": message}}})
	case Converse: // users and the assistant take turns
		block := object{"text": message}
		if n := len(c.History) - 1; n >= 0 && c.History[n]["role"] == "user" {
			c.History[n] = with(c.History[n], "content", append(slices.Clone(anys(c.History[n]["content"])), block))
		} else {
			c.History = append(c.History, object{"role": "user", "content": []any{block}})
		}
	case Chat, Responses:
		c.History = append(c.History, object{"role": "user", "content": message})
	}
	for {
		answer, calls, err := c.Step(ctx)
		if err != nil || !calls {
			return answer, err
		}
	}
}

// Step sends the history once and adds the answer and the results of its calls to it.
func (c *Client) Step(ctx context.Context) (answer string, calls bool, err error) {
	if c.memory == nil {
		c.memory = newMemory()
	}
	body := c.request()
	maps.Copy(body, c.More)
	c.Body = c.memory.encode(make([]byte, 0, len(c.Body)*9/8), body)
	path, header := c.path()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(c.Body))
	if err != nil {
		return "", false, err
	}
	maps.Copy(req.Header, c.Header)
	set := func(name, value string) {
		if req.Header.Get(name) == "" && value != "" {
			req.Header.Set(name, value)
		}
	}
	set("Content-Type", "application/json")
	for name, value := range header {
		set(name, value)
	}
	set("X-Claude-Code-Agent-Id", c.Agent)
	if c.API == Messages {
		set("Anthropic-Version", "2023-06-01")
		set("X-Claude-Code-Session-Id", c.Session)
		if header == nil {
			set("X-Api-Key", "dummy")
		}
	} else {
		set("Session-Id", c.Session)
		if header == nil {
			set("Authorization", "Bearer dummy")
		}
	}
	if c.Socket {
		c.Answer, err = c.exchange(ctx, req.Header, c.request())
	} else {
		c.Answer, err = c.post(req)
	}
	if err != nil {
		return "", false, err
	}
	read := c.read
	if c.Socket || c.Stream {
		read = c.assemble
	}
	items, err := read(c.Answer)
	if err != nil {
		return "", false, err
	}
	c.known = len(c.History) + len(items)
	answer, calls = c.remember(items)
	return answer, calls, nil
}

// post sends a request over HTTP.
func (c *Client) post(req *http.Request) ([]byte, error) {
	res, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: %d %s", ErrRefused, res.StatusCode, body)
	}
	return body, err
}

// request is the next body.
func (c *Client) request() object {
	schema := object{"type": "object", "properties": object{"command": object{"type": "string"}}, "required": []any{"command"}}
	system := firstOf(c.System, "You are an agent. Use the tool.")
	o := object{"model": c.Model, "stream": c.Stream}
	switch c.API {
	case Gemini:
		return c.geminiRequest(system, schema)
	case Converse:
		return c.converseRequest(system, schema)
	case Messages:
		o["max_tokens"] = 8192
		o["tools"] = []any{object{"name": "Bash", "description": "Run a command.", "input_schema": schema}}
		block := object{"type": "text", "text": system}
		if o["system"] = []any{block}; !c.Unmarked {
			block["cache_control"] = object{"type": "ephemeral"}
		}
		o["messages"] = c.marked()
		if c.Cloud == Vertex {
			delete(o, "model")
			o["anthropic_version"] = "vertex-2023-10-16"
		}
		if c.Cloud == Bedrock {
			delete(o, "model")
			delete(o, "stream")
			o["anthropic_version"] = "bedrock-2023-05-31"
		}
		switch c.Thinking {
		case "adaptive":
			o["thinking"] = object{"type": "adaptive"}
		case "enabled":
			o["thinking"] = object{"type": "enabled", "budget_tokens": 1024}
		}
	case Chat:
		o["messages"] = append([]object{{"role": "system", "content": system}}, c.History...)
		o["tools"] = []any{object{"type": "function", "function": object{"name": "bash", "parameters": schema}}}
		if c.Stream {
			o["stream_options"] = object{"include_usage": true}
		}
	case Responses:
		o["instructions"], o["input"], o["store"] = system, c.History, c.Chained
		if (c.Chained || c.Socket) && c.previous != "" && c.known <= len(c.History) {
			o["previous_response_id"], o["input"] = c.previous, c.History[c.known:]
		}
		o["tools"] = []any{object{"type": "function", "name": "shell", "parameters": schema, "strict": false}}
		if c.Thinking != "" {
			o["reasoning"], o["include"] = object{"effort": "medium", "summary": "auto"}, []any{"reasoning.encrypted_content"}
		}
		if c.Session != "" {
			o["prompt_cache_key"] = c.Session
		}
	}
	tools, _ := o["tools"].([]any)
	for _, name := range c.Tools {
		more := object{"name": name, "input_schema": object{"type": "object"}}
		switch c.API {
		case Messages, Gemini, Converse:
		case Chat:
			more = object{"type": "function", "function": object{"name": name, "parameters": object{"type": "object"}}}
		case Responses:
			more = object{"type": "function", "name": name, "parameters": object{"type": "object"}, "strict": false}
		}
		tools = append(tools, more)
	}
	o["tools"] = tools
	return o
}

// marked returns the history with a cache marker on the last block.
func (c *Client) marked() []object {
	out := append([]object(nil), c.History...)
	if n := len(out); n > 0 && !c.Unmarked {
		if blocks, _ := out[n-1]["content"].([]any); len(blocks) > 0 {
			last, _ := blocks[len(blocks)-1].(object)
			blocks = append(append([]any(nil), blocks[:len(blocks)-1]...), with(last, "cache_control", object{"type": "ephemeral"}))
			out[n-1] = with(out[n-1], "content", blocks)
		}
	}
	return out
}

func decodeObject(data []byte) object {
	var o object
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&o) != nil {
		return object{}
	}
	return o
}

// read returns a body's additions to the history.
func (c *Client) read(body []byte) ([]object, error) {
	o := decodeObject(body)
	c.usage(o)
	switch c.API {
	case Messages:
		return []object{{"role": "assistant", "content": o["content"]}}, nil
	case Chat:
		choices, _ := o["choices"].([]any)
		if len(choices) == 0 {
			return nil, fmt.Errorf("%w: no choices: %s", ErrRefused, body)
		}
		return []object{obj(obj(choices[0])["message"])}, nil
	case Gemini:
		return c.geminiContent([]object{o})
	case Converse:
		return []object{obj(obj(o["output"])["message"])}, nil
	case Responses:
	}
	return objects(o["output"]), nil
}

func (c *Client) usage(o object) {
	if c.API == Responses {
		c.previous = text(o["id"])
	}
	u, ok := o["usage"].(object)
	if !ok {
		return
	}
	c.Prompt = 0
	for _, name := range []string{"input_tokens", "prompt_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"} {
		if n, ok := u[name].(json.Number); ok {
			i, _ := n.Int64()
			c.Prompt += int(i)
		}
	}
}

func objects(v any) []object {
	return plain.Each(anys(v), obj)
}

// assemble returns a stream's additions to the history.
func (c *Client) assemble(stream []byte) ([]object, error) {
	switch c.API {
	case Gemini:
		return c.geminiStream(stream)
	case Converse:
		return c.converseStream(stream)
	case Messages, Chat, Responses:
	}
	if c.Cloud == Bedrock {
		var err error
		if _, stream, err = unframed(c.API, stream); err != nil {
			return nil, err
		}
	}
	var content []any
	message, ended := object{"role": "assistant"}, false
	var items []object
	for part := range strings.SplitSeq(string(stream), "\n\n") {
		_, data, _ := strings.Cut(part, "data: ")
		if data == "[DONE]" {
			ended = true
			continue
		}
		if data == "" {
			continue
		}
		e := decodeObject([]byte(data))
		switch kind := text(e["type"]); {
		case kind == "error" || kind == "response.failed" || e["error"] != nil:
			return nil, fmt.Errorf("%w: %s", ErrRefused, data)
		case kind == "message_start":
			c.usage(obj(e["message"]))
		case kind == "content_block_start":
			content = append(content, e["content_block"])
		case kind == "content_block_delta":
			block, _ := content[len(content)-1].(object)
			delta, _ := e["delta"].(object)
			for _, field := range []string{"text", "thinking", "signature", "partial_json"} {
				if s, ok := delta[field]; ok {
					block[field] = text(block[field]) + text(s)
				}
			}
		case kind == "content_block_stop":
			block, _ := content[len(content)-1].(object)
			if s, ok := block["partial_json"]; ok {
				block["input"] = decodeObject([]byte(text(s)))
				delete(block, "partial_json")
			}
		case kind == "message_stop" || kind == "response.completed":
			ended = true
			c.usage(obj(e["response"]))
		case kind == "response.output_item.done":
			items = append(items, obj(e["item"]))
		case c.API == Chat:
			c.usage(e)
			for _, choice := range objects(e["choices"]) {
				grow(message, obj(choice["delta"]))
			}
		}
	}
	switch {
	case !ended:
		return nil, ErrIncomplete
	case c.API == Messages:
		return []object{{"role": "assistant", "content": content}}, nil
	case c.API == Chat:
		return []object{message}, nil
	}
	return items, nil
}

// grow adds a delta of Chat Completions to a message.
func grow(message, delta object) {
	if s := text(delta["content"]); s != "" {
		message["content"] = text(message["content"]) + s
	}
	calls, _ := message["tool_calls"].([]any)
	for _, d := range objects(delta["tool_calls"]) {
		more, _ := d["function"].(object)
		if d["id"] != nil {
			calls = append(calls, object{"id": d["id"], "type": "function", "function": more})
			continue
		}
		f, _ := obj(calls[len(calls)-1])["function"].(object)
		f["arguments"] = text(f["arguments"]) + text(more["arguments"])
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
}

// remember adds an answer and the results of its calls to the history.
func (c *Client) remember(items []object) (answer string, calls bool) {
	c.History = append(c.History, items...)
	run := c.Run
	if run == nil {
		run = Output
	}
	command := func(arguments any) string {
		o, ok := arguments.(object)
		if !ok {
			o = decodeObject([]byte(text(arguments)))
		}
		return run(text(o["command"]))
	}
	var results []any
	for _, item := range items {
		switch {
		case c.API == Messages:
			for _, b := range objects(item["content"]) {
				answer += text(b["text"])
				if b["type"] == "tool_use" {
					results = append(results, object{"type": "tool_result", "tool_use_id": b["id"], "content": command(b["input"])})
				}
			}
		case c.API == Converse:
			for _, b := range objects(item["content"]) {
				answer += text(b["text"])
				if call, ok := b["toolUse"].(object); ok {
					output := object{"toolUseId": call["toolUseId"], "content": []any{object{"text": command(call["input"])}}, "status": "success"}
					results = append(results, object{"toolResult": output})
				}
			}
		case c.API == Gemini:
			for _, part := range objects(item["parts"]) {
				answer += text(part["text"])
				if call, ok := part["functionCall"].(object); ok {
					response := object{"output": command(call["args"])}
					results = append(results, object{"functionResponse": object{"id": call["id"], "name": call["name"], "response": response}})
				}
			}
		case c.API == Chat:
			answer += text(item["content"])
			for _, call := range objects(item["tool_calls"]) {
				f, _ := call["function"].(object)
				c.History = append(c.History, object{"role": "tool", "tool_call_id": call["id"], "content": command(f["arguments"])})
				calls = true
			}
		case item["type"] == "function_call":
			c.History = append(c.History, object{"type": "function_call_output", "call_id": item["call_id"], "output": command(item["arguments"])})
			calls = true
		case item["type"] == "message":
			answer += plainText(item["content"])
		}
	}
	if len(results) > 0 {
		field := "content"
		if c.API == Gemini {
			field = "parts"
		}
		c.History = append(c.History, object{"role": "user", field: results})
		calls = true
	}
	return answer, calls
}
