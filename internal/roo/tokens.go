package roo

import (
	"math"
	"strings"
	"unicode/utf8"
)

// unknownImageTokens is what an image counts whose data is not in the message.
const unknownImageTokens = 300

// CountTokens returns the size of blocks in tokens as Roo counts by default: half more
// than count makes of their text, rounded up once, since no public tokenizer counts quite
// like the vendors'. Count is to return the tokens of a text in the encoding o200k_base,
// with special tokens taken for text.
//
// A tool call counts its name and its arguments, a tool result its text and a placeholder
// for everything else, an image the square root of its base64 length; other blocks, such
// as reasoning, count nothing.
func CountTokens(blocks []Block, count func(string) int) int {
	sum := 0
	for _, b := range blocks {
		switch b.kind {
		case blockText:
			if text := textOf(b.raw); text != "" {
				sum += count(text)
			}
		case blockImage:
			sum += imageTokens(b.raw)
		case blockToolUse:
			sum += count(toolUseText(b.raw))
		case blockToolResult:
			sum += count(toolResultText(b.raw))
		case blockOther:
		}
	}
	return sum + (sum+1)/2
}

// textOf returns the member text of a block, "" if it is no string.
func textOf(block string) string {
	if text := lookup(block, "text"); kindOf(text) == kindString {
		return unquote(text)
	}
	return ""
}

// imageTokens returns the tokens of an image.
func imageTokens(block string) int {
	data := lookup(lookup(block, "source"), "data")
	if kindOf(data) != kindString {
		return unknownImageTokens
	}
	return int(math.Ceil(math.Sqrt(float64(utf16Len(unquote(data))))))
}

// utf16Len returns the length of s in JavaScript.
func utf16Len(s string) int {
	n := utf8.RuneCountInString(s)
	for i := range len(s) {
		if s[i] >= 0xF0 { // the first byte of a character that takes two units
			n++
		}
	}
	return n
}

// toolUseText spells a tool call about as the model sees it.
func toolUseText(block string) string {
	var b strings.Builder
	b.WriteString("Tool: ")
	b.WriteString(toString(lookup(block, "name")))
	if input := lookup(block, "input"); input != "" {
		b.WriteString("\nArguments: ")
		stringify(&b, input)
	}
	return b.String()
}

// toolResultText spells a tool result about as the model sees it.
func toolResultText(block string) string {
	lines := []string{"Tool Result (" + toString(lookup(block, "tool_use_id")) + ")"}
	if truthy(lookup(block, "is_error")) {
		lines = append(lines, "[Error]")
	}
	switch content := lookup(block, "content"); kindOf(content) {
	case kindString:
		lines = append(lines, unquote(content))
	case kindArray:
		for c := (cursor{s: content, i: 1}); c.more(); {
			lines = append(lines, resultItemText(c.value()))
		}
	case kindUndefined, kindNull, kindBool, kindNumber, kindObject:
	}
	return strings.Join(lines, "\n")
}

// resultItemText spells a block inside a tool result.
func resultItemText(item string) string {
	typ := toString(lookup(item, "type"))
	switch typ {
	case "text":
		return textOf(item)
	case "image":
		return "[Image content]"
	}
	return "[Unsupported content block: " + typ + "]"
}
