package codex

import (
	"encoding/json"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/blocks"
)

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
			if raw := []byte(p.JSON); rawjson.IsObject(raw) && json.Valid(raw) && !blockOfMessage(p.Kind) {
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
			items = append(items, rawjson.Append(nil, `{"type":"function_call","name":?,"arguments":?,"call_id":?}`, p.Name, p.Args, p.ID))
		case core.ToolResult:
			flush()
			items = append(items, rawjson.Append(nil, `{"type":"function_call_output","call_id":?,"output":?}`, p.CallID, encodeOutput(p.Content)))
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
	return rawjson.Append(nil, `{"type":"reasoning","summary":?,"encrypted_content":?}`, apimessage.Summary(p), rawjson.QuoteOrNull(p.Encrypted))
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
	raw := make([][]byte, len(parts))
	for i, p := range parts {
		raw[i] = encodeBlock(role, p)
	}
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

// encodeOutput returns what a tool answered: a string if it is text, else blocks.
func encodeOutput(content []core.Part) []byte {
	if len(content) == 0 {
		return []byte(`""`)
	}
	if t, ok := content[0].(core.Text); ok && len(content) == 1 {
		return rawjson.AppendQuote(nil, string(t))
	}
	return encodeBlocks(core.RoleUser, content)
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
	kind := rawjson.Text(rawjson.Field(was, "type"))
	if kind == "message" {
		return patchItemMessage(was, old.Parts, m)
	}
	if len(m.Parts) == 1 && len(old.Parts) == 1 {
		switch p := m.Parts[0].(type) {
		case core.ToolCall:
			o, ok := old.Parts[0].(core.ToolCall)
			if args := argumentsOf[kind]; ok && o.ID == p.ID && o.Name == p.Name && args != "" {
				value := rawjson.AppendQuote(nil, p.Args)
				if !rawjson.IsString(rawjson.Field(was, args)) && json.Valid([]byte(p.Args)) {
					value = []byte(p.Args)
				}
				return [][]byte{rawjson.SetField(was, args, value)}
			}
		case core.ToolResult:
			o, ok := old.Parts[0].(core.ToolResult)
			if output := rawjson.Field(was, "output"); ok && o.CallID == p.CallID && output != nil {
				value := encodeOutput(p.Content)
				if rawjson.IsObject(output) {
					value = rawjson.SetField(output, "content", value)
				}
				return [][]byte{rawjson.SetField(was, "output", value)}
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
	var raw [][]byte
	for block := range rawjson.Elements(rawjson.Field(was, "content")) {
		raw = append(raw, block)
	}
	if len(raw) != len(old) { // the content was a string
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
			content = append(content, rawjson.SetField(raw[j], "text", rawjson.AppendQuote(nil, string(t)))...)
		}
	}
	return [][]byte{rawjson.SetField(was, "content", append(content, ']'))}
}
