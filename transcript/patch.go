package transcript

import (
	"bytes"

	"github.com/condensehq/condense/core"
)

// patchMessage returns the message was, in Anthropic's shape, with its content changed
// to parts. Every other field of the message, every block that did not change and every
// other field of a block that did are kept byte for byte.
func patchMessage(was []byte, parts []core.Part) []byte {
	return setField(was, "content", patchContent(field(was, "content"), parts))
}

// patchContent returns the value of "content" that says parts, made from the value was.
func patchContent(was []byte, parts []core.Part) []byte {
	if !isArray(was) {
		return encodeContent(parts)
	}
	var blocks [][]byte
	var old []core.Part
	for block := range elements(was) {
		p, err := decodeBlock(block)
		if err != nil {
			p = nil // equal to nothing, so it is dropped
		}
		blocks, old = append(blocks, block), append(old, p)
	}
	out := []byte{'['}
	match := matchParts(old, parts)
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		if j := match[i]; j >= 0 {
			out = append(out, patchBlock(blocks[j], old[j], p)...)
		} else {
			out = appendBlock(out, p)
		}
	}
	return append(out, ']')
}

// matchParts returns for each part of parts the index of the part of old that it was,
// or -1: the equal one, else the call or result with the same ID, else the text at the
// same place. No old part is used twice.
func matchParts(old, parts []core.Part) []int {
	match := make([]int, len(parts))
	used := make([]bool, len(old))
	next := 0
	for i, p := range parts { // parts that stay keep their order
		match[i] = -1
		for j := next; j < len(old); j++ {
			if old[j] != nil && core.EqualParts(old[j:j+1], []core.Part{p}) {
				match[i], used[j], next = j, true, j+1
				break
			}
		}
	}
	for i, p := range parts {
		if match[i] >= 0 {
			continue
		}
		for j := range old {
			if !used[j] && revises(old[j], p, i == j) {
				match[i], used[j] = j, true
				break
			}
		}
	}
	return match
}

// revises reports whether p is what old became.
func revises(old, p core.Part, samePlace bool) bool {
	switch p := p.(type) {
	case core.ToolCall:
		o, ok := old.(core.ToolCall)
		return ok && o.ID == p.ID
	case core.ToolResult:
		o, ok := old.(core.ToolResult)
		return ok && o.CallID == p.CallID
	case core.Text:
		_, ok := old.(core.Text)
		return ok && samePlace
	case core.Image, core.Reasoning, core.Opaque:
	}
	return false
}

// patchBlock returns the block was, which says old, changed to say p.
func patchBlock(was []byte, old, p core.Part) []byte {
	switch p := p.(type) {
	case core.Text:
		if o, ok := old.(core.Text); ok && o != p {
			// Citations point into the text by position.
			return setField(dropField(was, "citations"), "text", appendQuoted(nil, string(p)))
		}
	case core.ToolCall:
		o, ok := old.(core.ToolCall)
		if ok && o.Name != p.Name {
			was = setField(was, "name", appendQuoted(nil, p.Name))
		}
		if ok && o.Args != p.Args {
			was = setField(was, "input", argsObject(p.Args))
		}
	case core.ToolResult:
		o, ok := old.(core.ToolResult)
		if ok && !core.EqualParts(o.Content, p.Content) {
			was = setField(was, "content", patchContent(field(was, "content"), p.Content))
		}
		if ok && o.IsError != p.IsError {
			value := "false"
			if p.IsError {
				value = "true"
			}
			was = setField(was, "is_error", []byte(value))
		}
	case core.Image, core.Reasoning, core.Opaque: // only ever equal
	}
	return bytes.Clone(was)
}
