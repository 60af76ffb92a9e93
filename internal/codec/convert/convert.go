// Package convert passes conversations of one format to the encoders of another.
package convert

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/rawjson"
)

// Input returns the view of f as input of package apimessage. Losses become warnings of out.
func Input(f *codec.File, api *apimessage.API, out *codec.Output) *apimessage.Input {
	foreign := f.Vendor != "" && string(f.Vendor) != api.Vendor
	return &apimessage.Input{Messages: answer(f.View()), System: f.System, Foreign: foreign, Warn: out.Warn}
}

// answer returns view with results of calls where a text has them: Cline writes "[read_file for 'a.go'] Result:" above one or before it.
func answer(view []core.Message) []core.Message {
	view = slices.Clone(view)
	var open []core.ToolCall
	for i := range view {
		parts := slices.Clone(view[i].Parts)
		for j := 0; j < len(parts); j++ {
			switch p := parts[j].(type) {
			case core.ToolCall:
				open = append(open, p)
			case core.ToolResult:
				open = slices.DeleteFunc(open, func(c core.ToolCall) bool { return c.ID == p.CallID })
			case core.Text:
				head, text, found := strings.Cut(string(p), "] Result:")
				n := slices.IndexFunc(open, func(c core.ToolCall) bool { return head == "["+c.Name || strings.HasPrefix(head, "["+c.Name+" for '") })
				if !found || n < 0 || view[i].Role != core.RoleUser {
					continue
				}
				if next, ok := parts[min(j+1, len(parts)-1)].(core.Text); ok && text == "" && !strings.HasPrefix(string(next), "<") {
					text, parts = string(next), slices.Delete(parts, j+1, j+2)
				}
				parts[j] = core.ToolResult{CallID: open[n].ID, Content: []core.Part{core.Text(strings.TrimPrefix(text, "\n"))}}
				open = slices.Delete(open, n, n+1)
			case core.Image, core.Reasoning, core.Opaque:
			}
		}
		view[i].Parts = parts
	}
	return view
}

// Turns returns the view of f as turns of api, and the system prompt if api takes it apart.
func Turns(f *codec.File, api *apimessage.API, out *codec.Output) (turns []apimessage.Turn, system string) {
	turns, system = api.Turns(Input(f, api, out))
	WarnFields(f, f.View(), out)
	return turns, system
}

// Session returns the view of f as turns of a session of an agent that has a system prompt of its own.
func Session(f *codec.File, agent string, out *codec.Output) []apimessage.Turn {
	turns, system := Turns(f, &apimessage.Anthropic, out)
	if system != "" {
		out.Warn("", "the system prompt was left out: %s has its own", agent)
	}
	return turns
}

// Entries returns turns as a timeline of visible messages, each result as a message of its own, and the times of the
// first and the last turn.
func Entries(j *history.Journal, turns []apimessage.Turn) (entries []history.Entry, begin, end time.Time) {
	for _, t := range turns {
		source, _ := j.Message(t.ID)
		if begin.IsZero() {
			begin = source.Time
		}
		end = source.Time
		if len(t.Parts) > 0 {
			entries = append(entries, history.Entry{Message: core.Message{ID: t.ID, Role: t.Role, Time: source.Time, Parts: t.Parts}})
		}
		for _, r := range t.Results {
			entries = append(entries, history.Entry{Message: core.Message{ID: t.ID, Role: core.RoleTool, Time: source.Time, Parts: []core.Part{r}}})
		}
	}
	return entries, begin, end
}

// messageFields and blockFields are the fields of a message and of its content blocks that a
// conversion understands. All others are metadata of the tool.
var (
	messageFields = rawjson.Set("role", "content", "refusal", "reasoning_content", "reasoning", "tool_calls",
		"tool_call_id", "function_call", "audio", "message", "payload", "type",
		"info", "parts", "thoughts", "toolCalls", "toolCallId", "isError", "toolCallResult", "usageMetadata")
	blockFields = rawjson.Set("type", "text", "id", "name", "input", "tool_use_id", "content", "is_error", "source",
		"thinking", "signature", "data", "image_url", "refusal", "arguments", "thinkingSignature", "mimeType")
	requestFields = rawjson.Set("messages", "system", "tools", "functions", "model")
)

// WarnFields warns of the fields of messages and file that have no place in another format.
func WarnFields(f *codec.File, view []core.Message, out *codec.Output) {
	lost := map[string]string{} // field to the first message that has it
	note := func(raw []byte, known map[string]bool, id string) {
		for k := range rawjson.Fields(raw) {
			if _, seen := lost[string(k)]; !seen && !known[string(k)] {
				lost[string(k)] = id
			}
		}
	}
	for i := range view {
		source := []byte(view[i].Source)
		if source == nil {
			source = f.SourceOf(view[i].ID)
		}
		note(source, messageFields, view[i].ID)
		if inner := rawjson.Field(source, "message"); inner != nil { // a record about a message
			note(inner, messageFields, view[i].ID)
			source = inner
		}
		for block := range rawjson.Elements(rawjson.Field(source, "content")) {
			note(block, blockFields, view[i].ID)
		}
	}
	warn := func(of string) {
		var all []string
		for k, id := range lost {
			if all = append(all, strconv.Quote(k)); id != "" {
				all[len(all)-1] += fmt.Sprintf(" (first in message %s)", id)
			}
		}
		if slices.Sort(all); len(all) > 0 {
			out.Warn("", "fields of %s without a place in the new format were left out: %s", of, strings.Join(all, ", "))
		}
	}
	warn("messages")
	clear(lost)
	file := slices.Concat(f.Envelope.Head, f.Envelope.Tail) // an object without its messages
	if sep := string(f.Envelope.Sep); sep == "\n" || sep == "\r\n" {
		file = nil
		out.Warn("", "lines of the file that are not messages of the conversation were left out")
	}
	note(file, requestFields, "")
	for block := range rawjson.Elements(rawjson.Field(file, "system")) {
		note(block, blockFields, "")
	}
	if f.Tools != nil {
		lost["tools"] = ""
	}
	warn("the file")
}
