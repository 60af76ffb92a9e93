package transcript

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
)

// OpenCode keeps sessions in a database; "opencode export SESSION" writes one as
//
//	{"info": {"id": "ses_…", …}, "messages": [{"info": {"role": …}, "parts": [{"type": …}, …]}, …]}
//
// A part is a text, reasoning, a file, a tool with its call and its result, or one of some
// that are not sent. This follows what OpenCode does to ask a model
// (packages/opencode/src/session/message-v2.ts) in versions 1.2 to 1.4, and exports of these.
//
//   - A part "step-start" begins a request of its own; older versions have several in one
//     message.
//   - A compaction is a message of the user's with a part "compaction"; the answer has
//     "summary": true. What is before it is no longer sent. It is imported as a condensation.
//   - The result of a tool with time.compacted was cleared: a note is sent in its place.
//   - An answer that failed is not sent, unless it was only interrupted.
var opencodeCodec = Codec{
	Name:   "opencode",
	Doc:    "OpenCode session, as opencode export writes it",
	Tool:   "OpenCode",
	Detect: detectOpenCode,
	Read:   readOpenCode,
}

func detectOpenCode(data []byte) bool {
	if at := skipSpace(data, 0); !isObject(data[at:]) {
		return false
	}
	var info, messages []byte
	for k, v := range fields(data) {
		switch string(k) {
		case "info":
			info = v
		case "messages":
			messages = v
		}
	}
	if !isArray(messages) || !isString(field(info, "id")) {
		return false
	}
	for m := range elements(messages) {
		return isString(field(field(m, "info"), "role")) && isArray(field(m, "parts"))
	}
	return strings.HasPrefix(text(field(info, "id")), "ses_") && ends(messages)
}

func readOpenCode(data []byte, f *File) error {
	if err := validate(data); err != nil {
		return err
	}
	messages := field(data, "messages")
	if !isArray(messages) {
		return wrongMessages(data, messages)
	}
	s := sessionReader{file: f, data: data, taken: ids{}}
	var records []opencodeRecord
	for raw := range elements(messages) {
		r, bad := decodeOpenCode(raw)
		if bad != nil {
			return bad.in(data, raw, len(records)+1)
		}
		records = append(records, r)
	}
	for i := 0; i < len(records); i++ {
		r := &records[i]
		if r.model != "" {
			f.Model = r.model
		}
		if !r.compaction || i+1 == len(records) || !records[i+1].summary {
			if err := f.Add(s.take(r.raw, r.id, r.time, true, r.messages)...); err != nil {
				return err
			}
			continue
		}
		answer := &records[i+1]
		inserted := append(s.take(r.raw, r.id, r.time, false, r.messages), s.take(answer.raw, answer.id, answer.time, false, answer.messages)...)
		for k := range inserted {
			inserted[k].Kind = core.KindSummary
		}
		if err := compactTo(f, "compaction-"+r.id, "opencode", answer.time, "", inserted); err != nil {
			return fmt.Errorf("compaction in message %d: %w", i+1, err)
		}
		i++
	}
	f.Settle(data, s.places, ",")
	return nil
}

// An opencodeRecord is a message of OpenCode's.
type opencodeRecord struct {
	raw        []byte
	id, model  string
	time       time.Time
	compaction bool // it asks for a summary
	summary    bool // it is one
	messages   []core.Message
}

// decodeOpenCode returns what the message raw says.
func decodeOpenCode(raw []byte) (r opencodeRecord, bad *fault) {
	r.raw = raw
	if !isObject(raw) {
		return r, &fault{Found: describe(raw), Want: "an object with info and parts"}
	}
	info, parts := field(raw, "info"), field(raw, "parts")
	if !isArray(parts) {
		return r, &fault{Found: `a message without "parts"`, Want: `an array as "parts"`}
	}
	var role, failure []byte
	for k, v := range fields(info) {
		switch string(k) {
		case "role":
			role = v
		case "id":
			r.id = text(v)
		case "modelID":
			r.model = text(v)
		case "summary":
			r.summary = isTrue(v)
		case "error":
			failure = v
		case "time":
			r.time = milliseconds(field(v, "created"))
		}
	}
	switch text(role) {
	case "user":
		bad = r.user(parts)
	case "assistant":
		bad = r.assistant(parts)
		if isObject(failure) && (text(field(failure, "name")) != "MessageAbortedError" || !r.says()) {
			r.messages, r.summary = nil, false
		}
	default:
		return r, wrongRole(raw, role, "user or assistant")
	}
	if bad != nil {
		bad.Offset += offsetIn(raw, parts)
	}
	return r, bad
}

// says reports whether r holds more than reasoning.
func (r *opencodeRecord) says() bool {
	return slices.ContainsFunc(r.messages, func(m core.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, thought := p.(core.Reasoning); return !thought })
	})
}

func (r *opencodeRecord) user(parts []byte) *fault {
	var said []core.Part
	for raw := range elements(parts) {
		switch text(field(raw, "type")) {
		case "":
			return missingIn(parts, raw, "part", "type", "a string")
		case "text":
			if s := text(field(raw, "text")); s != "" && !isTrue(field(raw, "ignored")) {
				said = append(said, core.Text(s))
			}
		case "file":
			if img, ok := opencodeFile(raw); ok {
				said = append(said, img)
			}
		case "compaction":
			r.compaction = true
			said = append(said, core.Text("What did we do so far?"))
		case "subtask":
			said = append(said, core.Text("The following tool was executed by the user"))
		}
	}
	if len(said) > 0 {
		r.messages = []core.Message{{Role: core.RoleUser, Parts: said}}
	}
	return nil
}

func (r *opencodeRecord) assistant(parts []byte) *fault {
	var said, results []core.Part
	step := func() {
		r.messages = append(r.messages, turnOf(said, results)...)
		said, results = nil, nil
	}
	for raw := range elements(parts) {
		switch text(field(raw, "type")) {
		case "":
			return missingIn(parts, raw, "part", "type", "a string")
		case "step-start":
			step()
		case "text":
			if s := text(field(raw, "text")); s != "" {
				said = append(said, core.Text(s))
			}
		case "reasoning":
			said = append(said, core.Reasoning{Text: text(field(raw, "text"))})
		case "tool":
			if !isString(field(raw, "callID")) {
				return missingIn(parts, raw, "tool", "callID", "a string")
			}
			id, state := text(field(raw, "callID")), field(raw, "state")
			said = append(said, core.ToolCall{ID: id, Name: text(field(raw, "tool")), Args: string(field(state, "input"))})
			if result, ok := opencodeResult(id, state); ok {
				results = append(results, result)
			}
		}
	}
	step()
	return nil
}

// opencodeResult returns what a tool answered; false if it did not yet.
func opencodeResult(id string, state []byte) (core.ToolResult, bool) {
	r := core.ToolResult{CallID: id}
	switch text(field(state, "status")) {
	case "completed":
		if field(field(state, "time"), "compacted") != nil {
			r.Content = []core.Part{core.Text("[Old tool result content cleared]")}
			return r, true
		}
		r.Content = textParts(orEmpty(field(state, "output")))
		for file := range elements(field(state, "attachments")) {
			if img, ok := opencodeFile(file); ok {
				r.Content = append(r.Content, img)
			}
		}
	case "error":
		r.IsError = true
		r.Content = textParts(orEmpty(field(state, "error")))
	default:
		return r, false
	}
	return r, true
}

// opencodeFile returns the file that is sent as such. Texts and folders are not: a text says
// what is in them.
func opencodeFile(raw []byte) (core.Part, bool) {
	mime := text(field(raw, "mime"))
	switch url := text(field(raw, "url")); {
	case strings.HasPrefix(mime, "image/"):
		return imageFromURL(url), true
	case mime == "text/plain", mime == "application/x-directory", mime == "":
		return nil, false
	}
	return core.Opaque{Kind: "file", JSON: string(raw)}, true
}
