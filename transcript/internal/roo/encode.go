package roo

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/codec"
)

// This file puts what other tools stored in the shape of Roo's messages.

// encode returns a message in Roo's shape, without its time. What no model would take is
// left out or replaced by a note.
func (w *writer) encode(m *core.Message) []byte {
	role := core.RoleUser
	if m.Role == core.RoleAssistant {
		role = core.RoleAssistant
	}
	if len(m.Parts) == 1 {
		if r, ok := m.Parts[0].(core.Reasoning); ok && !w.signed(r) {
			return encodeReasoning(r)
		}
	}
	var parts []core.Part
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Reasoning:
			if !w.signed(p) {
				continue
			}
		case core.Image:
			if _, ok := apimessage.Sendable(p); !ok {
				parts = append(parts, core.Text(apimessage.Note("image")))
				continue
			}
		case core.Opaque:
			block, ok := apimessage.SendableBlock(p, apimessage.Anthropic.Blocks[role])
			if !ok {
				parts = append(parts, core.Text(apimessage.Note(p.Kind)))
				continue
			}
			parts = append(parts, block)
			continue
		case core.ToolResult:
			parts = append(parts, core.ToolResult{CallID: p.CallID, Content: apimessage.Anthropic.Content(p.Content), IsError: p.IsError})
			continue
		case core.Text, core.ToolCall:
		}
		parts = append(parts, p)
	}
	return apimessage.AnthropicMessage(role, parts)
}

// signed reports whether a model would take r back.
func (w *writer) signed(r core.Reasoning) bool {
	return w.file.Vendor != codec.OpenAI && (r.Signature != "" || r.Encrypted != "")
}

// encodeReasoning returns a message of its own for what a model thought, as Roo stores
// that of OpenAI's.
func encodeReasoning(r core.Reasoning) []byte {
	return rawjson.Append(nil, `{"role":"assistant","content":[],"type":"reasoning","summary":?,"encrypted_content":?}`,
		apimessage.Summary(r), rawjson.QuoteOrNull(r.Encrypted))
}
