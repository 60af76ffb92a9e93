// Package gemini reads and writes sessions of Gemini CLI.
//
// Gemini CLI records a session in ~/.gemini/tmp/PROJECT/chats/session-*.json:
//
//	{"sessionId": …, "projectHash": …, "startTime": …, "lastUpdated": …, "messages": [
//	  {"id": …, "timestamp": …, "type": "user", "content": [{"text": …}]},
//	  {"id": …, "timestamp": …, "type": "gemini", "content": …, "thoughts": [ … ], "toolCalls": [ … ]}]}
//
// Since version 0.39 the name ends in .jsonl, and the file is a log of the same messages: see
// lines.go.
//
// A call holds its result, a list with a functionResponse. Messages of other types (info,
// warning, error) belong to the user interface, and so do commands. The content of newer messages
// holds the calls too. The system prompt and the definitions of the tools are not in the file.
// This follows packages/core/src/services/chatRecordingService.ts and utils/sessionUtils.ts of
// Gemini CLI, which are public, and a session of April 2026.
package gemini

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/transcript/internal/session"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:   "gemini",
	Doc:    "Gemini CLI session: ~/.gemini/tmp/*/chats/session-*.json or .jsonl",
	Vendor: "", // reasoning is not signed
	Detect: func(data []byte) bool { return detectGemini(data) || detectLines(data) },
	Read: func(data []byte, f *codec.File) error {
		if detectLines(data) {
			return readLines(data, f)
		}
		return readGemini(data, f)
	},
	Write:   write,
	Convert: convertFile,
}

func detectGemini(data []byte) bool {
	var session, project, messages []byte
	rawjson.Pick(data, []string{"sessionId", "projectHash", "messages"}, &session, &project, &messages)
	if !rawjson.IsString(session) || !rawjson.IsString(project) || !rawjson.IsArray(messages) {
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
	known := answers{}
	for raw := range rawjson.Elements(messages) {
		if !rawjson.IsObject(raw) {
			return (&syntax.Error{Found: syntax.Describe(raw), Want: "an object with type and content"}).In(data, raw, s.Records+1)
		}
		all, model, bad := decodeRecord(raw)
		if model != "" {
			f.Model = model
		}
		if bad != nil {
			return bad.In(data, raw, s.Records+1)
		}
		if err := s.Add(raw, rawjson.Text(rawjson.Field(raw, "id")), rawjson.Time(rawjson.Field(raw, "timestamp")), known.once(all)); err != nil {
			return err
		}
	}
	s.Close([]byte{','})
	return nil
}

// decodeRecord returns the messages in the record raw, none if it is not sent, and its model.
func decodeRecord(raw []byte) (all []core.Message, model string, bad *syntax.Error) {
	switch kind := rawjson.Field(raw, "type"); {
	case !rawjson.IsString(kind):
		bad = syntax.Missing(raw, "message", "type", "a string")
	case rawjson.Text(kind) == "user":
		var parts []core.Part
		parts, bad = decodeGemini(raw, rawjson.Field(raw, "content"))
		all = userMessages(parts)
	case rawjson.Text(kind) == "gemini":
		model = rawjson.Text(rawjson.Field(raw, "model"))
		all, bad = decodeGeminiTurn(raw)
	}
	return all, model, bad
}

// notSent reports whether a user's content begins so that Gemini CLI does not send it again: a command, or its own addition.
func notSent(text string) bool {
	text = strings.TrimSpace(text)
	e, _ := toolcall.Begins(text)
	return e.Agent == "gemini" || text != "" && strings.ContainsRune("/?", rune(text[0]))
}

// userMessages returns the results among parts and the user's message.
func userMessages(parts []core.Part) []core.Message {
	var said, results []core.Part
	for _, p := range parts {
		if r, ok := p.(core.ToolResult); ok {
			results = append(results, r)
		} else {
			said = append(said, p)
		}
	}
	if len(said) > 0 {
		first, _ := said[0].(core.Text)
		if notSent(string(first)) {
			said = nil
		}
	}
	var all []core.Message
	if len(results) > 0 {
		all = append(all, core.Message{Role: core.RoleTool, Parts: results})
	}
	if len(said) > 0 {
		all = append(all, core.Message{Role: core.RoleUser, Parts: said})
	}
	return all
}

// answers are the IDs of calls that have a result. Two records can hold the same result: the record of the call, and
// the record of the message that took the result to the model.
type answers map[string]bool

// once returns all without results that there were before.
func (a answers) once(all []core.Message) []core.Message {
	var kept []core.Message
	for _, m := range all {
		before := len(m.Parts)
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p core.Part) bool {
			r, ok := p.(core.ToolResult)
			known := ok && a[r.CallID]
			if ok {
				a[r.CallID] = true
			}
			return known
		})
		if len(m.Parts) > 0 || before == 0 {
			kept = append(kept, m)
		}
	}
	return kept
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
	thought := rawjson.IsTrue(rawjson.Field(raw, "thought"))
	for k, v := range rawjson.Fields(raw) {
		switch key := string(k); {
		case key == "text" && rawjson.IsString(v) && thought:
			return []core.Part{core.Reasoning{Text: rawjson.Text(v)}}
		case key == "text" && rawjson.IsString(v):
			return blocks.Text(v)
		case key == "functionCall" && rawjson.IsString(rawjson.Field(v, "id")) && rawjson.IsString(rawjson.Field(v, "name")):
			return []core.Part{call(v)}
		case key == "functionResponse" && rawjson.IsString(rawjson.Field(v, "id")):
			content, failed := responseContent(rawjson.Field(v, "response"))
			for medium := range rawjson.Elements(rawjson.Field(v, "parts")) {
				for _, p := range geminiPart(medium) {
					switch p.(type) {
					case core.Image, core.Opaque:
						content = append(content, p)
					default:
					}
				}
			}
			return []core.Part{core.ToolResult{CallID: rawjson.Text(rawjson.Field(v, "id")), Content: content, IsError: failed}}
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

// call returns the call that raw describes by id, name and args.
func call(raw []byte) core.ToolCall {
	return core.ToolCall{ID: rawjson.Text(rawjson.Field(raw, "id")), Name: rawjson.Text(rawjson.Field(raw, "name")), Args: string(rawjson.Field(raw, "args"))}
}

func decodeGeminiTurn(raw []byte) ([]core.Message, *syntax.Error) {
	said, bad := decodeGemini(raw, rawjson.Field(raw, "content"))
	if bad != nil {
		return nil, bad
	}
	// If the content holds thoughts or calls, it is all that is sent again.
	whole := false
	for _, p := range said {
		switch p.(type) {
		case core.Reasoning, core.ToolCall:
			whole = true
		default:
		}
	}
	if !whole {
		var thoughts []core.Part
		for thought := range rawjson.Elements(rawjson.Field(raw, "thoughts")) {
			thoughts = append(thoughts, decodeThought(thought))
		}
		said = append(thoughts, said...)
	}
	called := map[string]bool{}
	for _, p := range said {
		if c, ok := p.(core.ToolCall); ok {
			called[c.ID] = true
		}
	}
	var results []core.Part
	for made := range rawjson.Elements(rawjson.Field(raw, "toolCalls")) {
		if !rawjson.IsString(rawjson.Field(made, "id")) || !rawjson.IsString(rawjson.Field(made, "name")) {
			e := syntax.Missing(made, "tool call", "id", "a string, and one as name")
			e.Offset += rawjson.Offset(raw, made)
			return nil, e
		}
		c := call(made)
		if !called[c.ID] {
			called[c.ID] = true
			said = append(said, c)
		}
		if r, ok := resultOf(made); ok {
			results = append(results, r)
		}
	}
	return session.Turn(said, results), nil
}

// decodeThought returns the content of a member of "thoughts".
func decodeThought(raw []byte) core.Part {
	subject, description := rawjson.Text(rawjson.Field(raw, "subject")), rawjson.Text(rawjson.Field(raw, "description"))
	return core.Reasoning{Text: strings.TrimSpace(subject + "\n" + description)}
}

// resultOf returns the result of a member of "toolCalls", if it has one.
func resultOf(made []byte) (core.ToolResult, bool) {
	id, status := rawjson.Text(rawjson.Field(made, "id")), rawjson.Text(rawjson.Field(made, "status"))
	content, failed := geminiResult(id, rawjson.Field(made, "result"))
	failed = failed || status == "error" || status == "cancelled"
	return core.ToolResult{CallID: id, Content: content, IsError: failed}, content != nil || failed || status == "success"
}

// geminiResult returns the content of the result of call id, and whether the tool failed. The
// value may also hold the results of other calls.
func geminiResult(id string, value []byte) (content []core.Part, failed bool) {
	if rawjson.IsString(value) {
		return blocks.Text(value), false
	}
	if rawjson.IsObject(value) {
		value = append(append([]byte{'['}, value...), ']')
	}
	for part := range rawjson.Elements(value) {
		answer := rawjson.Field(part, "functionResponse")
		of := rawjson.Field(answer, "id")
		switch response := rawjson.Field(answer, "response"); {
		case rawjson.IsString(of) && rawjson.Text(of) != id:
		case response == nil:
			content = append(content, geminiPart(part)...)
		default:
			said, bad := responseContent(response)
			content, failed = append(content, said...), failed || bad
		}
	}
	return content, failed
}

// responseContent returns the content of a functionResponse, and whether the tool failed.
func responseContent(response []byte) (content []core.Part, failed bool) {
	output, fault := rawjson.Field(response, "output"), rawjson.Field(response, "error")
	switch {
	case rawjson.IsString(output):
		return blocks.Text(output), false
	case rawjson.IsString(fault):
		return blocks.Text(fault), true
	case response == nil:
		return nil, false
	}
	return []core.Part{core.Text(response)}, false
}
