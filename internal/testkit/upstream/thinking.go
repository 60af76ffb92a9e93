package upstream

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
)

// A seal is in the signature of thinking: hashes of the content before it, of the thinking before it, and of its own
// text.
type seal struct{ prefix, before, text [16]byte }

func (s seal) mac() []byte {
	sum := sha256.Sum256(slices.Concat([]byte("upstream"), s.prefix[:], s.before[:], s.text[:]))
	return sum[:12]
}

// String returns the signature.
func (s seal) String() string {
	return base64.StdEncoding.EncodeToString(slices.Concat(s.prefix[:], s.before[:], s.text[:], s.mac()))
}

// unseal reads a signature. It is false if no vendor of this package made it.
func unseal(signature string) (s seal, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(raw) != 60 {
		return s, false
	}
	copy(s.prefix[:], raw)
	copy(s.before[:], raw[16:])
	copy(s.text[:], raw[32:])
	return s, string(raw[48:]) == string(s.mac())
}

func hashOf(kind, text string) [16]byte { return roll([16]byte{}, kind, []byte(text)) }

// checkThinking requires that thinking is unchanged; for bound models, everything before it, too. Thinking may be
// removed from the start or the end of the conversation, or all of it; never from the middle, and it must never be
// inserted again. With "enabled", an open round of tools must begin with thinking.
func checkThinking(p *prompt, m Model) *refusal {
	latest := -1
	for _, b := range p.blocks {
		if b.role == "assistant" {
			latest = b.message
		}
	}
	drop := false
	if t, ok := p.doc["thinking"].(object); ok {
		drop = text(obj(t["block_binding"])["prefix_mismatch_behavior"]) == "drop_block"
	}
	var before [16]byte
	for i, b := range p.blocks {
		if !b.thinking() {
			continue
		}
		field, own := "signature", hashOf("thinking", text(b.value["thinking"]))
		if b.kind == "redacted_thinking" {
			field, own = "data", hashOf("redacted", "")
		}
		s, ok := unseal(text(b.value[field]))
		switch where := dots(b.where); {
		case !ok:
			return invalid("thinking", fmt.Sprintf("%s: Invalid `%s` in `%s` block", where, field, b.kind))
		case s.text != own && b.message == latest:
			return invalid("thinking", where+": `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.")
		case s.text != own:
			return invalid("thinking", where+": Invalid `signature` in `thinking` block")
		case m.Bound && !drop && (s.prefix != p.blocks[i-1].bound || before != [16]byte{} && s.before != before):
			return invalid("binding", where+": Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.")
		}
		before = s.id()
	}
	turns := p.turns(false)
	if p.thinking != "enabled" || len(turns) < 2 || turns[len(turns)-1].blocks[0].kind != "tool_result" {
		return nil
	}
	if t := turns[len(turns)-2]; !t.blocks[0].thinking() {
		return invalid("thinking", fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.", t.at, t.blocks[0].kind))
	}
	return nil
}

// id names a thinking block.
func (s seal) id() [16]byte { return hashOf("seal", s.String()) }
