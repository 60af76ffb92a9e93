// Package copilot reads and writes sessions of GitHub Copilot CLI.
//
// Copilot CLI appends a line for every event of a session to
// ~/.copilot/session-state/SESSION/events.jsonl, and so does Copilot Chat in VS Code
// (GitHub.copilot-chat/transcripts):
//
//	{"type": "session.start", "data": {"sessionId": …, "producer": "copilot-agent", …}, "id": …, "timestamp": …, "parentId": null}
//
// Types of events that are read:
//
//   - user.message: transformedContent is sent, if there is one.
//   - assistant.message: a text, readable reasoning and the calls of tools.
//   - tool.execution_complete: the result of a call.
//   - system.message: the system prompt.
//   - session.compaction_complete: the summary replaces everything before. It is imported as a
//     condensation.
//   - session.context_cleared: everything before is hidden, likewise.
//   - session.snapshot_rewind: an event and all after it are gone.
//
// Events with an agentId or a parentToolCallId belong to a subagent, which has a conversation of
// its own. Events whose type is not known are kept and ignored. This follows the schema of the
// events in github/copilot-sdk, which is public.
package copilot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "copilot",
	Doc:     "GitHub Copilot CLI session: ~/.copilot/session-state/*/events.jsonl",
	Vendor:  "", // reasoning is readable
	Detect:  detect,
	Read:    read,
	Write:   write,
	Convert: convertFile,
}

func detect(data []byte) bool {
	for raw := range jsonl.Head(data, 1) {
		raw = raw[rawjson.SkipSpace(raw, 0):]
		return rawjson.Text(rawjson.Field(raw, "type")) == "session.start" && rawjson.IsString(rawjson.Field(rawjson.Field(raw, "data"), "sessionId"))
	}
	return false
}

// A reader makes a journal of events.
type reader struct {
	session.Reader
	events []event
	calls  map[string]bool // that a message made
	at     map[string]int  // where the line of a message begins, by its ID
	own    map[int]string  // the summary of a compaction, by where its line begins; empty if it has none
}

// An event is a line.
type event struct {
	jsonl.Row
	kind, id string
	data     []byte
	time     time.Time
}

func read(data []byte, f *codec.File) error {
	rows, warnings, err := jsonl.Rows(data)
	if err != nil {
		return err
	}
	f.Warnings = append(f.Warnings, warnings...)
	r, err := readRows(data, rows, f)
	if err != nil {
		return err
	}
	r.Close(jsonl.LineBreak(data))
	return nil
}

func readRows(data []byte, rows []jsonl.Row, f *codec.File) (*reader, error) {
	r := &reader{Reader: session.Reader{File: f, Data: data, Taken: codec.IDs{}}, calls: map[string]bool{}, at: map[string]int{}, own: map[int]string{}}
	dropped := 0
	for _, row := range rows {
		e := event{
			Row: row, kind: rawjson.Text(rawjson.Field(row.Raw, "type")), id: rawjson.Text(rawjson.Field(row.Raw, "id")),
			data: rawjson.Field(row.Raw, "data"), time: rawjson.Time(rawjson.Field(row.Raw, "timestamp")),
		}
		if e.kind == "" {
			return nil, syntax.Missing(row.Raw, "event", "type", "a string").In(data, row.Raw, r.Records+1)
		}
		if rawjson.Field(row.Raw, "agentId") != nil || rawjson.Field(e.data, "parentToolCallId") != nil {
			continue
		}
		if e.kind == "session.snapshot_rewind" {
			to := rawjson.Text(rawjson.Field(e.data, "upToEventId"))
			// The event is missing if the file was rewritten.
			if at := slices.IndexFunc(r.events, func(e event) bool { return e.id == to }); at >= 0 {
				for _, gone := range r.events[at:] {
					if strings.HasSuffix(gone.kind, ".message") {
						dropped++
					}
				}
				r.events = r.events[:at]
			}
			continue
		}
		r.events = append(r.events, e)
	}
	if dropped > 0 {
		f.Warn("%s rewound: kept in the file, but not part of the conversation", codec.Count(dropped, "message"))
	}
	for i := range r.events {
		if err := r.enter(&r.events[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// enter adds the content of e to the journal.
func (r *reader) enter(e *event) error {
	var m core.Message
	switch e.kind {
	case "session.start", "session.resume":
		r.model(rawjson.Field(e.data, "selectedModel"))
	case "session.model_change":
		r.model(rawjson.Field(e.data, "newModel"))
	case "system.message":
		if rawjson.Text(rawjson.Field(e.data, "role")) == "system" {
			r.File.System = rawjson.Text(rawjson.Field(e.data, "content"))
		}
	case "user.message":
		m = core.Message{Role: core.RoleUser, Parts: said(e.data)}
	case "assistant.message":
		parts, bad := r.answer(e.data)
		if bad != nil {
			bad.Offset += rawjson.Offset(e.Raw, e.data)
			return bad.In(r.Data, e.Raw, r.Records+1)
		}
		m = core.Message{Role: core.RoleAssistant, Parts: parts}
		r.model(rawjson.Field(e.data, "model"))
	case "tool.execution_complete":
		if !rawjson.IsString(rawjson.Field(e.data, "toolCallId")) {
			return syntax.Missing(e.Raw, "result", "toolCallId", "a string").In(r.Data, e.Raw, r.Records+1)
		}
		if id := rawjson.Text(rawjson.Field(e.data, "toolCallId")); r.calls[id] { // else the user ran it
			delete(r.calls, id)
			m = core.Message{Role: core.RoleTool, Parts: []core.Part{result(id, e.data)}}
		}
	case "session.compaction_complete":
		if summary := rawjson.Text(rawjson.Field(e.data, "summaryContent")); summary != "" && rawjson.IsTrue(rawjson.Field(e.data, "success")) {
			return r.compact(e, []core.Message{{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(summary)}}})
		}
	case "session.context_cleared":
		return r.compact(e, nil)
	}
	if len(m.Parts) == 0 {
		return nil
	}
	all := r.Take(e.Raw, e.id, e.time, true, []core.Message{m})
	r.at[all[0].ID] = e.At
	return r.File.Add(all...)
}

func (r *reader) model(name []byte) {
	if s := rawjson.Text(name); s != "" {
		r.File.Model = s
	}
}

// compact hides everything before e, with summary in its place.
func (r *reader) compact(e *event, summary []core.Message) error {
	summary = r.Take(e.Raw, e.id, e.time, false, summary)
	r.own[e.At] = ""
	for i := range summary {
		r.own[e.At], r.at[summary[i].ID] = summary[i].ID, e.At
	}
	id := fmt.Sprint("compaction-", e.Line)
	if len(summary) > 0 || r.File.Journal.Len() == 0 {
		if err := session.Compact(r.File, id, "copilot", e.time, "", summary); err != nil {
			return fmt.Errorf("compaction in line %d: %w", e.Line, err)
		}
		return nil
	}
	c := history.Condensation{ID: id, Provider: "copilot", Time: e.time}
	c.Edit.Hide = append(c.Edit.Hide, plain.Each(r.File.View(), func(m core.Message) string { return m.ID })...)
	return r.File.Journal.Condense(c)
}

// said returns the content of a user's message.
func said(data []byte) []core.Part {
	parts := blocks.Text(blocks.OrEmpty(rawjson.Field(data, "transformedContent")))
	if len(parts) == 0 {
		parts = blocks.Text(blocks.OrEmpty(rawjson.Field(data, "content")))
	}
	for a := range rawjson.Elements(rawjson.Field(data, "attachments")) {
		if rawjson.Text(rawjson.Field(a, "type")) == "blob" {
			parts = append(parts, image(a)...)
		}
	}
	return parts
}

// image returns the image that raw holds, if it does.
func image(raw []byte) []core.Part {
	mime, data := rawjson.Text(rawjson.Field(raw, "mimeType")), rawjson.Text(rawjson.Field(raw, "data"))
	if !strings.HasPrefix(mime, "image/") || data == "" {
		return nil
	}
	return []core.Part{core.Image{MediaType: mime, Data: data}}
}

// answer returns the content of an assistant's message. Encrypted reasoning is not sent again: Copilot drops it when
// it resumes a session.
func (r *reader) answer(data []byte) ([]core.Part, *syntax.Error) {
	var parts []core.Part
	if s := rawjson.Text(rawjson.Field(data, "reasoningText")); s != "" {
		parts = append(parts, core.Reasoning{Text: s})
	}
	parts = append(parts, blocks.Text(blocks.OrEmpty(rawjson.Field(data, "content")))...)
	for call := range rawjson.Elements(rawjson.Field(data, "toolRequests")) {
		id, name := rawjson.Field(call, "toolCallId"), rawjson.Field(call, "name")
		if !rawjson.IsString(id) || !rawjson.IsString(name) {
			return nil, syntax.MissingIn(data, call, "tool request", "toolCallId", "a string, and one as name")
		}
		r.calls[rawjson.Text(id)] = true
		parts = append(parts, core.ToolCall{ID: rawjson.Text(id), Name: rawjson.Text(name), Args: arguments(rawjson.Field(call, "arguments"))})
	}
	return parts, nil
}

// arguments returns the arguments of a call as JSON. Some tools take a text.
func arguments(raw []byte) string {
	if rawjson.IsString(raw) && rawjson.IsObject([]byte(rawjson.Text(raw))) {
		return rawjson.Text(raw)
	}
	return string(raw)
}

func result(id string, data []byte) core.ToolResult {
	r := core.ToolResult{CallID: id}
	value := rawjson.Field(data, "result")
	r.Content = blocks.Text(blocks.OrEmpty(rawjson.Field(value, "content")))
	for binary := range rawjson.Elements(rawjson.Field(value, "binaryResultsForLlm")) {
		r.Content = append(r.Content, image(binary)...)
	}
	if success := rawjson.Field(data, "success"); success != nil && !rawjson.IsTrue(success) {
		r.IsError = true
		if len(r.Content) == 0 {
			r.Content = blocks.Text(blocks.OrEmpty(rawjson.Field(rawjson.Field(data, "error"), "message")))
		}
	}
	return r
}
