package exports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/transcript/internal/jsonl"
)

// A chat of VS Code: {"requests": [{"message": {"text": …}, "response": [ … ], "result": {"metadata": {"toolCallRounds": [{"response": …,
// "toolCalls": [{"id": …, "name": …, "arguments": …}]}], "toolCallResults": {ID: {"content": [ … ]}}}}}]}. Since 1.109 the file is a log of
// changes of this object: {"kind": 0, "v": the object}, and 1 to set, 2 to append to and 3 to delete what the path "k" names.
func detectVSCode(data []byte) bool {
	if rawjson.IsArray(at(data, "requests")) {
		return at(data, "responderUsername") != nil || at(data, "sessionId") != nil
	}
	for raw := range jsonl.Head(data, 1) {
		return string(at(raw, "kind")) == "0" && rawjson.IsArray(at(raw, "v", "requests"))
	}
	return false
}

func vscodeRequests(data []byte, r *reader) ([][]byte, error) {
	if rawjson.IsArray(at(data, "requests")) {
		return list("requests")(data, r)
	}
	changes, err := lines(data, r)
	if err != nil {
		return nil, err
	}
	r.loose = true
	var state any
	for _, raw := range changes {
		var c struct {
			Kind int   `json:"kind"`
			K    []any `json:"k"`
			V    any   `json:"v"`
			I    *int  `json:"i"`
		}
		if json.Unmarshal(raw, &c) == nil {
			state = changed(state, c.K, func(was any) any {
				all, _ := was.([]any)
				more, push := c.V.([]any)
				switch {
				case c.Kind == 3:
					return nil
				case c.Kind != 2 || !push:
					return c.V
				case c.I != nil:
					all = all[:max(0, min(*c.I, len(all)))]
				}
				return append(slices.Clone(all), more...)
			})
		}
	}
	whole, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	return list("requests")(whole, r)
}

// changed returns node with what path names in it replaced by the value of to. A path that leads nowhere changes nothing.
func changed(node any, path []any, to func(was any) any) any {
	if len(path) == 0 {
		return to(node)
	}
	switch key := path[0].(type) {
	case string:
		if m, ok := node.(map[string]any); ok {
			m[key] = changed(m[key], path[1:], to)
		}
	case float64:
		if list, ok := node.([]any); ok && key >= 0 && int(key) < len(list) {
			list[int(key)] = changed(list[int(key)], path[1:], to)
		}
	}
	return node
}

func decodeVSCode(r *reader, raw []byte) error {
	r.pairs.Turn()
	meta := at(raw, "result", "metadata")
	var said []core.Part
	for round := range rawjson.Elements(at(meta, "toolCallRounds")) {
		said = append(said, core.Text(text(round, "response")))
		if thought := text(round, "thinking", "text"); thought != "" {
			said = append(said, core.Reasoning{Text: thought})
		}
		var results []core.Part
		for c := range rawjson.Elements(at(round, "toolCalls")) {
			said = append(said, r.call(text(c, "id"), text(c, "name"), []byte(text(c, "arguments"))))
			if result := at(meta, "toolCallResults", text(c, "id")); result != nil {
				results = append(results, r.result(text(c, "id"), "", false, saying(nodeText(at(result, "content")))))
			}
		}
		said = append(said, results...)
	}
	for part := range rawjson.Elements(at(raw, "response")) {
		switch kind := text(part, "kind"); {
		case rawjson.IsArray(at(meta, "toolCallRounds")):
		case kind == "" || kind == "markdownContent":
			said = append(said, core.Text(text(part, "value")+text(part, "content", "value")))
		case kind == "thinking":
			said = append(said, core.Reasoning{Text: text(part, "value")})
		case kind == "toolInvocationSerialized":
			what := text(part, "pastTenseMessage", "value") + text(part, "pastTenseMessage")
			said = append(said, r.call(text(part, "toolCallId"), text(part, "toolId"), quoted("what", what)))
			output := nodeText(at(part, "resultDetails", "output")) + text(part, "toolSpecificData", "terminalCommandOutput", "text")
			if output != "" {
				said = append(said, r.result(text(part, "toolCallId"), "", false, saying(output)))
			}
		}
	}
	if model := text(raw, "modelId"); model != "" {
		r.session.File.Model = model
	}
	asked := split(core.RoleUser, rawjson.IsTrue(at(raw, "isSystemInitiated")), []core.Part{core.Text(text(raw, "message", "text"))})
	asked = append(asked, split(core.RoleAssistant, false, said)...)
	return r.put(raw, text(raw, "requestId"), rawjson.UnixMilli(at(raw, "timestamp")), asked)
}

// nodeText returns the texts in a result, which may be a tree.
func nodeText(raw []byte) string {
	var b strings.Builder
	for e := range rawjson.Elements(raw) {
		b.WriteString(nodeText(e))
	}
	if !rawjson.IsObject(raw) {
		return b.String()
	}
	if rawjson.IsTrue(at(raw, "lineBreakBefore")) {
		b.WriteString("\n")
	}
	b.WriteString(text(raw, "text") + text(raw, "value"))
	for _, name := range []string{"value", "node", "children"} {
		if inner := at(raw, name); !rawjson.IsString(inner) {
			b.WriteString(nodeText(inner))
		}
	}
	return b.String()
}

// has returns whether a file is a conversation with an object or array as its member name, or an array of them.
func has(name string) func([]byte) bool {
	is := func(raw []byte) bool { v := at(raw, name); return rawjson.IsObject(v) || rawjson.IsArray(v) }
	return func(data []byte) bool { return is(data) || is(first(data)) }
}

// one returns the conversation of an export, which may hold many. Title is the member with its name.
func one(data []byte, title string) ([]byte, error) {
	if err := syntax.Validate(data); err != nil {
		return nil, err
	}
	if rawjson.IsObject(data[rawjson.SkipSpace(data, 0):]) {
		return data, nil
	}
	all, names := slices.Collect(rawjson.Elements(data[rawjson.SkipSpace(data, 0):])), []string{}
	if len(all) == 1 {
		return all[0], nil
	}
	for i, c := range all[:min(3, len(all))] {
		names = append(names, fmt.Sprintf("%d %q", i, text(c, title)))
	}
	found := fmt.Sprintf("%d conversations: %s, …", len(all), strings.Join(names, ", "))
	return nil, &syntax.Error{Found: found, Want: "one, as jq '.[0]' conversations.json writes it"}
}

// path returns the records from the first to leaf, by the IDs of their parents.
func path(parents map[string]string, leaf string) (ids []string) {
	for seen := map[string]bool{}; leaf != "" && !seen[leaf]; leaf = parents[leaf] {
		seen[leaf] = true
		ids = append(ids, leaf)
	}
	slices.Reverse(ids)
	return ids
}

// ChatGPT's conversations are trees: {"mapping": {ID: {"message": {"author": {"role": …}, "content": {"content_type": "text", "parts":
// [ … ]}}, "parent": ID}}, "current_node": ID}. A message to a recipient other than all is a call, and tools are authors.
func chatgptNodes(data []byte, r *reader) (records [][]byte, err error) {
	c, err := one(data, "title")
	if err != nil {
		return nil, err
	}
	parents, nodes, inner := map[string]string{}, map[string][]byte{}, map[string]bool{}
	leaf := text(c, "current_node")
	for id, node := range rawjson.Fields(at(c, "mapping")) {
		parents[string(id)], nodes[string(id)] = text(node, "parent"), at(node, "message")
		inner[text(node, "parent")] = true
	}
	_, known := nodes[leaf]
	for id := range rawjson.Fields(at(c, "mapping")) {
		if !known && !inner[string(id)] {
			leaf = string(id) // the last one without an answer
		}
	}
	left := len(nodes)
	for _, id := range path(parents, leaf) {
		left--
		if rawjson.IsObject(nodes[id]) {
			records = append(records, nodes[id])
		}
	}
	if left > 0 {
		r.session.File.Warn("%s on other branches: kept in the file, but not part of the conversation", codec.Count(left, "message"))
	}
	// The order of the file may be another.
	r.loose = !slices.IsSortedFunc(records, func(a, b []byte) int { return rawjson.Offset(data, a) - rawjson.Offset(data, b) })
	return records, nil
}

func decodeChatGPT(r *reader, raw []byte) error {
	role, program := core.Role(text(raw, "author", "role")), rawjson.IsTrue(at(raw, "metadata", "is_user_system_message"))
	if model := text(raw, "metadata", "model_slug"); model != "" {
		r.session.File.Model = model
	}
	content, to := at(raw, "content"), text(raw, "recipient")
	parts := r.content(at(content, "parts"))
	for _, name := range []string{"user_profile", "user_instructions", "text", "result", "content"} {
		parts = append(parts, r.content(at(content, name))...)
	}
	for thought := range rawjson.Elements(at(content, "thoughts")) {
		parts = append(parts, core.Reasoning{Text: text(thought, "content")})
	}
	switch said := joined(parts); {
	case role == core.RoleAssistant && to != "" && to != "all":
		args := []byte(said)
		if !json.Valid(args) || !rawjson.IsObject(args) {
			args = quoted("input", said)
		}
		r.pairs.Turn()
		parts = []core.Part{r.call(text(raw, "id"), to, args)}
	case role == core.RoleTool && r.pairs.Open():
		parts = []core.Part{core.ToolResult{CallID: r.pairs.Result("", text(raw, "author", "name")), Content: parts}}
	case role == core.RoleTool: // it says more, or nobody called it
		role, program = core.RoleUser, true
	case role != core.RoleSystem && role != core.RoleUser && role != core.RoleAssistant:
		return syntax.WrongRole(raw, at(raw, "author", "role"), "system, user, assistant or tool")
	}
	return r.add(raw, text(raw, "id"), seconds(at(raw, "create_time")), program, role, parts...)
}

func joined(parts []core.Part) (all string) {
	for _, p := range parts {
		if t, ok := p.(core.Text); ok {
			all += string(t)
		}
	}
	return all
}

// Claude.ai's conversations: {"chat_messages": [{"uuid": …, "sender": "human", "content": [ … ], "attachments":
// [{"extracted_content": …}], "parent_message_uuid": …}]}, of old ones with "text" alone.
func claudeMessages(data []byte, r *reader) ([][]byte, error) {
	c, err := one(data, "name")
	if err != nil {
		return nil, err
	}
	records := slices.Collect(rawjson.Elements(at(c, "chat_messages")))
	parents, leaf := map[string]string{}, text(c, "current_leaf_message_uuid")
	for _, raw := range records {
		parents[text(raw, "uuid")] = text(raw, "parent_message_uuid")
	}
	if n := len(records); n > 0 && parents[text(records[n-1], "uuid")] != "" {
		if _, known := parents[leaf]; !known {
			leaf = text(records[n-1], "uuid")
		}
		on := rawjson.Set(path(parents, leaf)...)
		records = slices.DeleteFunc(records, func(raw []byte) bool { return !on[text(raw, "uuid")] })
		if left := n - len(records); left > 0 {
			r.session.File.Warn("%s on other branches: kept in the file, but not part of the conversation", codec.Count(left, "message"))
		}
	}
	return records, nil
}

func decodeClaude(r *reader, raw []byte) error {
	role := core.RoleAssistant
	if text(raw, "sender") == "human" {
		role = core.RoleUser
	}
	var parts []core.Part
	for a := range rawjson.Elements(at(raw, "attachments")) {
		if file := text(a, "extracted_content"); file != "" {
			parts = append(parts, core.Text(toolcall.NoticeOpen+"\n"+file+"\n"+toolcall.NoticeClose))
		}
	}
	r.pairs.Turn()
	said := r.content(at(raw, "content"))
	if said == nil {
		said = r.content(at(raw, "text"))
	}
	return r.add(raw, text(raw, "uuid"), rawjson.Time(at(raw, "created_at")), false, role, append(parts, said...)...)
}

// SpecStory writes what it finds of other agents as Markdown: sections that begin "_**User (2026-01-16 16:48:38Z)**_" and "_**Agent (model
// 2026-01-16 16:48:43Z)**_", with thoughts in <think> and calls with their results in <tool-use>.
var (
	specMark = []byte("<!-- Generated by SpecStory")
	specHead = plain.Pattern(`^_\*\*(User|Agent|Assistant)(?: \((?:(\S+) )?([-0-9]{10} [:0-9]{8}Z?)\))?[^*]*\*\*_\s*$`)
	specPart = regexp.MustCompile(`(?s)<think>.*?</think>|<tool-use .*?</tool-use>`)
	specName = plain.Pattern(`data-tool-name="([^"]*)"`)
	specTag  = plain.Pattern(`</?(?:think|details|summary|tool-use[^>]*)>|Thought Process|Tool use: \*\*[^*]*\*\*`)
)

func detectSpec(data []byte) bool { return bytes.Contains(data[:min(len(data), 200)], specMark) }

func specSections(data []byte, r *reader) ([][]byte, error) {
	return r.sections(data, func(line string) bool { return specHead().MatchString(line) }), nil
}

func decodeSpec(r *reader, raw []byte) error {
	line, body, _ := strings.Cut(string(raw), "\n")
	head := specHead().FindStringSubmatch(strings.TrimRight(line, "\r"))
	if strings.Contains(line, "sidechain") {
		return nil // a sub-agent's
	}
	when, _ := time.Parse(time.DateTime, strings.TrimSuffix(head[3], "Z"))
	body = strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n")), "---")
	if head[1] == "User" {
		return r.add(raw, "", when, false, core.RoleUser, core.Text(strings.TrimSpace(body)))
	}
	if head[2] != "" {
		r.session.File.Model = head[2]
	}
	var parts []core.Part
	say := func(s string) { parts = append(parts, core.Text(strings.TrimSpace(s))) }
	for {
		m := specPart.FindStringIndex(body)
		if m == nil {
			break
		}
		say(body[:m[0]])
		part := body[m[0]:m[1]]
		inner := strings.TrimSpace(specTag().ReplaceAllString(part, ""))
		if name := specName().FindStringSubmatch(part); name == nil {
			parts = append(parts, core.Reasoning{Text: inner})
		} else {
			input, output, _ := strings.Cut(inner, "```")
			_, output, _ = strings.Cut(output, "\n") // the language
			output = strings.TrimSuffix(strings.TrimSpace(output), "```")
			parts = append(parts, r.call("", name[1], quoted("input", strings.TrimSpace(input))), r.result("", name[1], false, saying(output)))
		}
		body = body[m[1]:]
	}
	say(body)
	return r.add(raw, "", when, false, core.RoleAssistant, parts...)
}
