package transcript

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// Gemini CLI records a session in ~/.gemini/tmp/PROJECT/chats/session-*.json:
//
//	{"sessionId": …, "projectHash": …, "startTime": …, "lastUpdated": …, "messages": [
//	  {"id": …, "timestamp": …, "type": "user", "content": [{"text": …}]},
//	  {"id": …, "timestamp": …, "type": "gemini", "content": …, "thoughts": [ … ], "toolCalls": [ … ]}]}
//
// A call holds its result, a list with a functionResponse. Messages of other types (info,
// warning, error) are the user interface's. The system prompt and the definitions of the
// tools are not in the file. This follows packages/core/src/services/chatRecordingService.ts
// of Gemini CLI, which is public, and a session of April 2026.
var geminiCodec = Codec{
	Name:   "gemini",
	Doc:    "Gemini CLI session: ~/.gemini/tmp/*/chats/session-*.json",
	Tool:   "Gemini CLI",
	Detect: detectGemini,
	Read:   readGemini,
}

func detectGemini(data []byte) bool {
	if at := skipSpace(data, 0); !isObject(data[at:]) {
		return false
	}
	session, project, messages := false, false, []byte(nil)
	for k, v := range fields(data) {
		switch string(k) {
		case "sessionId":
			session = isString(v)
		case "projectHash":
			project = isString(v)
		case "messages":
			messages = v
		}
	}
	if !session || !project || !isArray(messages) {
		return false
	}
	for m := range elements(messages) {
		return isString(field(m, "type")) && field(m, "content") != nil
	}
	return ends(messages)
}

func readGemini(data []byte, f *File) error {
	if err := validate(data); err != nil {
		return err
	}
	messages := field(data, "messages")
	if !isArray(messages) {
		return wrongMessages(data, messages)
	}
	s := sessionReader{file: f, data: data, taken: ids{}}
	for raw := range elements(messages) {
		if !isObject(raw) {
			return (&fault{Found: describe(raw), Want: "an object with type and content"}).in(data, raw, s.records+1)
		}
		var all []core.Message
		var bad *fault
		switch kind := field(raw, "type"); {
		case !isString(kind):
			bad = missing(raw, "message", "type", "a string")
		case text(kind) == "user":
			var parts []core.Part
			if parts, bad = decodeGemini(raw, field(raw, "content")); len(parts) > 0 {
				all = []core.Message{{Role: core.RoleUser, Parts: parts}}
			}
		case text(kind) == "gemini":
			all, bad = decodeGeminiTurn(raw)
			if model := text(field(raw, "model")); model != "" {
				f.Model = model
			}
		}
		if bad != nil {
			return bad.in(data, raw, s.records+1)
		}
		if err := f.Add(s.take(raw, text(field(raw, "id")), timestamp(field(raw, "timestamp")), true, all)...); err != nil {
			return err
		}
	}
	f.Settle(data, s.places, ",")
	return nil
}

// decodeGemini returns the parts of value, a member of the message raw: a string, a part or
// an array of parts, as Gemini's API has them.
func decodeGemini(raw, value []byte) ([]core.Part, *fault) {
	switch {
	case value == nil, isNull(value):
		return nil, nil
	case isString(value):
		return textParts(value), nil
	case isObject(value):
		return geminiPart(value), nil
	case !isArray(value):
		return nil, &fault{Offset: offsetIn(raw, value), Found: describe(value) + ` as "content"`, Want: "a string or an array of parts"}
	}
	var parts []core.Part
	for part := range elements(value) {
		switch {
		case isString(part):
			parts = append(parts, textParts(part)...)
		case isObject(part):
			parts = append(parts, geminiPart(part)...)
		default:
			return nil, &fault{Offset: offsetIn(raw, part), Found: describe(part) + " as a part of content", Want: "an object"}
		}
	}
	return parts, nil
}

func geminiPart(raw []byte) []core.Part {
	for k, v := range fields(raw) {
		switch key := string(k); {
		case key == "text" && isString(v):
			return textParts(v)
		case key == "inlineData":
			mime := text(field(v, "mimeType"))
			if strings.HasPrefix(mime, "image/") {
				return []core.Part{core.Image{MediaType: mime, Data: text(field(v, "data"))}}
			}
			return []core.Part{core.Opaque{Kind: key, JSON: string(raw)}}
		case key != "thought" && key != "thoughtSignature" && key != "text":
			return []core.Part{core.Opaque{Kind: key, JSON: string(raw)}}
		}
	}
	return nil
}

func decodeGeminiTurn(raw []byte) ([]core.Message, *fault) {
	var said, results []core.Part
	for thought := range elements(field(raw, "thoughts")) {
		subject, description := text(field(thought, "subject")), text(field(thought, "description"))
		said = append(said, core.Reasoning{Text: strings.TrimSpace(subject + "\n" + description)})
	}
	parts, bad := decodeGemini(raw, field(raw, "content"))
	if bad != nil {
		return nil, bad
	}
	said = append(said, parts...)
	for call := range elements(field(raw, "toolCalls")) {
		id, name := field(call, "id"), field(call, "name")
		if !isString(id) || !isString(name) {
			e := missing(call, "tool call", "id", "a string, and one as name")
			e.Offset += offsetIn(raw, call)
			return nil, e
		}
		said = append(said, core.ToolCall{ID: text(id), Name: text(name), Args: string(field(call, "args"))})
		status := text(field(call, "status"))
		content, failed := geminiResult(field(call, "result"))
		if content != nil || status == "success" || status == "error" || status == "cancelled" {
			failed = failed || status == "error" || status == "cancelled"
			results = append(results, core.ToolResult{CallID: text(id), Content: content, IsError: failed})
		}
	}
	return turnOf(said, results), nil
}

// geminiResult returns what a tool answered, and whether it failed.
func geminiResult(value []byte) (content []core.Part, failed bool) {
	if isString(value) {
		return textParts(value), false
	}
	if isObject(value) {
		value = append(append([]byte{'['}, value...), ']')
	}
	for part := range elements(value) {
		response := field(field(part, "functionResponse"), "response")
		output, fault := field(response, "output"), field(response, "error")
		switch {
		case response == nil:
			content = append(content, geminiPart(part)...)
		case isString(output):
			content = append(content, textParts(output)...)
		case isString(fault):
			content, failed = append(content, textParts(fault)...), true
		default:
			content = append(content, core.Text(response))
		}
	}
	return content, failed
}
