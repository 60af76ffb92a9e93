package upstream

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// A prompt is a request in the order in which a model reads it.
type prompt struct {
	api      API
	doc      object
	model    string
	stream   bool
	limit    int    // tokens of the answer
	thinking string // "", "adaptive", "enabled"
	omitted  bool   // the text of thinking is not shown
	count    bool   // only counted
	tools    []tool
	blocks   []block
	markers  []marker
	size     int    // bytes
	beta     string // the header anthropic-beta
	session  string
	agent    string
	tenant   string
	first    string // text of the first message of the user
	last     string // text of the last message if it is the user's, "" if it only has results
	known    string // the conversation that the calls' identifiers name
	format   object // the schema that the answer must follow
	forced   bool   // a tool, or none, is demanded
	memory   *memory
	raw      []byte // of the last block
	sse      bool   // the stream is one of events
	cloud    Cloud
}

// A block is a part of the prompt: a tool, a block of the system prompt or of a message, an item.
type block struct {
	where   string // for example messages[3].content[0]
	role    string
	kind    string
	value   object
	message int // index of the message, -1 before the first
	end     int // bytes of the prompt up to its end
	sum     [16]byte
	bound   [16]byte // of everything up to its end but thinking
	mark    time.Duration
}

// A marker is a cache_control.
type marker struct {
	where string
	ttl   time.Duration
	on    string // kind of the block
	text  string
}

type tool struct {
	name, kind string
	namespace  string // of OpenAI: the tools of a server in one entry
	schema     object
}

const imageBytes = 6400

var sealed = regexp.MustCompile(`_([0-9a-f]{12})_\d+_\d+`)

// parse reads a request. It refuses only meaningless requests; check does the rest.
func parse(r *Record, body []byte, h http.Header, m *memory) (*prompt, *refusal) {
	api := r.API
	p := &prompt{api: api, memory: m, cloud: r.Cloud}
	var err error
	if p.doc, err = m.decode(body); err != nil {
		return nil, invalid("json", "The request body is not valid JSON: "+err.Error())
	}
	p.model, _ = p.doc["model"].(string)
	if p.stream, _ = p.doc["stream"].(bool); r.route.model != "" {
		p.model = r.route.model
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if n, ok := p.doc[name].(json.Number); ok {
			i, _ := n.Int64()
			p.limit = int(i)
		}
	}
	p.identify(h)
	if p.cloud == Bedrock {
		p.stream = r.route.stream
		for _, v := range anys(p.doc["anthropic_beta"]) {
			p.beta += "," + text(v)
		}
	}
	if api != Gemini && api != Converse {
		p.readTools()
	}
	var f *refusal
	switch api {
	case Messages:
		f = p.readMessages()
	case Chat:
		f = p.readChat()
	case Responses:
		f = p.readResponses()
	case Gemini:
		p.stream, p.sse = r.route.stream, strings.Contains(r.Query, "alt=sse")
		f = p.readGemini()
	case Converse:
		f = p.readConverse()
	}
	return p, f
}

// identify finds the session in the places where agents put it.
func (p *prompt) identify(h http.Header) {
	credential := h.Get("Authorization")
	if strings.HasPrefix(credential, "AWS4-") { // each request has another signature
		credential, _, _ = strings.Cut(credential, "/")
	}
	p.tenant = h.Get("X-Api-Key") + credential + h.Get("X-Goog-Api-Key")
	p.beta = strings.Join(h.Values("Anthropic-Beta"), ",")
	p.agent = h.Get("X-Claude-Code-Agent-Id")
	for _, name := range []string{"X-Claude-Code-Session-Id", "Thread-Id", "Session-Id", "Session_id", "X-Session-Affinity", "X-Opencode-Session", "X-Session-Id"} {
		p.session = cmp.Or(p.session, h.Get(name))
	}
	if id, _ := obj(p.doc["metadata"])["user_id"].(string); p.session == "" && id != "" {
		var user struct {
			Session string `json:"session_id"`
		}
		if json.Unmarshal([]byte(id), &user) == nil {
			p.session = user.Session
		} else if _, after, ok := strings.Cut(id, "_session_"); ok {
			p.session = after
		}
	}
	p.session = cmp.Or(p.session, text(p.doc["prompt_cache_key"]))
}

func (p *prompt) readTools() {
	for i, o := range objects(p.doc["tools"]) {
		p.readTool(o)
		if o["defer_loading"] != true { // the model sees it where a result refers to it
			p.add(fmt.Sprintf("tools[%d]", i), "tools", -1, o)
		}
	}
	for _, v := range anys(p.doc["input"]) { // Codex' code mode, and tools that it has searched for
		if o, _ := v.(object); o["type"] == "additional_tools" || o["type"] == "tool_search_output" {
			for _, o := range objects(o["tools"]) {
				p.readTool(o)
			}
		}
	}
	switch choice := p.doc["tool_choice"].(type) {
	case string:
		p.forced = choice == "none" || choice == "required"
	case object:
		p.forced = text(choice["type"]) != "auto" && choice != nil
	}
}

func (p *prompt) readTool(o object) {
	t := tool{kind: text(o["type"]), name: text(o["name"])}
	t.schema, _ = o["input_schema"].(object)
	if t.schema == nil {
		t.schema, _ = o["parameters"].(object)
	}
	if f, ok := o["function"].(object); ok {
		t.name = text(f["name"])
		t.schema, _ = f["parameters"].(object)
	}
	t.name = cmp.Or(t.name, t.kind)
	p.tools = append(p.tools, t)
	for _, o := range objects(o["tools"]) {
		one := tool{kind: text(o["type"]), name: text(o["name"]), namespace: t.name}
		one.schema, _ = o["parameters"].(object)
		p.tools = append(p.tools, one)
	}
}

// add appends a block. Its cache markers are noted and taken out.
func (p *prompt) add(where, role string, message int, o object) *block {
	b := block{where: where, role: role, kind: text(o["type"]), message: message, value: o}
	plain, extra := o, 0
	if c, ok := o["cache_control"]; ok {
		plain = without(o, "cache_control")
		b.mark = p.mark(where, c, b.kind, text(o["text"]))
	}
	if b.kind == "tool_result" {
		switch c := o["content"].(type) {
		case string: // the same prompt as one block of text
			plain = with(plain, "content", []any{object{"type": "text", "text": c}})
		case []any:
			inner := make([]any, len(c))
			for i, v := range c {
				inner[i] = v
				if io, ok := v.(object); ok && io["cache_control"] != nil {
					inner[i] = without(io, "cache_control")
					b.mark = max(b.mark, p.mark(fmt.Sprintf("%s.content[%d]", where, i), io["cache_control"], text(io["type"]), text(io["text"])))
				}
				if io, ok := v.(object); ok {
					extra += image(io)
				}
			}
			plain = with(plain, "content", inner)
		}
	}
	switch b.kind {
	case "message", "function_call", "custom_tool_call", "reasoning": // of Responses: the model does not see its IDs
		if o["id"] != nil {
			plain = without(without(plain, "id"), "status")
		}
	}
	extra += image(o)
	raw := p.memory.encode(p.raw[:0], plain)
	p.raw = raw
	p.size += len(raw) + extra
	b.end = p.size
	var before block
	if n := len(p.blocks); n > 0 {
		before = p.blocks[n-1]
	}
	b.sum = roll(before.sum, role, raw)
	b.bound = before.bound
	if !b.thinking() {
		b.bound = roll(before.bound, role, raw)
	}
	p.blocks = append(p.blocks, b)
	return &p.blocks[len(p.blocks)-1]
}

func (b *block) thinking() bool { return b.kind == "thinking" || b.kind == "redacted_thinking" }

// image returns the difference between the counted size of an image and the size of its data.
func image(o object) int {
	data := ""
	for _, v := range anys(o["images"]) {
		data += text(v)
	}
	if inline, ok := o["inlineData"].(object); ok {
		data = text(inline["data"])
	}
	if source, ok := o["source"].(object); ok {
		data = text(source["data"])
	}
	for _, v := range []any{o["image_url"], o["url"]} {
		if s := text(v); strings.HasPrefix(s, "data:") {
			data = s
		}
		if inner, ok := v.(object); ok && strings.HasPrefix(text(inner["url"]), "data:") {
			data = text(inner["url"])
		}
	}
	if data == "" {
		return 0
	}
	return imageBytes - len(data)
}

func (p *prompt) mark(where string, v any, kind, content string) time.Duration {
	o, ok := v.(object)
	if !ok {
		return 0 // null
	}
	ttl := 5 * time.Minute
	if text(o["ttl"]) == "1h" {
		ttl = time.Hour
	}
	p.markers = append(p.markers, marker{where, ttl, kind, content})
	return ttl
}

func roll(before [16]byte, role string, raw []byte) (sum [16]byte) {
	h := sha256.New()
	h.Write(before[:])
	h.Write([]byte(role + "\x00"))
	h.Write(raw)
	copy(sum[:], h.Sum(nil))
	return sum
}

// text returns v if it is a string.
func text(v any) string {
	s, _ := v.(string)
	return s
}

func without(o object, key string) object {
	out := object{}
	for k, v := range o {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func with(o object, key string, value any) object {
	out := without(o, key)
	out[key] = value
	return out
}

// readMessages reads the prompt of Anthropic's API.
func (p *prompt) readMessages() *refusal {
	if t, ok := p.doc["thinking"].(object); ok {
		if p.thinking = text(t["type"]); p.thinking == "disabled" {
			p.thinking = ""
		}
		p.omitted = text(t["display"]) == "omitted"
	}
	if c, ok := p.doc["output_config"].(object); ok {
		if f, ok := c["format"].(object); ok {
			p.format, _ = f["schema"].(object)
			p.forced = true
		}
	}
	if s, ok := p.doc["system"]; ok {
		blocks, f := contentOf(s, "system")
		if f != nil {
			return f
		}
		for i, o := range blocks {
			p.add(fmt.Sprintf("system[%d]", i), "system", -1, o)
		}
	}
	list, ok := p.doc["messages"].([]any)
	if !ok || len(list) == 0 {
		return invalid("messages", "messages: at least one message is required")
	}
	for i, m := range objects(list) {
		role := text(m["role"])
		if role != "user" && role != "assistant" && role != "system" {
			return invalid("role", fmt.Sprintf("messages: Unexpected role %q. Allowed roles are \"user\" or \"assistant\"", role))
		}
		blocks, f := contentOf(m["content"], fmt.Sprintf("messages.%d.content", i))
		if f != nil {
			return f
		}
		_, tunes := m["output_config"].(object) // Claude Code changes the effort of a resumed conversation by a message without text
		if len(blocks) == 0 && (role != "system" || !tunes) {
			return invalid("text", fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i))
		}
		if role != "system" { // Claude Code has one after the user's last message, in some turns
			p.last = ""
		}
		for j, o := range blocks {
			b := p.add(fmt.Sprintf("messages[%d].content[%d]", i, j), role, i, o)
			switch {
			case b.kind == "text" && role == "user":
				p.last += text(o["text"])
				p.first = firstOf(p.first, text(o["text"]))
			case b.kind == "tool_use":
				p.name(text(o["id"]))
			}
		}
	}
	if c, ok := p.doc["cache_control"]; ok && c != nil { // automatic: the last block that can have one
		p.blocks[len(p.blocks)-1].mark = p.mark("cache_control", c, "", "automatic")
	}
	return nil
}

// contentOf returns the blocks of a string or an array.
func contentOf(v any, where string) ([]object, *refusal) {
	switch v := v.(type) {
	case string:
		return []object{{"type": "text", "text": v}}, nil
	case []any:
		out := make([]object, len(v))
		for i, b := range v {
			o, ok := b.(object)
			if !ok {
				return nil, invalid("content", fmt.Sprintf("%s.%d: Input should be an object", where, i))
			}
			out[i] = o
		}
		return out, nil
	}
	return nil, invalid("content", where+": Input should be a valid string or array")
}

// name notes the conversation that an identifier of this vendor names.
func (p *prompt) name(id string) {
	if m := sealed.FindStringSubmatch(id); m != nil {
		p.known = m[1]
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// readChat reads the prompt of OpenAI's Chat Completions.
func (p *prompt) readChat() *refusal {
	if f, ok := p.doc["response_format"].(object); ok && text(f["type"]) != "text" {
		p.forced = true
		if s, ok := f["json_schema"].(object); ok {
			p.format, _ = s["schema"].(object)
		}
	}
	list, ok := p.doc["messages"].([]any)
	if !ok || len(list) == 0 {
		return invalid("messages", "Invalid type for 'messages': expected an array of objects with at least one element.")
	}
	for i, m := range objects(list) {
		p.add(fmt.Sprintf("messages[%d]", i), text(m["role"]), i, m)
		p.last = ""
		if text(m["role"]) == "user" {
			p.last = plainText(m["content"])
			p.first = firstOf(p.first, p.last)
		}
		for _, c := range objects(m["tool_calls"]) {
			p.name(text(c["id"]))
		}
	}
	return nil
}

// readResponses reads the prompt of OpenAI's Responses.
func (p *prompt) readResponses() *refusal {
	if f := obj(obj(p.doc["text"])["format"]); f != nil && text(f["type"]) != "text" {
		p.forced = true
		p.format, _ = f["schema"].(object)
	}
	if r, ok := p.doc["reasoning"].(object); ok && text(r["effort"]) != "none" {
		p.thinking = "adaptive"
		p.omitted = r["summary"] == nil
	}
	if s := text(p.doc["instructions"]); s != "" {
		p.add("instructions", "system", -1, object{"text": s})
	}
	switch input := p.doc["input"].(type) {
	case string:
		p.add("input", "user", 0, object{"type": "message", "role": "user", "content": input})
		p.first, p.last = input, input
	case []any:
		for i, o := range objects(input) {
			role := text(o["role"])
			b := p.add(fmt.Sprintf("input[%d]", i), role, i, o)
			b.kind = cmp.Or(b.kind, "message")
			if p.last = ""; role == "user" {
				p.last = plainText(o["content"])
				p.first = firstOf(p.first, p.last)
			}
			p.name(text(o["call_id"]))
		}
	default:
		return invalid("messages", "Missing required parameter: 'input'.")
	}
	return nil
}

// plainText joins the texts of a content.
func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	for _, o := range objects(v) {
		b.WriteString(text(o["text"]))
	}
	return b.String()
}

// obj returns v if it is an object.
func obj(v any) object {
	o, _ := v.(object)
	return o
}
