// Package items reads and writes the items of OpenAI's Responses API, which Codex stores
// unchanged. An item is a message, reasoning, a call, a result, or something that only the
// vendor understands.
package items

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// Decode returns the message that an item of OpenAI's Responses API is, and whether the
// model receives it. ID is the item's own, if it has one.
func Decode(raw []byte) (m core.Message, sent bool, bad *syntax.Error) {
	if !rawjson.IsObject(raw) {
		return m, false, &syntax.Error{Found: syntax.Describe(raw) + " as an item", Want: "an object"}
	}
	var of, id, callID, name []byte
	rawjson.Pick(raw, []string{"type", "id", "call_id", "name"}, &of, &id, &callID, &name)
	kind := rawjson.Text(of)
	m.ID = rawjson.Text(id)
	m.Role = core.RoleAssistant
	if kind == "" && rawjson.Field(raw, "role") != nil { // the short form of a message
		kind = "message"
	}
	switch kind {
	case "":
		return m, false, syntax.Missing(raw, "item", "type", "a string")
	case "ghost_snapshot": // a state of the files, for undo
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
		case !rawjson.IsString(callID):
			return m, false, syntax.Missing(raw, kind, "call_id", "a string")
		case !rawjson.IsString(name):
			return m, false, syntax.Missing(raw, kind, "name", "a string")
		}
		args := rawjson.Field(raw, argumentsOf[kind])
		call := core.ToolCall{ID: rawjson.Text(callID), Name: rawjson.Text(name), Args: string(args)}
		if rawjson.IsString(args) {
			call.Args = rawjson.Unquote(args)
		}
		m.Parts = []core.Part{call}
		return m, true, nil
	case "function_call_output", "custom_tool_call_output":
		if !rawjson.IsString(callID) {
			return m, false, syntax.Missing(raw, kind, "call_id", "a string")
		}
	case "tool_search_output":
		if rawjson.IsString(callID) {
			m.Role = core.RoleTool
			m.Parts = []core.Part{core.ToolResult{CallID: rawjson.Text(callID), Content: []core.Part{core.Opaque{Kind: "tools", JSON: string(rawjson.Field(raw, "tools"))}}}}
			return m, true, nil
		}
	case "local_shell_call_output":
		if callID == nil { // as OpenAI's reference has it
			callID = rawjson.Field(raw, "id")
		}
	}
	// The vendor pairs all calls and results by call_id, even of kinds that are not known here.
	if tool, ok := strings.CutSuffix(kind, "_call"); ok && rawjson.IsString(callID) {
		m.Parts = []core.Part{core.ToolCall{ID: rawjson.Text(callID), Name: tool, Args: string(rawjson.Field(raw, argumentsOf[kind]))}}
		return m, true, nil
	}
	if strings.HasSuffix(kind, "_call_output") && rawjson.IsString(callID) {
		m.Role = core.RoleTool
		content, failed := decodeOutput(rawjson.Field(raw, "output"))
		if kind == "shell_call_output" {
			content = decodeShell(content)
		}
		m.Parts = []core.Part{core.ToolResult{CallID: rawjson.Text(callID), Content: content, IsError: failed}}
		return m, true, nil
	}
	m.Parts = []core.Part{core.Opaque{Kind: kind, JSON: string(raw)}}
	return m, true, nil
}

// argumentsOf is the field with the arguments of each kind of call.
var argumentsOf = map[string]string{
	"function_call":    "arguments",
	"custom_tool_call": "input",
	"tool_search_call": "arguments",
	"local_shell_call": "action",
	"shell_call":       "action",
	"computer_call":    "action",
	"apply_patch_call": "operation",
}

func decodeItemMessage(raw []byte, m core.Message) (core.Message, bool, *syntax.Error) {
	role := rawjson.Field(raw, "role")
	switch s := rawjson.Text(role); s {
	case "user", "assistant", "system":
		m.Role = core.Role(s)
	case "developer":
		m.Role = core.RoleSystem
	default:
		return m, false, syntax.WrongRole(raw, role, "user, assistant, developer or system")
	}
	content := rawjson.Field(raw, "content")
	switch {
	case rawjson.IsString(content):
		m.Parts = []core.Part{core.Text(rawjson.Unquote(content))}
	case content == nil || rawjson.IsNull(content):
	case !rawjson.IsArray(content):
		return m, false, syntax.Missing(raw, "message", "content", "an array")
	}
	for block := range rawjson.Elements(content) {
		if !rawjson.IsObject(block) {
			return m, false, &syntax.Error{Offset: rawjson.Offset(raw, block), Found: syntax.Describe(block) + " as content", Want: "an object"}
		}
		m.Parts = append(m.Parts, decodeItemBlock(block))
	}
	return m, true, nil
}

// decodeItemBlock returns the part that a block of content is.
func decodeItemBlock(block []byte) core.Part {
	var kind, said, refusal, image []byte
	rawjson.Pick(block, []string{"type", "text", "refusal", "image_url"}, &kind, &said, &refusal, &image)
	switch rawjson.Text(kind) {
	case "input_text", "output_text", "text":
		if rawjson.IsString(said) {
			return core.Text(rawjson.Unquote(said))
		}
	case "refusal":
		if rawjson.IsString(refusal) {
			return core.Text(rawjson.Unquote(refusal))
		}
	case "input_image":
		if url := rawjson.Text(image); url != "" {
			return apimessage.ImageOf(url)
		}
	}
	return core.Opaque{Kind: rawjson.Text(kind), JSON: string(block)}
}

func decodeItemReasoning(raw []byte) core.Part {
	var all []string
	for _, name := range []string{"summary", "content"} {
		for block := range rawjson.Elements(rawjson.Field(raw, name)) {
			if s := rawjson.Text(rawjson.Field(block, "text")); s != "" {
				all = append(all, s)
			}
		}
	}
	return core.Reasoning{Text: strings.Join(all, "\n\n"), Encrypted: rawjson.Text(rawjson.Field(raw, "encrypted_content"))}
}

// decodeOutput returns the content of a result: a string, an array of blocks or, in older
// files, an object with content and success.
func decodeOutput(raw []byte) (content []core.Part, failed bool) {
	if rawjson.IsObject(raw) {
		if s := rawjson.Field(raw, "success"); s != nil && string(s) == "false" {
			failed = true
		}
		if inner := rawjson.Field(raw, "content"); rawjson.IsString(inner) || rawjson.IsArray(inner) {
			raw = inner
		}
	}
	switch {
	case rawjson.IsString(raw):
		if s := rawjson.Unquote(raw); s != "" {
			content = []core.Part{core.Text(s)}
		}
	case rawjson.IsArray(raw):
		content = append(content, plain.Each(slices.Collect(rawjson.Elements(raw)), decodeItemBlock)...)
	case raw != nil && !rawjson.IsNull(raw):
		content = []core.Part{core.Opaque{Kind: "output", JSON: string(raw)}}
	}
	return content, failed
}

// decodeShell returns the chunks of a shell's output, which are objects with stdout and stderr,
// as texts.
func decodeShell(content []core.Part) []core.Part {
	for i, p := range content {
		chunk, ok := p.(core.Opaque)
		if !ok {
			continue
		}
		raw := []byte(chunk.JSON)
		if out, failure := rawjson.Text(rawjson.Field(raw, "stdout")), rawjson.Text(rawjson.Field(raw, "stderr")); out != "" || failure != "" {
			content[i] = core.Text(out + failure)
		}
	}
	return content
}

// Encode returns m as items.
func Encode(m *core.Message) [][]byte {
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
			if raw := []byte(p.JSON); rawjson.IsObject(raw) && json.Valid(raw) && !blockOfMessage(p.Kind) {
				flush()
				items = append(items, raw)
			} else {
				said = append(said, p)
			}
			continue
		case core.Reasoning:
			flush()
			items = append(items, rawjson.Append(nil, `{"type":"reasoning","summary":?,"encrypted_content":?}`, apimessage.Summary(p), rawjson.QuoteOrNull(p.Encrypted)))
		case core.ToolCall:
			flush()
			items = append(items, rawjson.Append(nil, `{"type":"function_call","name":?,"arguments":?,"call_id":?}`, p.Name, p.Args, p.ID))
		case core.ToolResult:
			flush()
			items = append(items, rawjson.Append(nil, `{"type":"function_call_output","call_id":?,"output":?}`, p.CallID, encodeOutput(p.Content)))
		}
	}
	flush()
	return items
}

// blockOfMessage reports whether kind is the kind of a content block and not of an item.
func blockOfMessage(kind string) bool {
	return strings.HasPrefix(kind, "input_") || strings.HasPrefix(kind, "output_") || kind == "refusal" || kind == "text"
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
	return rawjson.Append(nil, `{"type":"message","role":?,"content":?}`, name, encodeBlocks(role, parts))
}

// encodeBlocks returns parts as an array of blocks of content.
func encodeBlocks(role core.Role, parts []core.Part) []byte {
	raw := plain.Each(parts, func(p core.Part) []byte { return encodeBlock(role, p) })
	return rawjson.Array(raw)
}

func encodeBlock(role core.Role, p core.Part) []byte {
	text := `{"type":"input_text","text":?}`
	if role == core.RoleAssistant {
		text = `{"type":"output_text","text":?}`
	}
	switch p := p.(type) {
	case core.Text:
		return rawjson.Append(nil, text, string(p))
	case core.Image:
		return rawjson.Append(nil, `{"type":"input_image","image_url":?}`, apimessage.ImageURL(p))
	case core.Opaque:
		if raw := []byte(p.JSON); rawjson.IsObject(raw) && json.Valid(raw) {
			return raw
		}
		return rawjson.Append(nil, text, p.JSON)
	case core.ToolCall, core.ToolResult, core.Reasoning:
	}
	return rawjson.Append(nil, text, apimessage.Note("unknown"))
}

// encodeOutput returns the content of a result: a string if it is one text, otherwise blocks.
func encodeOutput(content []core.Part) []byte {
	if len(content) == 0 {
		return []byte(`""`)
	}
	if t, ok := firstText(content); ok && len(content) == 1 {
		return rawjson.AppendQuote(nil, t)
	}
	return encodeBlocks(core.RoleUser, content)
}

// firstText returns the first of parts, if it is a text.
func firstText(parts []core.Part) (string, bool) {
	if len(parts) == 0 {
		return "", false
	}
	t, ok := parts[0].(core.Text)
	return string(t), ok
}

// Patch returns the item was, changed to the parts of m. The result is one item, unless no
// single item can hold m.
func Patch(was []byte, m *core.Message) [][]byte {
	old, sent, bad := Decode(was)
	if bad != nil || !sent {
		return Encode(m)
	}
	if core.EqualParts(old.Parts, m.Parts) {
		return [][]byte{was}
	}
	kind := rawjson.Text(rawjson.Field(was, "type"))
	if kind == "message" {
		return patchItemMessage(was, old.Parts, m)
	}
	if len(m.Parts) == 1 && len(old.Parts) == 1 {
		switch p := m.Parts[0].(type) {
		case core.ToolCall:
			if o, ok := old.Parts[0].(core.ToolCall); ok && o.ID == p.ID && o.Name == p.Name {
				return [][]byte{patchCall(was, kind, p.Args)}
			}
		case core.ToolResult:
			if o, ok := old.Parts[0].(core.ToolResult); ok && o.CallID == p.CallID {
				return [][]byte{patchOutput(was, kind, p.Content)}
			}
		case core.Text, core.Image, core.Reasoning, core.Opaque:
		}
	}
	return Encode(m)
}

// patchCall returns the call was with other arguments. The arguments of functions and custom tools are a string;
// other tools accept only an object, so they are left unchanged if args is not an object.
func patchCall(was []byte, kind, args string) []byte {
	field := argumentsOf[kind]
	value := []byte(args)
	switch {
	case rawjson.IsString(rawjson.Field(was, field)):
		value = rawjson.AppendQuote(nil, args)
	case field == "" || !rawjson.IsObject(value) || !json.Valid(value):
		return was
	}
	return rawjson.SetField(was, field, value)
}

// patchOutput returns the result was with other content. The output of functions and custom tools is a string or an
// array of blocks, a shell's is chunks, other tools' of the vendor is a string; any other form cannot hold a text and
// is left unchanged.
func patchOutput(was []byte, kind string, content []core.Part) []byte {
	output := rawjson.Field(was, "output")
	value := encodeOutput(content)
	switch {
	case output == nil:
		return was
	case kind == "function_call_output", kind == "custom_tool_call_output":
		if rawjson.IsObject(output) {
			value = rawjson.SetField(output, "content", value)
		}
	case kind == "shell_call_output":
		var chunk []byte // the last one says how the command ended
		for c := range rawjson.Elements(output) {
			chunk = c
		}
		if !rawjson.IsObject(chunk) {
			return was
		}
		text := rawjson.AppendQuote(nil, blocks.Join(content))
		chunk = rawjson.SetField(rawjson.SetField(chunk, "stdout", text), "stderr", []byte(`""`))
		value = rawjson.Array([][]byte{chunk})
	case rawjson.IsString(output):
		value = rawjson.AppendQuote(nil, blocks.Join(content))
	default:
		return was
	}
	return rawjson.SetField(was, "output", value)
}

func patchItemMessage(was []byte, old []core.Part, m *core.Message) [][]byte {
	for _, p := range m.Parts {
		switch p.(type) {
		case core.ToolCall, core.ToolResult, core.Reasoning:
			return Encode(m)
		case core.Text, core.Image, core.Opaque:
		}
	}
	raw := slices.Collect(rawjson.Elements(rawjson.Field(was, "content")))
	if len(raw) != len(old) { // the content was a string
		if t, ok := firstText(m.Parts); ok && len(m.Parts) == 1 {
			return [][]byte{rawjson.SetField(was, "content", rawjson.AppendQuote(nil, t))}
		}
		raw, old = nil, nil
	}
	content := []byte{'['}
	for i, j := range blocks.Match(old, m.Parts) {
		if i > 0 {
			content = append(content, ',')
		}
		switch {
		case j < 0:
			content = append(content, encodeBlock(m.Role, m.Parts[i])...)
		case core.EqualParts(old[j:j+1], m.Parts[i:i+1]):
			content = append(content, raw[j]...)
		default: // a text
			t, _ := m.Parts[i].(core.Text)
			content = append(content, patchText(raw[j], string(t))...)
		}
	}
	return [][]byte{rawjson.SetField(was, "content", append(content, ']'))}
}

// patchText returns the block was with another text.
func patchText(was []byte, text string) []byte {
	field := "text"
	if rawjson.Text(rawjson.Field(was, "type")) == "refusal" {
		field = "refusal"
	}
	if rawjson.IsArray(rawjson.Field(was, "annotations")) { // they point into the text by position
		was = rawjson.SetField(was, "annotations", []byte("[]"))
	}
	return rawjson.SetField(was, field, rawjson.AppendQuote(nil, text))
}
