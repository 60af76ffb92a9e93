// Package exports reads what programs record or export of conversations and cannot take back changed.
//
// No format is documented by its maker, and most follow few examples: vscode 3 files of 2 authors; swe-agent 22 files of one repository;
// codex-exec one stream and captured lines; chatgpt 4 conversations of one author; goose one
// captured stream and lines of other projects' tests.
package exports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/request"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// Codecs are the formats, in the order of detection.
var Codecs = []codec.Codec{
	row("codex-exec", "Codex event stream: codex exec --json", "codex exec",
		"type=thread.started", format{id: "item.id", decode: decodeExec}),
	row("goose", "goose session: *.jsonl of old versions, or an export", "goose",
		"conversation[ working_dir|working_dir description|type=message message.created message.content[",
		format{list: "conversation?", id: "message.id|id", when: "message.created|created", decode: decodeGoose}),
	row("vscode", "VS Code chat: chatSessions/*.json", "VS Code", "requests[ responderUsername|requests[ sessionId",
		format{list: "requests", id: "requestId", when: "timestamp", model: "modelId", decode: decodeVSCode}),
	row("swe-agent", "SWE-agent trajectory: *.traj", "SWE-agent",
		"history.0.role=system history.0.content !history.0.action", format{list: "history", decode: decodeSWE}),
	row("chatgpt", "ChatGPT export: one conversation", "ChatGPT", "mapping{|0.mapping{",
		format{id: "id", when: "create_time", model: "metadata.model_slug", find: findChatGPT, decode: decodeChatGPT}),
}

// A format says where a file has its records, and what a record is. Paths are as of at.
type format struct {
	list            string                                         // the array of the records; empty if they are lines, with "?" if they may be
	id, when, model string                                         // of a record
	find            func(data []byte, r *reader) ([][]byte, error) // the records, in order; nil if they are in the list or lines
	decode          func(r *reader, raw []byte) []core.Message     // what a record says
}

// row returns a codec. One of the tests, as of holds and separated by bars, must hold for the file or one of its first lines.
func row(name, doc, tool, tests string, f format) codec.Codec {
	return codec.Codec{Name: name, Doc: doc, Tool: tool, Read: f.read, Detect: func(data []byte) bool {
		heads := append(slices.Collect(jsonl.Head(data, 8)), data)
		return slices.ContainsFunc(strings.Split(tests, "|"), func(test string) bool {
			return slices.ContainsFunc(heads, func(raw []byte) bool { return holds(raw, test) })
		})
	}}
}

// holds returns whether raw begins with test or has all members that it names: "path" (with "{" or "[", of this kind), "path=text", "!path".
func holds(raw []byte, test string) bool {
	if test[0] == '<' {
		return bytes.HasPrefix(raw, []byte(test))
	}
	for one := range strings.FieldsSeq(test) {
		path, want, equal := strings.Cut(strings.Trim(one, "!{["), "=")
		found, kind := at(raw, path), one[len(one)-1]
		if (one[0] == '!') != (found == nil) || equal && rawjson.Text(found) != want || (kind == '{' || kind == '[') && found[0] != kind {
			return false
		}
	}
	return true
}

// A reader makes messages of records.
type reader struct {
	session session.Reader
	pairs   request.Pairs
	sep     []byte // between two records
	loose   bool   // the records are not in order, or no JSON: all of the file is kept beside the messages
}

func (f *format) read(data []byte, file *codec.File) error {
	r := &reader{session: session.Reader{File: file, Data: data, Taken: codec.IDs{}}, sep: []byte{','}}
	records, err := f.records(data, r)
	for _, raw := range records {
		all := f.decode(r, raw)
		if len(all) == 0 {
			continue
		}
		switch role := all[0].Role; {
		case role == core.RoleSystem && len(r.session.Places) == 0:
			file.System = blocks.Join(append([]core.Part{core.Text(file.System)}, all[0].Parts...))
			continue
		case !slices.Contains([]core.Role{core.RoleSystem, core.RoleUser, core.RoleAssistant, core.RoleTool}, role):
			return syntax.WrongRole(raw, at(raw, "author.role|role"), "system, user, assistant or tool").In(data, raw, r.session.Records+1)
		}
		if model := text(raw, f.model); model != "" {
			file.Model = model
		}
		if all = r.session.Take(raw, text(raw, f.id), moment(at(raw, f.when)), !r.loose, all); r.loose {
			all[0].Source = nil
		}
		if err := file.Add(all...); err != nil {
			return err
		}
	}
	r.session.Close(r.sep)
	return err
}

// records finds the elements of the list, or the objects of a file of lines, after what a shell or a wrapper may have put before them.
func (f *format) records(data []byte, r *reader) (records [][]byte, err error) {
	if f.find != nil {
		return f.find(data, r)
	}
	list, optional := strings.CutSuffix(f.list, "?")
	array := at(data, list)
	if list != "" && !optional || rawjson.IsArray(array) {
		if err := syntax.Validate(data); err != nil {
			return nil, err
		}
		if !rawjson.IsArray(array) {
			return nil, syntax.NoMessages(data, list, array)
		}
		return slices.Collect(rawjson.Elements(array)), nil
	}
	for rest := data; len(rest) > 0 && rest[0] != '{'; data = rest {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	r.sep = jsonl.LineBreak(data)
	rows, warnings, err := jsonl.Rows(data)
	r.session.File.Warnings = append(r.session.File.Warnings, warnings...)
	records = append(records, plain.Each(rows, func(row jsonl.Row) []byte { return row.Raw })...)
	return records, err
}

// at returns the value at a path: members, separated by dots; 0 is the first element of an array. Of several paths, separated by bars,
// the first that leads somewhere counts.
func at(raw []byte, paths string) []byte {
	for path := range strings.SplitSeq(paths, "|") {
		found := raw
		for name := range strings.SplitSeq(path, ".") {
			outer := found
			if found = rawjson.Field(outer, name); name == "0" {
				for found = range rawjson.Elements(outer) {
					break
				}
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

func text(raw []byte, paths string) string { return rawjson.Text(at(raw, paths)) }

// moment returns the time that raw is: a text, or seconds or milliseconds after 1970.
func moment(raw []byte) time.Time {
	var s float64
	if json.Unmarshal(raw, &s) != nil || s <= 0 {
		return rawjson.Time(raw)
	}
	if s < 1e11 {
		s *= 1000
	}
	return time.UnixMilli(int64(min(s, 1e15))).UTC()
}

// content returns the parts of a string, a block or an array of them.
func (r *reader) content(raw []byte) (parts []core.Part) {
	switch {
	case rawjson.IsString(raw):
		return []core.Part{core.Text(rawjson.Text(raw))}
	case rawjson.IsObject(raw):
		return []core.Part{r.block(raw)}
	}
	for e := range rawjson.Elements(raw) {
		parts = append(parts, r.content(e)...)
	}
	return parts
}

// block returns the part that raw is, in the forms of Anthropic, MCP, goose and codex exec.
func (r *reader) block(raw []byte) core.Part {
	kind := text(raw, "type|content_type")
	switch kind {
	case "text", "input_text", "output_text", "agent_message":
		return core.Text(text(raw, "text"))
	case "thinking", "reasoning":
		return core.Reasoning{Text: text(raw, "thinking|text")}
	case "image":
		if data := text(raw, "data"); data != "" {
			return core.Image{MediaType: text(raw, "mimeType"), Data: data}
		}
	case "tool_use", "toolRequest":
		return r.call(text(raw, "id"), text(raw, "name|toolCall.value.name"), at(raw, "input|toolCall.value.arguments"))
	case "tool_result", "toolResponse":
		failed := rawjson.IsTrue(at(raw, "is_error|toolResult.value.isError")) || text(raw, "toolResult.status") == "error"
		said := at(raw, "content|toolResult.value.content|toolResult.error|toolResult.value")
		return r.result(text(raw, "tool_use_id|id"), text(raw, "name"), failed, said)
	}
	return core.Opaque{Kind: kind, JSON: string(raw)}
}

// call returns a call; args may be a text that has them.
func (r *reader) call(id, name string, args []byte) core.Part {
	if inner := []byte(rawjson.Text(args)); json.Valid(inner) && rawjson.IsObject(inner) {
		args = inner
	}
	return core.ToolCall{ID: r.pairs.Call(id, name), Name: name, Args: string(args)}
}

func (r *reader) result(id, name string, failed bool, said []byte) core.Part {
	result := core.ToolResult{CallID: r.pairs.Result(id, name), IsError: failed}
	for _, p := range (&reader{}).content(said) {
		switch p.(type) {
		case core.Text, core.Image, core.Opaque:
			result.Content = append(result.Content, p)
		default:
		}
	}
	return result
}

// quoted returns an object with one text, as the arguments of a call whose form the file does not keep; saying returns a JSON string.
func quoted(name, value string) []byte { return rawjson.Append(nil, `{?:?}`, name, value) }

func saying(text string) []byte { return rawjson.AppendQuote(nil, strings.TrimRight(text, "\n")) }

// Events of codex exec: {"type": "item.completed", "item": {"id": …, "type": "agent_message", "text": …}}. No prompt is.
func decodeExec(r *reader, raw []byte) []core.Message {
	item, id := at(raw, "item"), text(raw, "item.id")
	if text(raw, "type") != "item.completed" {
		return nil
	}
	r.pairs.Turn()
	name, args, said := text(item, "type"), at(item, "arguments"), at(item, "error.message|result.content|aggregated_output")
	switch name {
	case "", "error", "todo_list":
		return nil
	case "agent_message", "reasoning":
		return session.Split(core.RoleAssistant, false, r.block(item))
	case "command_execution":
		name, args = "shell", quoted("command", text(item, "command"))
	case "mcp_tool_call":
		name = text(item, "server") + "__" + text(item, "tool")
	default: // a change of files, a search
		args, said = rawjson.CutField(rawjson.CutField(item, "id"), "type"), nil
	}
	failed := text(item, "status") == "failed" || text(item, "status") == "declined"
	return session.Split(core.RoleAssistant, false, r.call(id, name, args), r.result(id, "", failed, said))
}

// A session of goose: a line about it, {"working_dir": …, "description": …}, and one for each message, {"role": "user", "created": 1790848800,
// "content": [{"type": "toolRequest", "id": …, "toolCall": {"status": "success", "value": {"name": …, "arguments": …}}}]}. An export is an
// object with the messages as its "conversation", and goose run --output-format stream-json has them in lines of type message.
func decodeGoose(r *reader, raw []byte) []core.Message {
	no := func(name string) bool { return string(at(raw, "message.metadata."+name+"|metadata."+name)) == "false" }
	role := core.Role(text(raw, "message.role|role"))
	if role != core.RoleUser && role != core.RoleAssistant || no("agentVisible") {
		return nil // about the session, or hidden by a compaction
	}
	return session.Split(role, no("userVisible"), r.content(at(raw, "message.content|content"))...)
}

// SWE-agent's history: messages in OpenAI's form, and the action of an answer that has no call. The answer to it is the user's there.
func decodeSWE(r *reader, raw []byte) []core.Message {
	role, parts, calls := core.Role(text(raw, "role")), r.content(at(raw, "content")), at(raw, "tool_calls")
	switch action := text(raw, "action"); {
	case role == "":
		return session.Split(core.RoleUser, true, parts...) // a demonstration
	case role == core.RoleTool, role == core.RoleUser && r.pairs.Open():
		parts = []core.Part{r.result(text(raw, "tool_call_ids.0"), "", false, at(raw, "content"))}
	case role == core.RoleAssistant:
		if r.pairs.Turn(); action != "" && at(calls, "0") == nil {
			parts = []core.Part{core.Text(text(raw, "thought")), r.call("", "shell", quoted("command", action))}
		}
		for c := range rawjson.Elements(calls) {
			parts = append(parts, r.call(text(c, "id"), text(c, "function.name"), at(c, "function.arguments")))
		}
	}
	return session.Split(role, false, parts...)
}

// A chat of VS Code: {"requests": [{"message": {"text": …}, "response": [ … ], "result": {"metadata": {"toolCallRounds": [{"response": …,
// "toolCalls": [{"id": …, "name": …, "arguments": …}]}], "toolCallResults": {ID: {"content": [ … ]}}}}}]}.
func decodeVSCode(r *reader, raw []byte) []core.Message {
	r.pairs.Turn()
	var said []core.Part
	answers := map[string][]byte{}
	for id, result := range rawjson.Fields(at(raw, "result.metadata.toolCallResults")) {
		answers[string(id)] = result
	}
	for round := range rawjson.Elements(at(raw, "result.metadata.toolCallRounds")) {
		if said = append(said, core.Text(text(round, "response"))); text(round, "thinking.text") != "" {
			said = append(said, core.Reasoning{Text: text(round, "thinking.text")})
		}
		var results []core.Part
		for c := range rawjson.Elements(at(round, "toolCalls")) {
			said = append(said, r.call(text(c, "id"), text(c, "name"), at(c, "arguments")))
			if result := answers[text(c, "id")]; result != nil {
				results = append(results, r.result(text(c, "id"), "", false, saying(nodeText(at(result, "content")))))
			}
		}
		said = append(said, results...)
	}
	for part := range rawjson.Elements(at(raw, "response")) {
		switch kind := text(part, "kind"); {
		case rawjson.IsArray(at(raw, "result.metadata.toolCallRounds")):
		case kind == "" || kind == "markdownContent":
			said = append(said, core.Text(text(part, "value|content.value")))
		case kind == "thinking":
			said = append(said, core.Reasoning{Text: text(part, "value")})
		case kind == "toolInvocationSerialized":
			what := quoted("what", text(part, "pastTenseMessage.value|pastTenseMessage"))
			said = append(said, r.call(text(part, "toolCallId"), text(part, "toolId"), what))
			output := nodeText(at(part, "resultDetails.output")) + text(part, "toolSpecificData.terminalCommandOutput.text")
			if output != "" {
				said = append(said, r.result(text(part, "toolCallId"), "", false, saying(output)))
			}
		}
	}
	asked := session.Split(core.RoleUser, rawjson.IsTrue(at(raw, "isSystemInitiated")), core.Text(text(raw, "message.text")))
	return append(asked, session.Split(core.RoleAssistant, false, said...)...)
}

// nodeText returns the texts in a result, which may be a tree of some depth.
func nodeText(raw []byte) string {
	var all strings.Builder
	addNode(&all, raw, 100)
	return all.String()
}

func addNode(all *strings.Builder, raw []byte, depth int) {
	if depth == 0 {
		return
	}
	for e := range rawjson.Elements(raw) {
		addNode(all, e, depth-1)
	}
	if rawjson.IsTrue(at(raw, "lineBreakBefore")) {
		all.WriteString("\n")
	}
	for _, name := range []string{"text", "value", "node", "children"} {
		if inner := at(raw, name); inner != nil {
			all.WriteString(rawjson.Text(inner))
			addNode(all, inner, depth-1)
		}
	}
}

// ChatGPT's conversations are trees: {"mapping": {ID: {"message": {"author": {"role": …}, "content": {"content_type": "text", "parts":
// [ … ]}}, "parent": ID}}, "current_node": ID}. A message to a recipient other than all is a call, and tools are authors.
func findChatGPT(data []byte, r *reader) (records [][]byte, _ error) {
	if err := syntax.Validate(data); err != nil {
		return nil, err
	}
	names := []string{}
	for other := range rawjson.Elements(data) {
		names = append(names, fmt.Sprintf("%d %q", len(names), text(other, "title")))
	}
	if n := len(names); n > 1 {
		found := fmt.Sprintf("%d conversations: %s, …", n, strings.Join(names[:min(3, n)], ", "))
		return nil, &syntax.Error{Found: found, Want: "one, as jq '.[0]' conversations.json writes it"}
	}
	nodes, leaf, last := map[string][]byte{}, text(data, "current_node|0.current_node"), ""
	for id, node := range rawjson.Fields(at(data, "mapping|0.mapping")) {
		nodes[string(id)], last = node, string(id)
	}
	if nodes[leaf] == nil { // not in the file: then it is what the file ends with
		leaf = last
	}
	for node := nodes[leaf]; node != nil; node = nodes[leaf] {
		if m := at(node, "message"); rawjson.IsObject(m) {
			records = append(records, m)
		}
		delete(nodes, leaf)
		leaf = text(node, "parent")
	}
	if left := len(nodes); left > 0 {
		r.session.File.Warn("%s on other branches: kept in the file, but not part of the conversation", codec.Count(left, "message"))
	}
	slices.Reverse(records)
	r.loose = !slices.IsSortedFunc(records, func(a, b []byte) int { return rawjson.Offset(data, a) - rawjson.Offset(data, b) })
	return records, nil
}

func decodeChatGPT(r *reader, raw []byte) []core.Message {
	role, program := core.Role(text(raw, "author.role")), rawjson.IsTrue(at(raw, "metadata.is_user_system_message"))
	var parts []core.Part
	for _, name := range []string{"parts", "user_profile", "user_instructions", "text", "result", "content"} {
		parts = append(parts, r.content(at(raw, "content."+name))...)
	}
	for thought := range rawjson.Elements(at(raw, "content.thoughts")) {
		parts = append(parts, core.Reasoning{Text: text(thought, "content")})
	}
	switch to := text(raw, "recipient"); {
	case role == core.RoleAssistant && to != "" && to != "all":
		args := []byte(blocks.Join(parts))
		if !json.Valid(args) || !rawjson.IsObject(args) {
			args = quoted("input", string(args))
		}
		r.pairs.Turn()
		parts = []core.Part{r.call(text(raw, "id"), to, args)}
	case role == core.RoleTool && r.pairs.Open():
		parts = []core.Part{core.ToolResult{CallID: r.pairs.Result("", text(raw, "author.name")), Content: parts}}
	case role == core.RoleTool: // it says more, or nobody called it
		role, program = core.RoleUser, true
	}
	return session.Split(role, program, parts...)
}
