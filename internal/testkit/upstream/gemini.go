package upstream

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// Fields of Google's types, from the discovery document of generativelanguage.googleapis.com (v1beta), by the name that
// it writes. Those with underscores are read, too.
var geminiFields = map[string][]string{
	"request": {
		"model", "contents", "systemInstruction", "tools", "toolConfig",
		"safetySettings", "generationConfig", "cachedContent", "store", "serviceTier", "labels", "generateContentRequest",
	},
	"content": {"role", "parts"},
	"part": {
		"text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode",
		"codeExecutionResult", "thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution",
		"toolCall", "toolResponse",
	},
	"functionCall":     {"id", "name", "args"},
	"functionResponse": {"id", "name", "response", "willContinue", "scheduling", "parts"},
	"inlineData":       {"mimeType", "data", "displayName"},
}

// partData are the fields of a part of which it has exactly one.
var partData = []string{
	"text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse",
}

var underscore = regexp.MustCompile(`_[a-z]`)

// camel returns an object with the names that Google's API writes, or the refusal of an unknown one.
func camel(kind, where string, v any) (object, *refusal) {
	o, ok := v.(object)
	if !ok {
		return nil, invalid("field", fmt.Sprintf("Invalid value at '%s' (type.googleapis.com), %s", where, encode(v)))
	}
	out := object{}
	for name, value := range o {
		long := underscore.ReplaceAllStringFunc(name, func(s string) string { return strings.ToUpper(s[1:]) })
		if !slices.Contains(geminiFields[kind], long) {
			return nil, invalid("field", fmt.Sprintf("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", name, where))
		}
		out[long] = value
	}
	return out, nil
}

// readGemini reads the prompt of Google's generateContent.
func (p *prompt) readGemini() *refusal {
	doc, f := camel("request", "request", p.doc)
	if f != nil {
		return f
	}
	config, _ := doc["generationConfig"].(object)
	if n, ok := config["maxOutputTokens"].(json.Number); ok {
		i, _ := n.Int64()
		p.limit = int(i)
	}
	for _, name := range []string{"responseJsonSchema", "responseSchema"} {
		if s, ok := config[name].(object); ok {
			p.format = s
		}
	}
	p.forced = p.forced || p.format != nil || text(config["responseMimeType"]) == "application/json"
	if strings.Contains(p.model, "gemini-3") {
		p.thinking = "adaptive"
	}
	p.geminiTools(doc["tools"])
	if s, ok := doc["systemInstruction"]; ok {
		o, f := camel("content", "system_instruction", s)
		if f != nil {
			return f
		}
		for i, part := range objects(o["parts"]) {
			p.add(fmt.Sprintf("systemInstruction.parts[%d]", i), "system", -1, part)
		}
	}
	list := anys(doc["contents"])
	if len(list) == 0 {
		return invalid("messages", "* GenerateContentRequest.contents: contents is not specified")
	}
	for i, v := range list {
		content, f := camel("content", fmt.Sprintf("contents[%d]", i), v)
		if f == nil {
			f = p.readContent(i, content)
		}
		if f != nil {
			return f
		}
	}
	return nil
}

func anys(v any) []any {
	list, _ := v.([]any)
	return list
}

func (p *prompt) geminiTools(v any) {
	for i, o := range objects(v) {
		for _, name := range []string{"functionDeclarations", "function_declarations"} {
			for _, d := range objects(o[name]) {
				one := tool{name: text(d["name"])}
				if one.schema, _ = d["parametersJsonSchema"].(object); one.schema == nil {
					one.schema, _ = d["parameters"].(object)
				}
				p.tools = append(p.tools, one)
			}
		}
		p.add(fmt.Sprintf("tools[%d]", i), "tools", -1, o)
	}
}

func (p *prompt) readContent(i int, content object) *refusal {
	role := firstOf(text(content["role"]), "user")
	if role != "user" && role != "model" && role != "function" {
		return invalid("role", "Please use a valid role: user, model.")
	}
	parts := anys(content["parts"])
	if len(parts) == 0 {
		return invalid("text", fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i))
	}
	p.last = ""
	for j, v := range parts {
		where := fmt.Sprintf("contents[%d].parts[%d]", i, j)
		part, f := camel("part", where, v)
		if f != nil {
			return f
		}
		has := plain.Only(partData, func(name string) bool { return part[name] != nil })
		if len(has) != 1 {
			return invalid("text", fmt.Sprintf(
				"* GenerateContentRequest.contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field", i, j))
		}
		kind := has[0]
		if geminiFields[kind] != nil {
			inner, f := camel(kind, where+"."+kind, part[kind])
			if f != nil {
				return f
			}
			part[kind] = inner
			if f := checkPart(where, kind, inner); f != nil {
				return f
			}
			p.name(text(inner["id"]))
		}
		p.add(where, role, i, part).kind = kind
		if s := text(part["text"]); role == "user" && s != "" {
			p.last += s
			p.first = firstOf(p.first, s)
		}
	}
	return nil
}

// checkPart checks a part by itself.
func checkPart(where, kind string, o object) *refusal {
	switch kind {
	case "functionCall", "functionResponse":
		value := map[string]string{"functionCall": "args", "functionResponse": "response"}[kind]
		if _, ok := o[value].(object); !ok && (o[value] != nil || kind == "functionResponse") {
			return invalid("field", fmt.Sprintf("Invalid value at '%s.%s.%s' (type.googleapis.com/google.protobuf.Struct)", where, kind, value))
		}
		if text(o["name"]) == "" {
			return invalid("field", fmt.Sprintf("* GenerateContentRequest.%s.%s.name: Name cannot be empty.", where, kind))
		}
	case "inlineData":
		if _, err := base64.StdEncoding.DecodeString(text(o["data"])); err != nil || text(o["mimeType"]) == "" {
			return invalid("field", fmt.Sprintf("Invalid value at '%s.inline_data.data' (TYPE_BYTES), Base64 decoding failed", where))
		}
	}
	return nil
}

// A said is a turn of the Gemini API: contents of one role. Google's client makes a content of each chunk of a stream.
type said struct {
	role             string
	calls, responses []*block
	texts            bool
	parts            []*block
}

func (p *prompt) contents() []said {
	var all []said
	last := -1
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.message < 0 {
			continue
		}
		if n := len(all); b.message != last && (n == 0 || all[n-1].role != b.role) {
			all = append(all, said{role: b.role})
		}
		last = b.message
		c := &all[len(all)-1]
		c.parts = append(c.parts, b)
		switch b.kind {
		case "functionCall":
			c.calls = append(c.calls, b)
		case "functionResponse":
			c.responses = append(c.responses, b)
		default:
			c.texts = true
		}
	}
	return all
}

func nameOf(b *block) string { return text(obj(b.value[b.kind])["name"]) }

// checkContents demands that a turn of calls follows one of the user, that as many responses, with these names, follow
// it, and that responses are nowhere else.
func checkContents(p *prompt, _ Model) *refusal {
	all := p.contents()
	if all[0].role == "model" {
		return invalid("role", "Please ensure that the first content is of the user.")
	}
	for i, c := range all {
		if len(c.calls) > 0 && (c.role != "model" || all[i-1].role == "model") {
			return invalid("pairs", "Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		if len(c.responses) > 0 && (i == 0 || len(all[i-1].calls) == 0 || c.role == "model") {
			return invalid("pairs", "Please ensure that function response turn comes immediately after a function call turn.")
		}
		if len(c.calls) == 0 {
			continue
		}
		called, answered := plain.Each(c.calls, nameOf), []string{}
		if i+1 < len(all) {
			answered = plain.Each(all[i+1].responses, nameOf)
		}
		slices.Sort(called)
		slices.Sort(answered)
		if !slices.Equal(called, answered) {
			return invalid("pairs", "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		}
	}
	return nil
}

// waived is the signature of clients that have none, which Google documents.
var waived = []string{"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"}

// checkSignatures demands that signatures are as the vendor made them and, from Gemini 3 on, that the first call of each
// step of the current turn has one.
func checkSignatures(p *prompt, _ Model) *refusal {
	all := p.contents()
	current := 0
	for i, c := range all {
		if c.role == "user" && c.texts {
			current = i
		}
	}
	for i, c := range all {
		for j, b := range c.parts {
			s := text(b.value["thoughtSignature"])
			if s == "" || slices.Contains(waived, s) {
				if s == "" && i > current && b.kind == "functionCall" && b == c.calls[0] && p.thinking != "" {
					return invalid("thinking", fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d.", nameOf(b), i*100+j))
				}
				continue
			}
			if sealed, ok := unseal(s); !ok || b.kind == "functionCall" && sealed.text != callHash(b.value["functionCall"]) {
				return invalid("thinking", "Corrupted thought signature.")
			}
		}
	}
	return nil
}

func callHash(v any) [16]byte {
	o, _ := v.(object)
	return hashOf("gemini", text(o["name"])+string(encode(o["args"])))
}

// checkGoogle checks the size and the key of a request to Google.
func checkGoogle(r *Record) *refusal {
	const most = 20 << 20
	query, err := url.ParseQuery(r.Query)
	if err != nil || len(r.Body) > most {
		return invalid("size", fmt.Sprintf("Request payload size exceeds the limit: %d bytes.", most))
	}
	if r.Header.Get("X-Goog-Api-Key") == "" && query.Get("key") == "" && r.Header.Get("Authorization") == "" {
		return &refusal{
			status: http.StatusForbidden, rule: "key",
			text: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
		}
	}
	return nil
}

var googleStatus = map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}

func (f *refusal) google() object {
	return object{"error": object{"code": f.status, "message": f.text, "status": firstOf(googleStatus[f.status], "INTERNAL")}}
}

// candidate is an answer of the Gemini API with parts; finish is empty before the end.
func (a *answer) candidate(p *prompt, u usage, parts []any, finish string) object {
	c := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	usage := object{"promptTokenCount": u.Prompt, "totalTokenCount": u.Prompt + a.tokens, "cachedContentTokenCount": u.Read}
	if finish != "" {
		c["finishReason"] = finish
		usage["candidatesTokenCount"] = a.tokens
		if p.thinking != "" {
			usage["thoughtsTokenCount"] = 7
		}
	}
	return object{"candidates": []any{c}, "usageMetadata": usage, "modelVersion": p.model, "responseId": a.id}
}

func (a *answer) geminiCalls(p *prompt) []any {
	var parts []any
	for i, c := range a.calls {
		call := object{"id": c.id, "name": c.tool.name, "args": c.input}
		part := object{"functionCall": call}
		if i == 0 && p.thinking != "" {
			part["thoughtSignature"] = seal{text: callHash(call)}.String()
		}
		parts = append(parts, part)
	}
	return parts
}

func (a *answer) gemini(p *prompt, u usage) [][]byte {
	if p.count {
		return [][]byte{encode(object{"totalTokens": u.Prompt, "promptTokensDetails": []any{object{"modality": "TEXT", "tokenCount": u.Prompt}}})}
	}
	calls := a.geminiCalls(p)
	if !p.stream {
		var parts []any
		if a.text != "" {
			parts = append(parts, object{"text": a.text})
		}
		return [][]byte{encode(a.candidate(p, u, append(parts, calls...), "STOP"))}
	}
	chunks := plain.Each(pieces(a.text), func(s string) object { return a.candidate(p, u, []any{object{"text": s}}, "") })
	if len(calls) > 0 {
		chunks = append(chunks, a.candidate(p, u, calls, ""))
	}
	chunks = append(chunks, a.candidate(p, u, []any{object{"text": ""}}, "STOP"))
	var out [][]byte
	for i, c := range chunks {
		switch raw := encode(c); {
		case p.sse:
			out = append(out, slices.Concat([]byte("data: "), raw, []byte("\r\n\r\n")))
		case i == 0:
			out = append(out, slices.Concat([]byte("["), raw))
		default:
			out = append(out, slices.Concat([]byte("\n,\r\n"), raw))
		}
	}
	if !p.sse {
		out = append(out, []byte("\n]"))
	}
	return out
}

// geminiRequest is the next body of a client.
func (c *Client) geminiRequest(system string, schema object) object {
	declarations := []any{object{"name": "run_shell_command", "description": "Run a command.", "parametersJsonSchema": schema}}
	for _, name := range c.Tools {
		declarations = append(declarations, object{"name": name, "parametersJsonSchema": object{"type": "object"}})
	}
	return object{
		"contents": c.History, "systemInstruction": object{"role": "user", "parts": []any{object{"text": system}}},
		"tools": []any{object{"functionDeclarations": declarations}}, "generationConfig": object{"temperature": 0, "topP": 1},
	}
}

// geminiContent joins the chunks of an answer.
func (c *Client) geminiContent(chunks []object) ([]object, error) {
	var parts []any
	ended := false
	for _, chunk := range chunks {
		if chunk["error"] != nil {
			return nil, fmt.Errorf("%w: %s", ErrRefused, encode(chunk))
		}
		if n, ok := obj(chunk["usageMetadata"])["promptTokenCount"].(json.Number); ok {
			i, _ := n.Int64()
			c.Prompt = int(i)
		}
		for _, candidate := range objects(chunk["candidates"]) {
			for _, part := range objects(obj(candidate["content"])["parts"]) {
				if s, ok := part["text"].(string); ok && part["thoughtSignature"] == nil {
					if n := len(parts) - 1; n >= 0 {
						if before, _ := parts[n].(object); before["text"] != nil {
							before["text"] = text(before["text"]) + s
							continue
						}
					}
					if s == "" {
						continue
					}
				}
				parts = append(parts, part)
			}
			ended = ended || candidate["finishReason"] != nil
		}
	}
	if !ended {
		return nil, ErrIncomplete
	}
	return []object{{"role": "model", "parts": parts}}, nil
}

func (c *Client) geminiStream(stream []byte) ([]object, error) {
	var chunks []object
	if c.Array {
		if err := json.Unmarshal(stream, &chunks); err != nil {
			return nil, err
		}
	}
	for line := range strings.SplitSeq(string(stream), "\n") {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			chunks = append(chunks, decodeObject([]byte(data)))
		}
	}
	return c.geminiContent(chunks)
}
