package roo

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// ToolUseText spells a tool call as Roo-Code shows it to a model that writes a summary: its
// name and a line for every member of its input, in JavaScript's order. Input is JSON; an
// empty one is undefined. Input that is not valid JSON, which Roo never has, is copied.
func ToolUseText(name, input string) string {
	var b strings.Builder
	b.WriteString("[Tool Use: " + name + "]")
	raw := []byte(strings.TrimSpace(input))
	line := func(key string, value []byte) {
		b.WriteString("\n" + key + ": ")
		if rawjson.IsArray(value) || rawjson.IsObject(value) {
			stringify(&b, value, "")
		} else {
			b.WriteString(toString(value))
		}
	}
	begun := b.Len()
	switch {
	case len(raw) > 0 && !json.Valid(raw):
		b.WriteString("\n" + input)
	case rawjson.IsArray(raw):
		n := 0
		for v := range rawjson.Elements(raw) {
			line(strconv.Itoa(n), v)
			n++
		}
	case rawjson.IsObject(raw):
		for _, p := range properties(raw) {
			line(p.key, p.value)
		}
	default:
		b.WriteString("\n" + toString(raw))
	}
	if b.Len() == begun { // no members
		b.WriteByte('\n')
	}
	return b.String()
}

// ToolResultText spells a tool result as Roo-Code shows it to a model that writes a
// summary. Items are its content, line by line; nil means that it has none.
func ToolResultText(isError bool, items []string) string {
	head := "[Tool Result]"
	if isError {
		head = "[Tool Result (Error)]"
	}
	if items == nil {
		return head
	}
	return head + "\n" + strings.Join(items, "\n")
}
