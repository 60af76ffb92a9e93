package roo

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Block is one element of a message's content.
type Block struct {
	raw  string
	kind blockKind
	// name is the id of a tool call, or the id of the call that a tool result answers,
	// as nameOf spells it.
	name string
}

// A blockKind is a type of block that a rule asks for.
type blockKind uint8

const (
	blockOther blockKind = iota
	blockText
	blockImage
	blockToolUse
	blockToolResult
)

// TextBlock returns a block of text.
func TextBlock(text string) Block { return textBlock(quote(text)) }

// textBlock returns a block of text that is given as a JSON string.
func textBlock(quoted string) Block {
	return Block{raw: `{"type":"text","text":` + quoted + `}`, kind: blockText}
}

// ParseBlocks reads a JSON array of blocks. It fails on anything else.
func ParseBlocks(data []byte) ([]Block, error) {
	if err := checkSyntax(data); err != nil {
		return nil, fmt.Errorf("content blocks: %w", err)
	}
	raw := strings.TrimSpace(string(data))
	if kindOf(raw) != kindArray {
		return nil, fmt.Errorf("content blocks: got %s, want an array", describe(raw))
	}
	return blocksOf(raw), nil
}

// JSON returns the block as it was read, byte for byte.
func (b Block) JSON() json.RawMessage { return json.RawMessage(b.raw) }

// MarshalJSON returns the block as it was read.
func (b Block) MarshalJSON() ([]byte, error) {
	if b.raw == "" {
		return []byte("null"), nil
	}
	return []byte(b.raw), nil
}

// blocksOf returns the elements of an array, which is not nil.
func blocksOf(array string) []Block {
	blocks := make([]Block, 0, 2) // as most messages have
	for c := (cursor{s: array, i: 1}); c.more(); {
		blocks = append(blocks, parseBlock(&c))
	}
	return blocks
}

// parseBlock reads the block at the cursor and steps over it.
func parseBlock(c *cursor) Block {
	if c.s[c.i] != '{' {
		return Block{raw: c.value()}
	}
	start := c.i
	var typ, id, callID string
	for c.enter(); c.more(); {
		switch key := c.key(); key {
		case "type":
			typ = c.value()
		case "id":
			id = c.value()
		case "tool_use_id":
			callID = c.value()
		default:
			c.value()
		}
	}
	b := Block{raw: c.s[start:c.i]}
	if kindOf(typ) != kindString {
		return b
	}
	switch unquote(typ) {
	case "text":
		b.kind = blockText
	case "image":
		b.kind = blockImage
	case "tool_use":
		b.kind, b.name = blockToolUse, nameOf(id)
	case "tool_result":
		b.kind, b.name = blockToolResult, nameOf(callID)
	}
	return b
}

// joinBlocks writes blocks as a JSON array.
func joinBlocks(blocks []Block) string {
	size := len("[]") + len(blocks)
	for _, b := range blocks {
		size += len(b.raw)
	}
	var array strings.Builder
	array.Grow(size)
	array.WriteByte('[')
	for i, b := range blocks {
		if i > 0 {
			array.WriteByte(',')
		}
		array.WriteString(b.raw)
	}
	array.WriteByte(']')
	return array.String()
}
