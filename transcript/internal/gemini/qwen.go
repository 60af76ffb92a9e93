package gemini

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/codec/request"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// Qwen is the format of Qwen Code, a descendant of Gemini CLI: ~/.qwen/projects/PROJECT/chats/ID.jsonl has a line for every event,
//
//	{"uuid": …, "parentUuid": …, "sessionId": …, "timestamp": …, "type": "user", "cwd": …, "message": {"role": "user", "parts": [ … ]}}
//
// of the types user, assistant, tool_result and system; the parts are those of Gemini's API. The lines are a tree, and the conversation
// ends with the last one. A line of the subtype chat_compression sets the whole history, in systemPayload.compressedHistory; that is
// imported as a condensation, and so is a changed conversation written. This follows packages/core/src/services of Qwen Code 0.24
// (chatRecordingService.ts, session-api-history.ts, utils/conversation-chain.ts), which are public, and records of versions 0.14 to 0.22.
var Qwen = codec.Codec{
	Name:    "qwen",
	Doc:     "Qwen Code session: ~/.qwen/projects/*/chats/*.jsonl",
	Detect:  detectQwen,
	Read:    readQwen,
	Write:   writeQwen,
	Convert: convertQwen,
}

func detectQwen(data []byte) bool {
	for raw := range jsonl.Head(data, 100) {
		switch message := rawjson.Field(raw, "message"); {
		case !rawjson.IsString(rawjson.Field(raw, "uuid")) || !rawjson.IsString(rawjson.Field(raw, "sessionId")):
			return false
		case message != nil:
			return rawjson.IsArray(rawjson.Field(message, "parts"))
		case rawjson.Text(rawjson.Field(raw, "type")) == "system" && rawjson.Field(raw, "systemPayload") != nil:
			return true
		}
	}
	return false
}

// byProgram are the subtypes of a user's line that Qwen Code wrote itself.
var byProgram = rawjson.Set("notification", "goal_runtime", "goal_control", "agent_retry", "background_task_completed")

func readQwen(data []byte, f *codec.File) error {
	rows, warnings, err := jsonl.Rows(data)
	if err != nil {
		return err
	}
	f.Warnings = append(f.Warnings, warnings...)
	s := session.Reader{File: f, Data: data, Taken: codec.IDs{}}
	live, left := qwenBranch(rows, f), 0
	for i, row := range rows {
		if !live[i] {
			left += min(1, len(rawjson.Field(row.Raw, "message")))
			continue
		}
		id, when := rawjson.Text(rawjson.Field(row.Raw, "uuid")), rawjson.Time(rawjson.Field(row.Raw, "timestamp"))
		all, bad := decodeQwen(row.Raw)
		if bad != nil {
			return bad.In(data, row.Raw, s.Records+1)
		}
		if model := rawjson.Text(rawjson.Field(row.Raw, "model")); model != "" {
			f.Model = model
		}
		if history := rawjson.Field(rawjson.Field(row.Raw, "systemPayload"), "compressedHistory"); rawjson.IsArray(history) {
			if err := setQwen(&s, row, id, when, history); err != nil {
				return fmt.Errorf("the history that line %d sets: %w", row.Line, err)
			}
		} else if len(all) > 0 {
			if err := s.Add(row.Raw, id, when, all); err != nil {
				return err
			}
		}
	}
	if left > 0 {
		f.Warn("%s on abandoned branches: kept in the file, but not part of the conversation", codec.Count(left, "message"))
	}
	s.Close(jsonl.LineBreak(data))
	return nil
}

// qwenBranch returns which rows are on the branch of the last one. Where a parent is missing the row before takes its place, as in Qwen
// Code, but for a rewind, which begins anew.
func qwenBranch(rows []jsonl.Row, f *codec.File) []bool {
	text := func(i int, name string) string { return rawjson.Text(rawjson.Field(rows[i].Raw, name)) }
	at, live := map[string][]int{}, make([]bool, len(rows)) // a message may be in several rows
	for i := range rows {
		at[text(i, "uuid")] = append(at[text(i, "uuid")], i)
	}
	for i := len(rows) - 1; i >= 0 && !live[i]; {
		same := at[text(i, "uuid")]
		for _, k := range same {
			live[k] = true
		}
		first, up := same[0], text(same[0], "parentUuid")
		if above := at[up]; above != nil && up != "" {
			i = above[len(above)-1]
		} else if i = -1; up != "" && text(first, "subtype") != "rewind" {
			f.Warn("line %d follows one that is missing: taken to follow the line before it", rows[first].Line)
			i = first - 1
		}
	}
	return live
}

// decodeQwen returns the messages of the line raw; none if it is not sent.
func decodeQwen(raw []byte) ([]core.Message, *syntax.Error) {
	message, subtype := rawjson.Field(raw, "message"), rawjson.Text(rawjson.Field(raw, "subtype"))
	if message == nil || rawjson.Text(rawjson.Field(raw, "type")) == "system" || subtype == "realtime_message" || subtype == "code_mode_tool_result" {
		return nil, nil
	}
	all, bad := decodeContent(raw, message, byProgram[subtype] || rawjson.Text(rawjson.Field(raw, "type")) == "tool_result") // a file beside it
	status := rawjson.Text(rawjson.Field(rawjson.Field(raw, "toolCallResult"), "status"))
	for i := range all {
		for k, p := range all[i].Parts {
			if r, ok := p.(core.ToolResult); ok {
				r.IsError = r.IsError || status == "error" || status == "cancelled"
				all[i].Parts[k] = r
			}
		}
	}
	return all, bad
}

// decodeContent returns the messages that the content message, a part of raw, is: results apart from what was said.
func decodeContent(raw, message []byte, program bool) ([]core.Message, *syntax.Error) {
	role := core.RoleUser
	if rawjson.Text(rawjson.Field(message, "role")) == "model" {
		role = core.RoleAssistant
	}
	parts, bad := decodeGemini(raw, rawjson.Field(message, "parts"))
	return session.Split(role, program, parts...), bad
}

// setQwen imports a history that a line set: messages at its end that were there before stay, the others come in their place.
func setQwen(s *session.Reader, row jsonl.Row, id string, when time.Time, list []byte) error {
	var all []core.Message
	for content := range rawjson.Elements(list) {
		messages, bad := decodeContent(row.Raw, content, false)
		if bad != nil {
			return bad
		}
		all = append(all, messages...)
	}
	view, kept, first := s.File.View(), 0, ""
	for kept < min(len(view), len(all)) && same(view[len(view)-1-kept], all[len(all)-1-kept]) {
		kept++
		first = view[len(view)-kept].ID
	}
	all = all[:len(all)-kept]
	if len(all) > 0 {
		all = s.Take(row.Raw, id, when, false, all)
	}
	for i := range all {
		all[i].Kind = core.KindSummary
	}
	return session.Compact(s.File, cmp.Or(id, fmt.Sprint("history-", row.Line)), "qwen", when, first, all)
}

func same(a, b core.Message) bool { return a.Role == b.Role && core.EqualParts(a.Parts, b.Parts) }

// writeQwen writes the file as it was. After it come the messages that were appended or, if something else changed, a line that sets the
// whole history to the view, as Qwen Code writes when it compresses one.
func writeQwen(f *codec.File, out *codec.Output) error {
	data, done := f.StartAgain(out)
	if done {
		return nil
	}
	was := &codec.File{Journal: history.New()}
	if err := readQwen(data, was); err != nil {
		return err
	}
	w := qwenWriter{writer: writer{model: f.Model, names: request.ToolNames(f)}, lines: out, ending: jsonl.LineBreak(data)}
	if rows, _, _ := jsonl.Rows(data); len(rows) > 0 {
		last := rows[len(rows)-1]
		w.like = last.Raw
		out.Add(data[:last.At+len(last.Raw)], []byte(w.ending))
	}
	view, old := f.View(), was.View()
	if len(view) < len(old) || !slices.EqualFunc(old, view[:len(old)], same) {
		contents := make([][]byte, len(view))
		for i := range view {
			contents[i] = w.content(&view[i])
			w.writer.when = view[i].Time
		}
		w.add("system", `"subtype":"chat_compression","systemPayload":{"info":{"originalTokenCount":0,"newTokenCount":0,"compressionStatus":1},`+
			`"compressedHistory":?}`, rawjson.Array(contents))
		return nil
	}
	for i := range view[len(old):] {
		w.message(&view[len(old)+i])
	}
	return nil
}

func convertQwen(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	if system != "" {
		out.Warn("", "the system prompt was left out: Qwen Code has its own")
	}
	out.Warn("", "the directory of the session is not known: it belongs to no project")
	entries, begin, _ := convert.Entries(f.Journal, turns)
	like := rawjson.Append(nil, `{"sessionId":?,"cwd":"/"}`, f.Journal.ID())
	w := qwenWriter{writer: writer{model: f.Model, names: map[string]string{}, when: begin}, lines: out, like: like, ending: "\n"}
	for i := range entries {
		w.message(&entries[i].Message)
	}
	return nil
}

// A qwenWriter writes lines.
type qwenWriter struct {
	writer writer
	lines  *codec.Output
	like   []byte // the line before
	ending string
}

// content returns m as Gemini's API has it. The media of a result stand in its response.
func (w *qwenWriter) content(m *core.Message) []byte {
	role := "user"
	if m.Role == core.RoleAssistant {
		role = "model"
	}
	parts := make([][]byte, len(m.Parts))
	for i, p := range m.Parts {
		if c, ok := p.(core.ToolCall); ok {
			w.writer.names[c.ID] = c.Name
		}
		parts[i] = w.writer.part(nil, p)
		var media [][]byte
		r, _ := p.(core.ToolResult)
		for _, inner := range r.Content {
			if _, text := inner.(core.Text); !text {
				media = append(media, w.writer.part(nil, inner))
			}
		}
		if len(media) > 0 {
			answer := rawjson.SetField(rawjson.Field(parts[i], "functionResponse"), "parts", rawjson.Array(media))
			parts[i] = rawjson.SetField(parts[i], "functionResponse", answer)
		}
	}
	return rawjson.Append(nil, `{"role":?,"parts":?}`, role, rawjson.Array(parts))
}

func (w *qwenWriter) message(m *core.Message) {
	if !m.Time.IsZero() {
		w.writer.when = m.Time
	}
	content := w.content(m)
	switch m.Role {
	case core.RoleAssistant:
		w.add("assistant", `"model":?,"message":?`, w.writer.model, content)
	case core.RoleTool:
		last, status := core.ToolResult{}, "success"
		for _, p := range m.Parts {
			if last, _ = p.(core.ToolResult); last.IsError {
				status = "error"
			}
		}
		w.add("tool_result", `"message":?,"toolCallResult":{"callId":?,"status":?}`, content, last.CallID, status)
	case core.RoleUser, core.RoleSystem:
		w.add("user", `"message":?`, content)
	}
}

// add adds a line of the given type with the members text, as of [rawjson.Append].
func (w *qwenWriter) add(kind, text string, args ...any) {
	rest := rawjson.Append(nil, text, args...)
	of := func(name string) string { return rawjson.Text(rawjson.Field(w.like, name)) }
	w.like = rawjson.Append(nil, `{"uuid":?,"parentUuid":?,"sessionId":?,"timestamp":?,"type":?,"cwd":?,"version":?,?}`,
		uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %s", w.like, rest)).String(), rawjson.QuoteOrNull(of("uuid")), of("sessionId"),
		w.writer.when, kind, of("cwd"), of("version"), rest)
	w.lines.Add(jsonl.Line(w.like), []byte(w.ending))
}
