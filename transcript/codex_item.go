package transcript

import (
	"encoding/json"
	"strings"

	"github.com/condensehq/condense/core"
)

// This file holds the items of OpenAI's Responses API, as far as Codex stores them.

// decodeItem returns the message that an item is, and whether the model gets to see it.
// ID is the item's own, if it has one.
func decodeItem(raw []byte) (m core.Message, sent bool, bad *SyntaxError) {
	if !isObject(raw) {
		return m, false, &SyntaxError{Found: describe(raw) + " as an item", Want: "an object"}
	}
	var kind string
	var callID, name []byte
	for k, v := range fields(raw) {
		switch string(k) {
		case "type":
			kind = text(v)
		case "id":
			m.ID = text(v)
		case "call_id":
			callID = v
		case "name":
			name = v
		}
	}
	m.Role = core.RoleAssistant
	switch kind {
	case "":
		return m, false, missing(raw, "item", "type", "a string")
	case "ghost_snapshot": // how files were, for undo
		return m, false, nil
	case "message":
		return decodeItemMessage(raw, m)
	case "reasoning":
		m.Parts = []core.Part{decodeItemReasoning(raw)}
		return m, true, nil
	case "compaction", "compaction_summary", "context_compaction":
		m.Kind = core.KindSummary
	case "function_call", "custom_tool_call":
		switch {
		case !isString(callID):
			return m, false, missing(raw, kind, "call_id", "a string")
		case !isString(name):
			return m, false, missing(raw, kind, "name", "a string")
		}
		args := field(raw, argumentsOf[kind])
		call := core.ToolCall{ID: text(callID), Name: text(name), Args: string(args)}
		if isString(args) {
			call.Args = unquote(args)
		}
		m.Parts = []core.Part{call}
		return m, true, nil
	case "local_shell_call", "tool_search_call":
		if isString(callID) {
			tool := strings.TrimSuffix(kind, "_call")
			m.Parts = []core.Part{core.ToolCall{ID: text(callID), Name: tool, Args: string(field(raw, argumentsOf[kind]))}}
			return m, true, nil
		}
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		if !isString(callID) {
			return m, false, missing(raw, kind, "call_id", "a string")
		}
		m.Role = core.RoleTool
		content, failed := decodeOutput(field(raw, "output"))
		m.Parts = []core.Part{core.ToolResult{CallID: text(callID), Content: content, IsError: failed}}
		return m, true, nil
	case "tool_search_output":
		if isString(callID) {
			m.Role = core.RoleTool
			m.Parts = []core.Part{core.ToolResult{CallID: text(callID), Content: []core.Part{core.Opaque{Kind: "tools", JSON: string(field(raw, "tools"))}}}}
			return m, true, nil
		}
	}
	m.Parts = []core.Part{core.Opaque{Kind: kind, JSON: string(raw)}}
	return m, true, nil
}

// argumentsOf is the field with the arguments of each kind of call.
var argumentsOf = map[string]string{
	"function_call":    "arguments",
	"custom_tool_call": "input",
	"local_shell_call": "action",
	"tool_search_call": "arguments",
}

func decodeItemMessage(raw []byte, m core.Message) (core.Message, bool, *SyntaxError) {
	role := field(raw, "role")
	switch s := text(role); s {
	case "user", "assistant", "system":
		m.Role = core.Role(s)
	case "developer":
		m.Role = core.RoleSystem
	default:
		return m, false, wrongRole(raw, role, "user, assistant, developer or system")
	}
	content := field(raw, "content")
	switch {
	case isString(content):
		m.Parts = []core.Part{core.Text(unquote(content))}
	case content == nil || isNull(content):
	case !isArray(content):
		return m, false, missing(raw, "message", "content", "an array")
	}
	for block := range elements(content) {
		if !isObject(block) {
			return m, false, &SyntaxError{Offset: offsetIn(raw, block), Found: describe(block) + " as content", Want: "an object"}
		}
		m.Parts = append(m.Parts, decodeItemBlock(block))
	}
	return m, true, nil
}

// decodeItemBlock returns what a block of content says.
func decodeItemBlock(block []byte) core.Part {
	var kind string
	var said, image []byte
	for k, v := range fields(block) {
		switch string(k) {
		case "type":
			kind = text(v)
		case "text":
			said = v
		case "image_url":
			image = v
		}
	}
	switch kind {
	case "input_text", "output_text", "text":
		if isString(said) {
			return core.Text(unquote(said))
		}
	case "input_image":
		if url := text(image); url != "" {
			return imageFromURL(url)
		}
	}
	return core.Opaque{Kind: kind, JSON: string(block)}
}

func decodeItemReasoning(raw []byte) core.Part {
	var all []string
	for _, name := range []string{"summary", "content"} {
		for block := range elements(field(raw, name)) {
			if s := text(field(block, "text")); s != "" {
				all = append(all, s)
			}
		}
	}
	return core.Reasoning{Text: strings.Join(all, "\n\n"), Encrypted: text(field(raw, "encrypted_content"))}
}

// decodeOutput returns what a tool answered: a string, an array of blocks or, in older
// files, an object with content and success.
func decodeOutput(raw []byte) (content []core.Part, failed bool) {
	if isObject(raw) {
		if s := field(raw, "success"); s != nil && string(s) == "false" {
			failed = true
		}
		if inner := field(raw, "content"); isString(inner) || isArray(inner) {
			raw = inner
		}
	}
	switch {
	case isString(raw):
		if s := unquote(raw); s != "" {
			content = []core.Part{core.Text(s)}
		}
	case isArray(raw):
		for block := range elements(raw) {
			content = append(content, decodeItemBlock(block))
		}
	case raw != nil && !isNull(raw):
		content = []core.Part{core.Opaque{Kind: "output", JSON: string(raw)}}
	}
	return content, failed
}

// encodeItems returns m as items.
func encodeItems(m *core.Message) [][]byte {
	var items [][]byte
	var said []core.Part
	flush := func() {
		if len(said) > 0 {
			items = append(items, encodeItemMessage(m.Role, said))
			said = nil
		}
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Text, core.Image:
			said = append(said, p)
			continue
		case core.Opaque:
			if raw := []byte(p.JSON); isObject(raw) && json.Valid(raw) && !blockOfMessage(p.Kind) {
				flush()
				items = append(items, raw)
			} else {
				said = append(said, p)
			}
			continue
		case core.Reasoning:
			flush()
			items = append(items, encodeItemReasoning(p))
		case core.ToolCall:
			flush()
			item := appendQuoted([]byte(`{"type":"function_call","name":`), p.Name)
			item = appendQuoted(append(item, `,"arguments":`...), p.Args)
			item = appendQuoted(append(item, `,"call_id":`...), p.ID)
			items = append(items, append(item, '}'))
		case core.ToolResult:
			flush()
			item := appendQuoted([]byte(`{"type":"function_call_output","call_id":`), p.CallID)
			item = append(append(item, `,"output":`...), encodeOutput(p.Content)...)
			items = append(items, append(item, '}'))
		}
	}
	flush()
	return items
}

// blockOfMessage reports whether kind is that of a block and not of an item.
func blockOfMessage(kind string) bool {
	return strings.HasPrefix(kind, "input_") || strings.HasPrefix(kind, "output_") || kind == "refusal" || kind == "text"
}

func encodeItemReasoning(p core.Reasoning) []byte {
	item := []byte(`{"type":"reasoning","summary":[`)
	if p.Text != "" {
		item = append(appendQuoted(append(item, `{"type":"summary_text","text":`...), p.Text), '}')
	}
	item = append(item, `],"encrypted_content":`...)
	return append(append(item, quotedOrNull(p.Encrypted)...), '}')
}

func encodeItemMessage(role core.Role, parts []core.Part) []byte {
	name := string(role)
	switch role {
	case core.RoleSystem:
		name = "developer"
	case core.RoleTool:
		name = "user"
	case core.RoleUser, core.RoleAssistant:
	}
	item := appendQuoted([]byte(`{"type":"message","role":`), name)
	item = append(item, `,"content":[`...)
	for i, p := range parts {
		if i > 0 {
			item = append(item, ',')
		}
		item = appendItemBlock(item, role, p)
	}
	return append(item, ']', '}')
}

// appendItemBlock appends a block of content.
func appendItemBlock(out []byte, role core.Role, p core.Part) []byte {
	kind := `{"type":"input_text","text":`
	if role == core.RoleAssistant {
		kind = `{"type":"output_text","text":`
	}
	switch p := p.(type) {
	case core.Text:
		return append(appendQuoted(append(out, kind...), string(p)), '}')
	case core.Image:
		return append(appendQuoted(append(out, `{"type":"input_image","image_url":`...), urlOf(p)), '}')
	case core.Opaque:
		if raw := []byte(p.JSON); isObject(raw) && json.Valid(raw) {
			return append(out, raw...)
		}
		return append(appendQuoted(append(out, kind...), p.JSON), '}')
	case core.ToolCall, core.ToolResult, core.Reasoning:
	}
	return append(appendQuoted(append(out, kind...), noteOf("unknown")), '}')
}

// encodeOutput returns what a tool answered: a string if it is text, else blocks.
func encodeOutput(content []core.Part) []byte {
	if len(content) == 0 {
		return []byte(`""`)
	}
	if t, ok := content[0].(core.Text); ok && len(content) == 1 {
		return appendQuoted(nil, string(t))
	}
	out := []byte{'['}
	for i, p := range content {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendItemBlock(out, core.RoleUser, p)
	}
	return append(out, ']')
}

// patchItem returns the item was, changed to say the parts of m. It is one item, unless m
// became something that no item says.
func patchItem(was []byte, m *core.Message) [][]byte {
	old, sent, bad := decodeItem(was)
	if bad != nil || !sent {
		return encodeItems(m)
	}
	if core.EqualParts(old.Parts, m.Parts) {
		return [][]byte{was}
	}
	kind := text(field(was, "type"))
	if kind == "message" {
		return patchItemMessage(was, old.Parts, m)
	}
	if len(m.Parts) == 1 && len(old.Parts) == 1 {
		switch p := m.Parts[0].(type) {
		case core.ToolCall:
			o, ok := old.Parts[0].(core.ToolCall)
			if args := argumentsOf[kind]; ok && o.ID == p.ID && o.Name == p.Name && args != "" {
				value := appendQuoted(nil, p.Args)
				if !isString(field(was, args)) && json.Valid([]byte(p.Args)) {
					value = []byte(p.Args)
				}
				return [][]byte{setField(was, args, value)}
			}
		case core.ToolResult:
			o, ok := old.Parts[0].(core.ToolResult)
			if output := field(was, "output"); ok && o.CallID == p.CallID && output != nil {
				value := encodeOutput(p.Content)
				if isObject(output) {
					value = setField(output, "content", value)
				}
				return [][]byte{setField(was, "output", value)}
			}
		case core.Text, core.Image, core.Reasoning, core.Opaque:
		}
	}
	return encodeItems(m)
}

func patchItemMessage(was []byte, old []core.Part, m *core.Message) [][]byte {
	for _, p := range m.Parts {
		switch p.(type) {
		case core.ToolCall, core.ToolResult, core.Reasoning:
			return encodeItems(m)
		case core.Text, core.Image, core.Opaque:
		}
	}
	var blocks [][]byte
	for block := range elements(field(was, "content")) {
		blocks = append(blocks, block)
	}
	if len(blocks) != len(old) { // the content was a string
		blocks, old = nil, nil
	}
	content := []byte{'['}
	for i, j := range matchParts(old, m.Parts) {
		if i > 0 {
			content = append(content, ',')
		}
		switch {
		case j < 0:
			content = appendItemBlock(content, m.Role, m.Parts[i])
		case core.EqualParts(old[j:j+1], m.Parts[i:i+1]):
			content = append(content, blocks[j]...)
		default: // a text
			t, _ := m.Parts[i].(core.Text)
			content = append(content, setField(blocks[j], "text", appendQuoted(nil, string(t)))...)
		}
	}
	return [][]byte{setField(was, "content", append(content, ']'))}
}
