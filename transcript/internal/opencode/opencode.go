// Package opencode reads and writes sessions as OpenCode exports and imports them.
//
// OpenCode keeps sessions in a database; "opencode export SESSION" writes one as
//
//	{"info": {"id": "ses_…", …}, "messages": [{"info": {"role": …}, "parts": [{"type": …}, …]}, …]}
//
// A part is a text, reasoning, a file, a tool with its call and its result, or one of some
// that are not sent. This follows how OpenCode makes requests
// (packages/opencode/src/session/message-v2.ts) in versions 1.2 to 1.4, and exports of these.
//
//   - A part "step-start" begins a new request; older versions have several in one message.
//   - A compaction is a user message with a part "compaction"; the answer has "summary": true.
//     Messages before it are no longer sent. It is imported as a condensation.
//   - The result of a tool with time.compacted was cleared: a stub is sent in its place.
//   - An answer that failed is not sent, unless it was only interrupted.
package opencode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/session"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "opencode",
	Doc:     "OpenCode session, as opencode export writes it",
	Vendor:  "", // it holds messages of models of any vendor
	Detect:  detectOpenCode,
	Read:    readOpenCode,
	Write:   write,
	Convert: convertFile,
}

func detectOpenCode(data []byte) bool {
	var info, messages []byte
	rawjson.Pick(data, []string{"info", "messages"}, &info, &messages)
	if !rawjson.IsArray(messages) || !rawjson.IsString(rawjson.Field(info, "id")) {
		return false
	}
	for m := range rawjson.Elements(messages) {
		return rawjson.IsString(rawjson.Field(rawjson.Field(m, "info"), "role")) && rawjson.IsArray(rawjson.Field(m, "parts"))
	}
	return strings.HasPrefix(rawjson.Text(rawjson.Field(info, "id")), "ses_") && rawjson.Complete(messages)
}

func readOpenCode(data []byte, f *codec.File) error {
	s, messages, err := session.Open(data, f)
	if err != nil {
		return err
	}
	var records []opencodeRecord
	for raw := range rawjson.Elements(messages) {
		r, bad := decodeOpenCode(raw)
		if bad != nil {
			return bad.In(data, raw, len(records)+1)
		}
		records = append(records, r)
	}
	for i := 0; i < len(records); i++ {
		r := &records[i]
		if r.model != "" {
			f.Model = r.model
		}
		if !r.compaction || i+1 == len(records) || !records[i+1].summary {
			if err := s.Add(r.raw, r.id, r.time, r.messages); err != nil {
				return err
			}
			continue
		}
		answer := &records[i+1]
		inserted := append(s.Take(r.raw, r.id, r.time, true, r.messages), s.Take(answer.raw, answer.id, answer.time, true, answer.messages)...)
		for k := range inserted {
			inserted[k].Kind = core.KindSummary
		}
		if err := session.Compact(f, "compaction-"+r.id, "opencode", answer.time, "", inserted); err != nil {
			return fmt.Errorf("compaction in message %d: %w", i+1, err)
		}
		i++
	}
	s.Close([]byte{','})
	return nil
}

// question is the text of the request for a compaction.
const question = "What did we do so far?"

// An opencodeRecord is one of OpenCode's messages.
type opencodeRecord struct {
	raw        []byte
	id, model  string
	time       time.Time
	compaction bool // it asks for a summary
	summary    bool // it is one
	messages   []core.Message
}

// decodeOpenCode decodes the message raw.
func decodeOpenCode(raw []byte) (r opencodeRecord, bad *syntax.Error) {
	r.raw = raw
	if !rawjson.IsObject(raw) {
		return r, &syntax.Error{Found: syntax.Describe(raw), Want: "an object with info and parts"}
	}
	info, parts := rawjson.Field(raw, "info"), rawjson.Field(raw, "parts")
	if !rawjson.IsArray(parts) {
		return r, &syntax.Error{Found: `a message without "parts"`, Want: `an array as "parts"`}
	}
	var role, id, model, summary, failure, when []byte
	rawjson.Pick(info, []string{"role", "id", "modelID", "summary", "error", "time"}, &role, &id, &model, &summary, &failure, &when)
	r.id, r.model, r.summary = rawjson.Text(id), rawjson.Text(model), rawjson.IsTrue(summary)
	r.time = rawjson.UnixMilli(rawjson.Field(when, "created"))
	switch rawjson.Text(role) {
	case "user":
		bad = r.user(parts)
	case "assistant":
		bad = r.assistant(parts)
		if rawjson.IsObject(failure) && (rawjson.Text(rawjson.Field(failure, "name")) != "MessageAbortedError" || !r.says()) {
			r.messages, r.summary = nil, false
		}
	default:
		return r, syntax.WrongRole(raw, role, "user or assistant")
	}
	if bad != nil {
		bad.Offset += rawjson.Offset(raw, parts)
	}
	return r, bad
}

// says reports whether r holds more than reasoning.
func (r *opencodeRecord) says() bool {
	return slices.ContainsFunc(r.messages, func(m core.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, thought := p.(core.Reasoning); return !thought })
	})
}

func (r *opencodeRecord) user(parts []byte) *syntax.Error {
	var said []core.Part
	var program bool // it wrote what is in said
	step := func() {
		if len(said) > 0 {
			r.messages = append(r.messages, core.Message{Role: core.RoleUser, Program: program, Parts: said})
		}
		said = nil
	}
	for raw := range rawjson.Elements(parts) {
		switch rawjson.Text(rawjson.Field(raw, "type")) {
		case "":
			return syntax.MissingIn(parts, raw, "part", "type", "a string")
		case "text":
			if s := rawjson.Text(rawjson.Field(raw, "text")); s != "" && !rawjson.IsTrue(rawjson.Field(raw, "ignored")) {
				if by := rawjson.IsTrue(rawjson.Field(raw, "synthetic")); by != program { // a file's content, or a reminder
					step()
					program = by
				}
				said = append(said, core.Text(s))
			}
		case "file":
			if img, ok := opencodeFile(raw); ok {
				said = append(said, img)
			}
		case "compaction":
			r.compaction = true
			said = append(said, core.Text(question))
		case "subtask":
			said = append(said, core.Text("The following tool was executed by the user"))
		}
	}
	step()
	return nil
}

func (r *opencodeRecord) assistant(parts []byte) *syntax.Error {
	var said, results []core.Part
	step := func() {
		r.messages = append(r.messages, session.Turn(said, results)...)
		said, results = nil, nil
	}
	for raw := range rawjson.Elements(parts) {
		switch rawjson.Text(rawjson.Field(raw, "type")) {
		case "":
			return syntax.MissingIn(parts, raw, "part", "type", "a string")
		case "step-start":
			step()
		case "text":
			if s := rawjson.Text(rawjson.Field(raw, "text")); s != "" {
				said = append(said, core.Text(s))
			}
		case "reasoning":
			signed := rawjson.Field(rawjson.Field(raw, "metadata"), "anthropic")
			said = append(said, core.Reasoning{
				Text:      rawjson.Text(rawjson.Field(raw, "text")),
				Signature: rawjson.Text(rawjson.Field(signed, "signature")), Encrypted: rawjson.Text(rawjson.Field(signed, "redactedData")),
			})
		case "tool":
			if !rawjson.IsString(rawjson.Field(raw, "callID")) {
				return syntax.MissingIn(parts, raw, "tool", "callID", "a string")
			}
			id, state := rawjson.Text(rawjson.Field(raw, "callID")), rawjson.Field(raw, "state")
			said = append(said, core.ToolCall{ID: id, Name: rawjson.Text(rawjson.Field(raw, "tool")), Args: string(rawjson.Field(state, "input"))})
			if result, ok := opencodeResult(id, state); ok {
				results = append(results, result)
			}
		}
	}
	step()
	return nil
}

// opencodeResult returns the result of a call; false if there is none yet.
func opencodeResult(id string, state []byte) (core.ToolResult, bool) {
	r := core.ToolResult{CallID: id}
	switch rawjson.Text(rawjson.Field(state, "status")) {
	case "completed":
		if rawjson.Field(rawjson.Field(state, "time"), "compacted") != nil {
			r.Content = []core.Part{core.Text("[Old tool result content cleared]")}
			return r, true
		}
		r.Content = blocks.Text(blocks.OrEmpty(rawjson.Field(state, "output")))
		for file := range rawjson.Elements(rawjson.Field(state, "attachments")) {
			if img, ok := opencodeFile(file); ok {
				r.Content = append(r.Content, img)
			}
		}
	case "error":
		r.IsError = true
		r.Content = blocks.Text(blocks.OrEmpty(rawjson.Field(state, "error")))
	default:
		return r, false
	}
	return r, true
}

// opencodeFile returns a file that is sent as such. Text files and folders are not: a text
// part has their content.
func opencodeFile(raw []byte) (core.Part, bool) {
	mime := rawjson.Text(rawjson.Field(raw, "mime"))
	switch url := rawjson.Text(rawjson.Field(raw, "url")); {
	case strings.HasPrefix(mime, "image/"):
		return apimessage.ImageOf(url), true
	case mime == "text/plain", mime == "application/x-directory", mime == "":
		return nil, false
	}
	return core.Opaque{Kind: "file", JSON: string(raw)}, true
}
