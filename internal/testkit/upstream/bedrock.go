package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/condensehq/condense/internal/plain"
)

// Members of the types of the Converse API, from the Smithy model bedrock-runtime-2023-09-30. A union has exactly one.
var converseFields = map[string][]string{
	"request": {
		"messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields", "promptVariables",
		"additionalModelResponseFieldPaths", "requestMetadata", "performanceConfig", "serviceTier", "outputConfig",
	},
	"message": {"role", "content"},
	"block": {
		"text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent", "cachePoint", "reasoningContent",
		"citationsContent", "searchResult",
	},
	"system":     {"text", "guardContent", "cachePoint"},
	"tool":       {"toolSpec", "systemTool", "cachePoint"},
	"result":     {"json", "text", "image", "document", "video", "searchResult"},
	"toolUse":    {"toolUseId", "name", "input", "type"},
	"toolResult": {"toolUseId", "content", "status", "type"},
	"reasoning":  {"reasoningText", "redactedContent"},
}

var (
	converseID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	imageFormats = []string{"png", "jpeg", "gif", "webp"}
)

// userFirst is the text of a refusal.
const userFirst = "A conversation must start with a user message. Try again with a conversation that starts with a user message."

// maxBody is the largest body of InvokeModel, in bytes: Body in the Smithy model.
const maxBody = 25_000_000

// checkMembers refuses unknown members of an object.
func checkMembers(kind, where string, o object) *refusal {
	for name := range o {
		if !slices.Contains(converseFields[kind], name) {
			known := strings.Join(converseFields[kind], ", ")
			return invalid("field", fmt.Sprintf("Unknown parameter in %s: %q, must be one of: %s", where, name, known))
		}
	}
	return nil
}

// union returns the only member of an object.
func union(kind, where string, v any) (name string, value object, f *refusal) {
	o, ok := v.(object)
	if !ok || len(o) != 1 {
		return "", nil, invalid("field", fmt.Sprintf("Invalid number of parameters set for tagged union structure %s. "+
			"Can only set one of the following keys: %s.", where, strings.Join(converseFields[kind], ", ")))
	}
	if f := checkMembers(kind, where, o); f != nil {
		return "", nil, f
	}
	for name, v := range o {
		value, _ = v.(object)
		return name, value, nil
	}
	return "", nil, nil
}

// readConverse reads the prompt of the Converse API. Blocks become blocks of Anthropic's API, which the service makes of
// them, too; a cache point marks the block before it.
func (p *prompt) readConverse() *refusal {
	if f := checkMembers("request", "input", p.doc); f != nil {
		return f
	}
	if n, ok := obj(p.doc["inferenceConfig"])["maxTokens"].(json.Number); ok {
		i, _ := n.Int64()
		p.limit = int(i)
	}
	if t, ok := obj(p.doc["additionalModelRequestFields"])["thinking"].(object); ok && text(t["type"]) != "disabled" {
		p.thinking = text(t["type"])
	}
	tools, _ := p.doc["toolConfig"].(object)
	if f := p.readPointed("tool", "tools", "toolConfig.tools", -1, anys(tools["tools"])); f != nil {
		return f
	}
	choice, _ := tools["toolChoice"].(object)
	p.forced = choice["any"] != nil || choice["tool"] != nil
	if f := p.readPointed("system", "system", "system", -1, anys(p.doc["system"])); f != nil {
		return f
	}
	list := anys(p.doc["messages"])
	if len(list) == 0 {
		return invalid("messages", userFirst)
	}
	role := ""
	for i, m := range objects(list) {
		where := fmt.Sprintf("messages.%d", i)
		if f := checkMembers("message", where, m); f != nil {
			return f
		}
		was := role
		if role = text(m["role"]); role != "user" && role != "assistant" {
			return invalid("role", fmt.Sprintf("1 validation error detected: Value '%s' at 'messages.%d.member.role' failed to satisfy "+
				"constraint: Member must satisfy enum value set: [user, assistant]", role, i+1))
		}
		content := anys(m["content"])
		switch {
		case i == 0 && role != "user":
			return invalid("role", userFirst)
		case role == was:
			return invalid("role", "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "+
				"between user and assistant roles and try again.")
		case len(content) == 0:
			return invalid("text", fmt.Sprintf("The content field in the Message object at %s is empty. Add a ContentBlock object to the "+
				"content field and try again.", where))
		}
		p.last = ""
		if f := p.readPointed("block", role, where+".content", i, content); f != nil {
			return f
		}
	}
	return nil
}

// readPointed adds blocks of a kind, each with the cache point after it.
func (p *prompt) readPointed(kind, role, where string, message int, list []any) *refusal {
	for i := 0; i < len(list); i++ {
		at := fmt.Sprintf("%s.%d", where, i)
		name, value, f := union(kind, at, list[i])
		if f != nil {
			return f
		}
		if name == "cachePoint" {
			return invalid("markers", at+": a cachePoint must follow a block that can be cached")
		}
		o, f := p.converseBlock(at, name, value, obj(list[i]))
		if f != nil {
			return f
		}
		if i+1 < len(list) {
			if next, ok := list[i+1].(object); ok && next["cachePoint"] != nil {
				point, _ := next["cachePoint"].(object)
				ttl := firstOf(text(point["ttl"]), "5m")
				if len(next) != 1 || text(point["type"]) != "default" || ttl != "5m" && ttl != "1h" {
					return invalid("markers", at+": invalid cachePoint")
				}
				o["cache_control"] = with(point, "type", "ephemeral")
				i++
			}
		}
		p.add(at, role, message, o)
		if s := text(o["text"]); role == "user" && s != "" {
			p.last += s
			p.first = firstOf(p.first, s)
		}
	}
	return nil
}

// converseBlock checks a block, and returns it as one of Anthropic's API.
func (p *prompt) converseBlock(where, name string, value, raw object) (object, *refusal) {
	switch name {
	case "text":
		s, _ := raw["text"].(string)
		if strings.TrimSpace(s) == "" {
			return nil, invalid("text", fmt.Sprintf("The text field in the ContentBlock object at %s is blank. Add text to the text field, "+
				"and try again.", where))
		}
		return object{"type": "text", "text": s}, nil
	case "toolSpec":
		schema, _ := value["inputSchema"].(object)
		t := tool{name: text(value["name"])}
		if t.schema, _ = schema["json"].(object); t.schema == nil || !converseID.MatchString(t.name) {
			return nil, invalid("field", where+": toolSpec needs a name and inputSchema.json")
		}
		p.tools = append(p.tools, t)
		return with(value, "type", "custom"), nil
	case "toolUse":
		if f := checkMembers(name, where, value); f != nil {
			return nil, f
		}
		id := text(value["toolUseId"])
		if !converseID.MatchString(id) || !converseID.MatchString(text(value["name"])) || value["input"] == nil {
			return nil, invalid("field", fmt.Sprintf("1 validation error detected: Value '%s' at '%s.toolUse.toolUseId' failed to satisfy "+
				"constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+", id, where))
		}
		if p.doc["toolConfig"] == nil {
			return nil, invalid("field", "The toolConfig field must be defined when using toolUse and toolResult content blocks.")
		}
		p.name(id)
		return object{"type": "tool_use", "id": id, "name": value["name"], "input": value["input"]}, nil
	case "toolResult":
		return p.converseResult(where, value)
	case "image":
		data := text(obj(value["source"])["bytes"])
		if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" || !slices.Contains(imageFormats, text(value["format"])) {
			return nil, invalid("field", where+".image: the format or the bytes are invalid")
		}
		return object{"type": "image", "source": object{"type": "base64", "media_type": "image/" + text(value["format"]), "data": data}}, nil
	case "reasoningContent":
		kind, inner, f := union("reasoning", where+".reasoningContent", value)
		if f != nil {
			return nil, f
		}
		if kind == "redactedContent" {
			return object{"type": "redacted_thinking", "data": value[kind]}, nil
		}
		return object{"type": "thinking", "thinking": inner["text"], "signature": inner["signature"]}, nil
	}
	return with(value, "type", name), nil
}

func (p *prompt) converseResult(where string, value object) (object, *refusal) {
	if f := checkMembers("toolResult", where, value); f != nil {
		return nil, f
	}
	content, ok := value["content"].([]any)
	status := text(value["status"])
	if !ok || !converseID.MatchString(text(value["toolUseId"])) || status != "" && status != "success" && status != "error" {
		return nil, invalid("field", where+".toolResult: toolUseId, content or status is missing or invalid")
	}
	inner := []any{}
	for i, v := range content {
		at := fmt.Sprintf("%s.toolResult.content.%d", where, i)
		name, one, f := union("result", at, v)
		if f != nil {
			return nil, f
		}
		raw, _ := v.(object)
		b := object{"type": "text", "text": string(encode(raw["json"]))}
		if name != "json" {
			if b, f = p.converseBlock(at, name, one, raw); f != nil {
				return nil, f
			}
		}
		inner = append(inner, b)
	}
	o := object{"type": "tool_result", "tool_use_id": value["toolUseId"], "content": inner}
	if status == "error" {
		o["is_error"] = true
	}
	return o, nil
}

// checkBedrock returns the rule of Amazon Bedrock that a request breaks.
func (v *Vendor) checkBedrock(p *prompt, r *Record) *refusal {
	if f := v.checkSignature(r); f != nil {
		return f
	}
	switch {
	case len(r.Body) > maxBody:
		return &refusal{
			status: http.StatusRequestEntityTooLarge, rule: "size",
			text: "1 validation error detected: Value at 'body' failed to satisfy constraint: " +
				"Member must have length less than or equal to 25000000",
		}
	case r.API == Converse:
	case !cloudVersion.MatchString(text(p.doc["anthropic_version"])):
		return invalid("version", "anthropic_version: Field required")
	case p.doc["model"] != nil || p.doc["stream"] != nil:
		return invalid("field", "Malformed input request: #: extraneous key [model] is not permitted, please reformat your input and try again.")
	}
	return nil
}

// amazonTypes are the types of answers, by whether they are streams.
var amazonTypes = map[bool]string{false: "application/json", true: "application/vnd.amazon.eventstream"}

// amazonKinds are the types of errors, by status.
var amazonKinds = map[int]string{
	400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException", 413: "ValidationException",
	429: "ThrottlingException", 503: "ServiceUnavailableException",
}

// frame encodes an event by the library of the AWS SDK.
func frame(kind string, headers map[string]string, payload []byte) []byte {
	m := eventstream.Message{Payload: payload}
	m.Headers.Set(":message-type", eventstream.StringValue(kind))
	m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
	for name, value := range headers {
		m.Headers.Set(name, eventstream.StringValue(value))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic("upstream: " + err.Error()) // a fault of this package
	}
	return b.Bytes()
}

// chunk is an event of Anthropic's API in a stream of InvokeModel.
func chunk(event any) []byte {
	data := base64.StdEncoding.EncodeToString(encode(event))
	return frame("event", map[string]string{":event-type": "chunk"}, encode(object{"bytes": data, "p": "abcdefgh"}))
}

// conversed is the body of an answer of the Converse API.
func (a *answer) conversed(u usage) object {
	var content []any
	for _, v := range a.content() {
		switch b, _ := v.(object); b["type"] {
		case "thinking":
			content = append(content, object{"reasoningContent": object{"reasoningText": object{"text": a.thinking, "signature": a.seal}}})
		case "text":
			content = append(content, object{"text": b["text"]})
		default:
			content = append(content, object{"toolUse": object{"toolUseId": b["id"], "name": b["name"], "input": b["input"]}})
		}
	}
	return object{
		"output": object{"message": object{"role": "assistant", "content": content}}, "stopReason": a.stop, "metrics": object{"latencyMs": 7},
		"usage": a.amazonUsage(u),
	}
}

func (a *answer) amazonUsage(u usage) object {
	return object{
		"inputTokens": u.Prompt - u.Read - u.Write, "outputTokens": a.tokens, "totalTokens": u.Prompt + a.tokens,
		"cacheReadInputTokens": u.Read, "cacheWriteInputTokens": u.Write,
	}
}

// bedrock returns the answer of Amazon Bedrock.
func (a *answer) bedrock(p *prompt, u usage) [][]byte {
	var out [][]byte
	switch {
	case p.api == Converse && !p.stream:
		return [][]byte{encode(a.conversed(u))}
	case p.api == Messages && !p.stream:
		return [][]byte{encode(a.message(p, u))}
	case p.api == Messages:
		out = append(out, plain.Each(a.messageEvents(p, u), func(e event) []byte { return chunk(e.data) })...)
		return out
	}
	add := func(kind string, o object) {
		out = append(out, frame("event", map[string]string{":event-type": kind}, encode(with(o, "p", "abcd"))))
	}
	add("messageStart", object{"role": "assistant"})
	for i, b := range objects(a.content()) {
		delta := func(o object) { add("contentBlockDelta", object{"contentBlockIndex": i, "delta": o}) }
		switch b["type"] {
		case "thinking":
			for _, s := range pieces(a.thinking) {
				delta(object{"reasoningContent": object{"text": s}})
			}
			delta(object{"reasoningContent": object{"signature": a.seal}})
		case "text":
			for _, s := range pieces(a.text) {
				delta(object{"text": s})
			}
		default:
			add("contentBlockStart", object{"contentBlockIndex": i, "start": object{"toolUse": object{"toolUseId": b["id"], "name": b["name"]}}})
			for _, s := range pieces(string(encode(b["input"]))) {
				delta(object{"toolUse": object{"input": s}})
			}
		}
		add("contentBlockStop", object{"contentBlockIndex": i})
	}
	add("messageStop", object{"stopReason": a.stop})
	add("metadata", object{"usage": a.amazonUsage(u), "metrics": object{"latencyMs": 7}})
	return out
}

// converseRequest is the next body of a client.
func (c *Client) converseRequest(system string, schema object) object {
	tools := []any{object{"toolSpec": object{"name": "Bash", "description": "Run a command.", "inputSchema": object{"json": schema}}}}
	for _, name := range c.Tools {
		tools = append(tools, object{"toolSpec": object{"name": name, "inputSchema": object{"json": object{"type": "object"}}}})
	}
	history, prompt := slices.Clone(c.History), []any{object{"text": system}}
	if n := len(history) - 1; n >= 0 && !c.Unmarked {
		point := object{"cachePoint": object{"type": "default"}}
		prompt = append(prompt, point)
		history[n] = with(history[n], "content", append(slices.Clone(anys(history[n]["content"])), point))
	}
	o := object{
		"messages": history, "system": prompt, "toolConfig": object{"tools": tools}, "inferenceConfig": object{"maxTokens": 8192},
	}
	if c.Thinking != "" {
		o["additionalModelRequestFields"] = object{"thinking": object{"type": c.Thinking}}
	}
	return o
}

// unframed returns the events of a binary stream: those of InvokeModel as a stream of Anthropic's API, those of Converse
// with their type.
func unframed(api API, stream []byte) (events []object, text []byte, err error) {
	r, d := bytes.NewReader(stream), eventstream.NewDecoder()
	for {
		m, err := d.Decode(r, nil)
		if errors.Is(err, io.EOF) {
			return events, text, nil
		}
		if err != nil {
			return nil, nil, err
		}
		o := decodeObject(m.Payload)
		if m.Headers.Get(":message-type").String() != "event" {
			return nil, nil, fmt.Errorf("%w: %v %s", ErrRefused, m.Headers.Get(":exception-type"), m.Payload)
		}
		if api == Messages {
			raw, err := base64.StdEncoding.DecodeString(fmt.Sprint(o["bytes"]))
			if err != nil {
				return nil, nil, err
			}
			text = append(append(append(text, "data: "...), raw...), "\n\n"...)
			continue
		}
		o["type"] = m.Headers.Get(":event-type").String()
		events = append(events, o)
	}
}

// converseStream joins the events of a stream to a message.
func (c *Client) converseStream(stream []byte) ([]object, error) {
	events, _, err := unframed(Converse, stream)
	if err != nil {
		return nil, err
	}
	var content []any
	var open object
	ended, input := false, ""
	for _, e := range events {
		delta, _ := e["delta"].(object)
		reasoning, _ := delta["reasoningContent"].(object)
		call, _ := delta["toolUse"].(object)
		switch {
		case e["type"] == "contentBlockStart":
			open, _ = e["start"].(object)
			input = ""
		case delta["text"] != nil:
			if open == nil {
				open = object{}
			}
			open["text"] = text(open["text"]) + text(delta["text"])
		case call != nil:
			input += text(call["input"])
		case reasoning != nil:
			if open == nil {
				open = object{"reasoningContent": object{"reasoningText": object{}}}
			}
			inner, _ := obj(open["reasoningContent"])["reasoningText"].(object)
			for name, s := range reasoning {
				inner[name] = text(inner[name]) + text(s)
			}
		case e["type"] == "contentBlockStop":
			if use, ok := open["toolUse"].(object); ok {
				use["input"] = decodeObject([]byte(input))
			}
			content, open = append(content, open), nil
		case e["type"] == "metadata":
			c.usage(e)
			ended = true
		}
	}
	if !ended {
		return nil, ErrIncomplete
	}
	return []object{{"role": "assistant", "content": content}}, nil
}
