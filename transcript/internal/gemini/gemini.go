// Package gemini reads sessions of Gemini CLI.
//
// Gemini CLI records a session in ~/.gemini/tmp/PROJECT/chats/session-*.json:
//
//	{"sessionId": …, "projectHash": …, "startTime": …, "lastUpdated": …, "messages": [
//	  {"id": …, "timestamp": …, "type": "user", "content": [{"text": …}]},
//	  {"id": …, "timestamp": …, "type": "gemini", "content": …, "thoughts": [ … ], "toolCalls": [ … ]}]}
//
// A call holds its result, a list with a functionResponse. Messages of other types (info,
// warning, error) belong to the user interface. The system prompt and the definitions of the
// tools are not in the file. This follows packages/core/src/services/chatRecordingService.ts
// of Gemini CLI, which is public, and a session of April 2026.
package gemini

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/blocks"
	"github.com/condensehq/condense/transcript/internal/codec"
	"github.com/condensehq/condense/transcript/internal/session"
	"github.com/condensehq/condense/transcript/internal/syntax"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:   "gemini",
	Doc:    "Gemini CLI session: ~/.gemini/tmp/*/chats/session-*.json",
	Tool:   "Gemini CLI",
	Detect: detectGemini,
	Read:   readGemini,
}

func detectGemini(data []byte) bool {
	session, project, messages := false, false, []byte(nil)
	for k, v := range rawjson.Fields(data) {
		switch string(k) {
		case "sessionId":
			session = rawjson.IsString(v)
		case "projectHash":
			project = rawjson.IsString(v)
		case "messages":
			messages = v
		}
	}
	if !session || !project || !rawjson.IsArray(messages) {
		return false
	}
	for m := range rawjson.Elements(messages) {
		return rawjson.IsString(rawjson.Field(m, "type")) && rawjson.Field(m, "content") != nil
	}
	return rawjson.Complete(messages)
}

func readGemini(data []byte, f *codec.File) error {
	s, messages, err := session.Open(data, f)
	if err != nil {
		return err
	}
	for raw := range rawjson.Elements(messages) {
		if !rawjson.IsObject(raw) {
			return (&syntax.Error{Found: syntax.Describe(raw), Want: "an object with type and content"}).In(data, raw, s.Records+1)
		}
		var all []core.Message
		var bad *syntax.Error
		switch kind := rawjson.Field(raw, "type"); {
		case !rawjson.IsString(kind):
			bad = syntax.Missing(raw, "message", "type", "a string")
		case rawjson.Text(kind) == "user":
			var parts []core.Part
			if parts, bad = decodeGemini(raw, rawjson.Field(raw, "content")); len(parts) > 0 {
				all = []core.Message{{Role: core.RoleUser, Parts: parts}}
			}
		case rawjson.Text(kind) == "gemini":
			all, bad = decodeGeminiTurn(raw)
			if model := rawjson.Text(rawjson.Field(raw, "model")); model != "" {
				f.Model = model
			}
		}
		if bad != nil {
			return bad.In(data, raw, s.Records+1)
		}
		if err := s.Add(raw, rawjson.Text(rawjson.Field(raw, "id")), rawjson.Time(rawjson.Field(raw, "timestamp")), all); err != nil {
			return err
		}
	}
	s.Close(",")
	return nil
}

// decodeGemini returns the parts of value, a member of the message raw: a string, a part or
// an array of parts, as Gemini's API has them.
func decodeGemini(raw, value []byte) ([]core.Part, *syntax.Error) {
	switch {
	case value == nil, rawjson.IsNull(value):
		return nil, nil
	case rawjson.IsString(value):
		return blocks.Text(value), nil
	case rawjson.IsObject(value):
		return geminiPart(value), nil
	case !rawjson.IsArray(value):
		return nil, &syntax.Error{Offset: rawjson.Offset(raw, value), Found: syntax.Describe(value) + ` as "content"`, Want: "a string or an array of parts"}
	}
	var parts []core.Part
	for part := range rawjson.Elements(value) {
		switch {
		case rawjson.IsString(part):
			parts = append(parts, blocks.Text(part)...)
		case rawjson.IsObject(part):
			parts = append(parts, geminiPart(part)...)
		default:
			return nil, &syntax.Error{Offset: rawjson.Offset(raw, part), Found: syntax.Describe(part) + " as a part of content", Want: "an object"}
		}
	}
	return parts, nil
}

func geminiPart(raw []byte) []core.Part {
	for k, v := range rawjson.Fields(raw) {
		switch key := string(k); {
		case key == "text" && rawjson.IsString(v):
			return blocks.Text(v)
		case key == "inlineData":
			mime := rawjson.Text(rawjson.Field(v, "mimeType"))
			if strings.HasPrefix(mime, "image/") {
				return []core.Part{core.Image{MediaType: mime, Data: rawjson.Text(rawjson.Field(v, "data"))}}
			}
			return []core.Part{core.Opaque{Kind: key, JSON: string(raw)}}
		case key != "thought" && key != "thoughtSignature" && key != "text":
			return []core.Part{core.Opaque{Kind: key, JSON: string(raw)}}
		}
	}
	return nil
}

func decodeGeminiTurn(raw []byte) ([]core.Message, *syntax.Error) {
	var said, results []core.Part
	for thought := range rawjson.Elements(rawjson.Field(raw, "thoughts")) {
		subject, description := rawjson.Text(rawjson.Field(thought, "subject")), rawjson.Text(rawjson.Field(thought, "description"))
		said = append(said, core.Reasoning{Text: strings.TrimSpace(subject + "\n" + description)})
	}
	parts, bad := decodeGemini(raw, rawjson.Field(raw, "content"))
	if bad != nil {
		return nil, bad
	}
	said = append(said, parts...)
	for call := range rawjson.Elements(rawjson.Field(raw, "toolCalls")) {
		id, name := rawjson.Field(call, "id"), rawjson.Field(call, "name")
		if !rawjson.IsString(id) || !rawjson.IsString(name) {
			e := syntax.Missing(call, "tool call", "id", "a string, and one as name")
			e.Offset += rawjson.Offset(raw, call)
			return nil, e
		}
		said = append(said, core.ToolCall{ID: rawjson.Text(id), Name: rawjson.Text(name), Args: string(rawjson.Field(call, "args"))})
		status := rawjson.Text(rawjson.Field(call, "status"))
		content, failed := geminiResult(rawjson.Field(call, "result"))
		if content != nil || status == "success" || status == "error" || status == "cancelled" {
			failed = failed || status == "error" || status == "cancelled"
			results = append(results, core.ToolResult{CallID: rawjson.Text(id), Content: content, IsError: failed})
		}
	}
	return session.Turn(said, results), nil
}

// geminiResult returns the content of a result, and whether the tool failed.
func geminiResult(value []byte) (content []core.Part, failed bool) {
	if rawjson.IsString(value) {
		return blocks.Text(value), false
	}
	if rawjson.IsObject(value) {
		value = append(append([]byte{'['}, value...), ']')
	}
	for part := range rawjson.Elements(value) {
		response := rawjson.Field(rawjson.Field(part, "functionResponse"), "response")
		output, fault := rawjson.Field(response, "output"), rawjson.Field(response, "error")
		switch {
		case response == nil:
			content = append(content, geminiPart(part)...)
		case rawjson.IsString(output):
			content = append(content, blocks.Text(output)...)
		case rawjson.IsString(fault):
			content, failed = append(content, blocks.Text(fault)...), true
		default:
			content = append(content, core.Text(response))
		}
	}
	return content, failed
}
