package blocks

import (
	"bytes"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
)

// PatchMessage returns the message was, in Anthropic's shape, with its content changed to
// parts. All other fields of the message, the blocks that did not change, and the other fields
// of blocks that did are kept byte for byte.
func PatchMessage(was []byte, parts []core.Part) []byte {
	return rawjson.SetField(was, "content", patchContent(rawjson.Field(was, "content"), parts))
}

// patchContent returns the value was of "content" changed to parts.
func patchContent(was []byte, parts []core.Part) []byte {
	if !rawjson.IsArray(was) {
		return apimessage.BlockContent(parts)
	}
	var blocks [][]byte
	var old []core.Part
	for block := range rawjson.Elements(was) {
		p, err := decodeBlock(block)
		if err != nil {
			p = nil // equal to nothing, so it is dropped
		}
		blocks, old = append(blocks, block), append(old, p)
	}
	out := []byte{'['}
	match := Match(old, parts)
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		if j := match[i]; j >= 0 {
			out = append(out, patchBlock(blocks[j], old[j], p)...)
		} else {
			out = apimessage.AppendBlock(out, p)
		}
	}
	return append(out, ']')
}

// Match returns for each part of parts the index of its counterpart in old, or -1: the equal
// part, or the call or result with the same ID, or the text at the same position. No old part
// is used twice, and one that is nil never.
func Match(old, parts []core.Part) []int {
	equal := make(map[any][]int, len(old)) // by identity
	for j, o := range old {
		if o != nil {
			equal[identity(o)] = append(equal[identity(o)], j)
		}
	}
	match := make([]int, len(parts))
	used := make([]bool, len(old))
	for i, p := range parts {
		match[i] = -1
		key := identity(p)
		for n, j := range equal[key] {
			if core.EqualParts(old[j:j+1], parts[i:i+1]) {
				match[i], used[j] = j, true
				equal[key] = slices.Delete(equal[key], n, n+1)
				break
			}
		}
	}
	revised := make(map[any][]int, len(old)) // calls and results, which have IDs
	for j, o := range old {
		if id := reference(o); id != nil && !used[j] {
			revised[id] = append(revised[id], j)
		}
	}
	for i, p := range parts {
		if match[i] >= 0 {
			continue
		}
		if id := reference(p); id != nil && len(revised[id]) > 0 {
			match[i], revised[id] = revised[id][0], revised[id][1:]
		} else if _, ok := p.(core.Text); ok && i < len(old) && !used[i] {
			if _, ok := old[i].(core.Text); ok {
				match[i] = i
			}
		}
	}
	return match
}

// identity is the same for equal parts and usually differs for others.
func identity(p core.Part) any {
	if r, ok := p.(core.ToolResult); ok {
		return reference(r) // not comparable
	}
	return p
}

// reference identifies a call or a result; it is nil for other parts.
func reference(p core.Part) any {
	type call struct{ id string }
	type result struct{ id string }
	switch p := p.(type) {
	case core.ToolCall:
		return call{p.ID}
	case core.ToolResult:
		return result{p.CallID}
	case core.Text, core.Image, core.Reasoning, core.Opaque:
	}
	return nil
}

// patchBlock returns the block was, which is old, changed to p.
func patchBlock(was []byte, old, p core.Part) []byte {
	switch p := p.(type) {
	case core.Text:
		if o, ok := old.(core.Text); ok && o != p {
			// Citations point into the text by position.
			return rawjson.SetField(rawjson.DropField(was, "citations"), "text", rawjson.AppendQuote(nil, string(p)))
		}
	case core.ToolCall:
		o, ok := old.(core.ToolCall)
		if ok && o.Name != p.Name {
			was = rawjson.SetField(was, "name", rawjson.AppendQuote(nil, p.Name))
		}
		if ok && o.Args != p.Args {
			was = rawjson.SetField(was, "input", apimessage.Args(p.Args))
		}
	case core.ToolResult:
		o, ok := old.(core.ToolResult)
		if ok && !core.EqualParts(o.Content, p.Content) {
			was = rawjson.SetField(was, "content", patchContent(rawjson.Field(was, "content"), p.Content))
		}
		if ok && o.IsError != p.IsError {
			value := "false"
			if p.IsError {
				value = "true"
			}
			was = rawjson.SetField(was, "is_error", []byte(value))
		}
	case core.Image, core.Reasoning, core.Opaque: // they have no counterpart unless they are equal
	}
	return bytes.Clone(was)
}
