package transcript

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// This file holds the items of OpenAI's Responses API, as far as Codex stores them.

// decodeItem returns the message that an item is, and whether the model gets to see it.
// ID is the item's own, if it has one.
func decodeItem(raw []byte) (m core.Message, sent bool, bad *fault) {
	if !isObject(raw) {
		return m, false, &fault{Found: describe(raw) + " as an item", Want: "an object"}
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

func decodeItemMessage(raw []byte, m core.Message) (core.Message, bool, *fault) {
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
			return m, false, &fault{Offset: offsetIn(raw, block), Found: describe(block) + " as content", Want: "an object"}
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
