package exports

import (
	"encoding/json"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
)

// Codecs are the formats, in the order of detection.
var Codecs = []codec.Codec{
	row("codex-exec", "Codex event stream: codex exec --json", "codex exec", detectExec, read(lines, decodeExec)),
	row("goose", "goose session: *.jsonl of old versions, or an export", "goose", detectGoose, read(gooseRecords, decodeGoose)),
	row("cursor", "Cursor transcript: agent-transcripts/*.jsonl or .txt", "Cursor", detectCursor, read(cursorRecords, decodeCursor)),
	row("vscode", "VS Code chat: chatSessions/*.json or .jsonl", "VS Code", detectVSCode, read(vscodeRequests, decodeVSCode)),
	row("openhands", "OpenHands events: a trajectory, or lines", "OpenHands", detectOpenHands, read(openHandsEvents, decodeOpenHands)),
	row("swe-agent", "SWE-agent trajectory: *.traj", "SWE-agent", detectSWE, read(list("history"), decodeSWE)),
	row("chatgpt", "ChatGPT export: one conversation", "ChatGPT", has("mapping"), read(chatgptNodes, decodeChatGPT)),
	row("claude-ai", "Claude.ai export: one conversation", "Claude.ai", has("chat_messages"), read(claudeMessages, decodeClaude)),
	row("specstory", "SpecStory history: .specstory/history/*.md", "SpecStory", detectSpec, read(specSections, decodeSpec)),
}

func row(name, doc, tool string, detect func([]byte) bool, read func([]byte, *codec.File) error) codec.Codec {
	return codec.Codec{Name: name, Doc: doc, Tool: tool, Detect: detect, Read: read}
}

func detectExec(data []byte) bool {
	for raw := range jsonl.Head(data, 8) {
		if text(raw, "type") == "thread.started" {
			return true
		}
	}
	return false
}

// Events of codex exec: {"type": "item.completed", "item": {"id": …, "type": "agent_message", "text": …}}. The prompt is not among them.
func decodeExec(r *reader, raw []byte) error {
	item := at(raw, "item")
	if text(raw, "type") != "item.completed" {
		return nil
	}
	var parts []core.Part
	call := func(name string, args, said []byte) {
		failed := text(item, "status") == "failed" || text(item, "status") == "declined"
		parts = []core.Part{r.call(text(item, "id"), name, args), r.result(text(item, "id"), "", failed, said)}
	}
	r.pairs.Turn()
	switch kind := text(item, "type"); kind {
	case "agent_message":
		parts = []core.Part{core.Text(text(item, "text"))}
	case "reasoning":
		parts = []core.Part{core.Reasoning{Text: text(item, "text")}}
	case "command_execution":
		call("shell", quoted("command", text(item, "command")), at(item, "aggregated_output"))
	case "mcp_tool_call":
		said := at(item, "result", "content")
		if message := at(item, "error", "message"); message != nil {
			said = message
		}
		call(text(item, "server")+"__"+text(item, "tool"), at(item, "arguments"), said)
	case "", "error", "todo_list":
	default: // a change of files, a search
		call(kind, rawjson.CutField(rawjson.CutField(item, "id"), "type"), nil)
	}
	return r.add(raw, text(item, "id"), rawjson.Time(nil), false, core.RoleAssistant, parts...)
}

// A session of goose: a line about it, {"working_dir": …, "description": …}, and one for each message, {"role": "user", "created": 1790848800,
// "content": [{"type": "toolRequest", "id": …, "toolCall": {"status": "success", "value": {"name": …, "arguments": …}}}]}. An export is an
// object with the messages as its "conversation", and goose run --output-format stream-json has them in lines of type message.
func gooseRecords(data []byte, r *reader) ([][]byte, error) {
	if rawjson.IsArray(at(data, "conversation")) {
		return list("conversation")(data, r)
	}
	return lines(data, r)
}

func detectGoose(data []byte) bool {
	if rawjson.IsArray(at(data, "conversation")) {
		return at(data, "working_dir") != nil
	}
	for raw := range jsonl.Head(data, 8) {
		if at(raw, "working_dir") != nil && at(raw, "description") != nil {
			return true
		}
		if created := at(raw, "message", "created"); created != nil && text(raw, "type") == "message" {
			return rawjson.IsArray(at(raw, "message", "content"))
		}
	}
	return false
}

func decodeGoose(r *reader, raw []byte) error {
	m := raw
	if inner := at(raw, "message"); rawjson.IsObject(inner) {
		m = inner
	}
	role, no := core.Role(text(m, "role")), func(name string) bool { return string(at(m, "metadata", name)) == "false" }
	if role != core.RoleUser && role != core.RoleAssistant || no("agentVisible") {
		return nil // about the session, or hidden by a compaction
	}
	return r.add(raw, text(m, "id"), seconds(at(m, "created")), no("userVisible"), role, r.content(at(m, "content"))...)
}

// Cursor writes {"role": "user", "message": {"content": [{"type": "text", "text": "<timestamp>…</timestamp>\n<user_query>\n…"}]}}, without
// times, IDs and results. A query on the line of its tag is Cursor's own. Before 2026 it wrote text: "user:" and "assistant:" (or "A:") on
// lines of their own, "[Thinking] …", "[Tool call] Shell" with "  command: …" below it, and "[Tool result] Shell".
func detectCursor(data []byte) bool {
	for raw := range jsonl.Head(data, 1) {
		return text(raw, "role") != "" && at(raw, "type") == nil && rawjson.IsArray(at(raw, "message", "content")) ||
			string(raw) == "user:" && strings.Contains(string(data), "<user_query>")
	}
	return false
}

func cursorRecords(data []byte, r *reader) ([][]byte, error) {
	if rawjson.IsObject(data[rawjson.SkipSpace(data, 0):]) {
		r.session.File.Warn("Cursor's transcripts have no results of tools")
		return lines(data, r)
	}
	return r.sections(data, func(line string) bool { return cursorMark(line) != "" }), nil
}

// cursorMark returns the mark that begins a section of an old transcript; empty if the line has none.
func cursorMark(line string) string {
	for _, mark := range []string{"user:", "assistant:", "A:", "[Thinking]", "[Tool call] ", "[Tool result]"} {
		if strings.HasPrefix(line, mark) && (mark[0] == '[' || strings.TrimSpace(line) == mark) {
			return mark
		}
	}
	return ""
}

func decodeCursor(r *reader, raw []byte) error {
	if rawjson.IsObject(raw) {
		role := core.Role(text(raw, "role"))
		if role == core.RoleUser {
			return cursorUser(r, raw, joined(r.content(at(raw, "message", "content"))))
		}
		r.pairs.Turn()
		return r.add(raw, "", rawjson.Time(nil), false, core.RoleAssistant, r.content(at(raw, "message", "content"))...)
	}
	mark := cursorMark(strings.SplitN(string(raw), "\n", 2)[0])
	body := strings.TrimSpace(strings.TrimPrefix(string(raw), mark))
	name, rest, _ := strings.Cut(body, "\n")
	var p core.Part
	switch mark {
	case "user:":
		return cursorUser(r, raw, body)
	case "[Thinking]":
		p = core.Reasoning{Text: body}
	case "[Tool call] ":
		p = r.call("", strings.TrimSpace(name), quoted("input", strings.Trim(rest, "\n")))
	case "[Tool result]":
		p = r.result("", strings.TrimSpace(name), false, saying(rest))
	default:
		p = core.Text(body)
	}
	return r.add(raw, "", rawjson.Time(nil), false, core.RoleAssistant, p)
}

// cursorUser adds what Cursor sent as the user: the surroundings before the query, and the query.
func cursorUser(r *reader, raw []byte, said string) error {
	before, query, found := strings.Cut(said, "<user_query>")
	if end := strings.LastIndex(query, "</user_query>"); end >= 0 {
		query = query[:end]
	} else if !found {
		before, query = "", said
	}
	own := found && !strings.HasPrefix(strings.TrimLeft(query, "\r"), "\n")
	return r.add(raw, "", rawjson.Time(nil), own, core.RoleUser, core.Text(strings.TrimSpace(before)), core.Text(strings.TrimSpace(query)))
}

// SWE-agent's history: messages in OpenAI's form, and the action of an answer that has no call. The answer to it is the user's there.
func detectSWE(data []byte) bool {
	m := first(data, "history")
	return rawjson.IsArray(at(data, "history")) && text(m, "role") == "system" && at(m, "content") != nil && at(m, "action") == nil
}

func decodeSWE(r *reader, raw []byte) error {
	role, program := core.Role(text(raw, "role")), false
	var parts []core.Part
	switch said := r.content(at(raw, "content")); role {
	case core.RoleAssistant:
		r.pairs.Turn()
		parts = said
		calls := at(raw, "tool_calls")
		for c := range rawjson.Elements(calls) {
			args := []byte(text(c, "function", "arguments"))
			if !json.Valid(args) {
				args = at(c, "function", "arguments")
			}
			parts = append(parts, r.call(text(c, "id"), text(c, "function", "name"), args))
		}
		if action := text(raw, "action"); action != "" && len(parts) == len(said) {
			parts = []core.Part{core.Text(text(raw, "thought")), r.call("", "shell", quoted("command", action))}
		}
	case core.RoleTool, core.RoleUser:
		if parts = said; role == core.RoleTool || r.pairs.Open() {
			of := ""
			for id := range rawjson.Elements(at(raw, "tool_call_ids")) {
				of = rawjson.Text(id)
			}
			parts = []core.Part{r.result(of, "", false, at(raw, "content"))}
		}
	case core.RoleSystem:
		parts = said
	default:
		if role != "" {
			return syntax.WrongRole(raw, at(raw, "role"), "system, user, assistant or tool")
		}
		role, program, parts = core.RoleUser, true, said // a demonstration
	}
	return r.add(raw, "", rawjson.Time(nil), program, role, parts...)
}

// OpenHands' events: {"id": 8, "source": "agent", "action": "run", "args": {"command": …, "thought": …}} and {"cause": 8, "observation":
// "run", "content": …}; since 2026 {"kind": "ActionEvent", "tool_call": {"id": …, "name": …, "arguments": …}} and {"kind":
// "ObservationEvent", "tool_call_id": …, "observation": {"content": [ … ]}}.
func openHandsEvents(data []byte, r *reader) ([][]byte, error) {
	if isEvent(first(data, eventLists...)) {
		return list(eventLists...)(data, r)
	}
	return lines(data, r)
}

var eventLists = []string{"history", "trajectory", "events"}

func isEvent(raw []byte) bool {
	old := text(raw, "action")+text(raw, "observation") != "" && at(raw, "id") != nil
	return text(raw, "source") != "" && (old || strings.HasSuffix(text(raw, "kind"), "Event"))
}

func detectOpenHands(data []byte) bool {
	for raw := range jsonl.Head(data, 1) {
		return isEvent(raw) || isEvent(first(data, eventLists...))
	}
	return false
}

func decodeOpenHands(r *reader, raw []byte) error {
	role, program := core.RoleAssistant, false
	action, observed := text(raw, "action"), text(raw, "observation")
	id := text(raw, "tool_call_metadata", "tool_call_id") + text(raw, "tool_call_id")
	var parts []core.Part
	switch kind := text(raw, "kind"); {
	case kind == "SystemPromptEvent":
		role, parts = core.RoleSystem, r.content(at(raw, "system_prompt"))
	case kind == "MessageEvent":
		role, parts = core.Role(text(raw, "llm_message", "role")), r.content(at(raw, "llm_message", "content"))
	case kind == "ActionEvent":
		c := at(raw, "tool_call")
		parts = append(r.content(at(raw, "thought")), r.call(text(c, "id"), text(c, "name"), []byte(text(c, "arguments"))))
	case kind == "AgentErrorEvent":
		parts = []core.Part{r.result(id, "", true, at(raw, "error"))}
	case kind == "ObservationEvent":
		said := at(raw, "observation")
		parts = []core.Part{r.result(id, text(raw, "tool_name"), rawjson.IsTrue(at(said, "is_error")), at(said, "content"))}
	case action == "system":
		role, parts = core.RoleSystem, r.content(at(raw, "args", "content"))
	case action == "message":
		if parts = r.content(at(raw, "args", "content")); text(raw, "source") == "user" {
			role = core.RoleUser
		}
	case action == "change_agent_state" || action == "recall" || action == "null" || observed == "agent_state_changed" || observed == "null":
		return nil
	case action != "" && text(raw, "source") == "agent":
		name := text(raw, "tool_call_metadata", "function_name")
		if name == "" {
			name, id = action, "event-"+string(at(raw, "id"))
		}
		parts = []core.Part{core.Text(text(raw, "args", "thought")), r.call(id, name, rawjson.CutField(at(raw, "args"), "thought"))}
	case observed == "recall":
		role, program, parts = core.RoleUser, true, r.content(at(raw, "content"))
	case observed != "":
		if id == "" {
			id = "event-" + string(at(raw, "cause"))
		}
		failed := observed == "error" || rawjson.Int(at(raw, "extras", "metadata", "exit_code")) > 0
		parts = []core.Part{r.result(id, "", failed, at(raw, "content"))}
	}
	return r.add(raw, "", rawjson.Time(at(raw, "timestamp")), program, role, parts...)
}
