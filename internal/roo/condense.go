package roo

import (
	"encoding/json"
	"strings"
)

// ToolUseText spells a tool call as Roo-Code shows it to a model that writes a summary: its
// name and a line for every member of its input, the last in JavaScript's order. Input is
// JSON; "" is undefined. Roo's inputs are valid JSON; any other is spelled as it is.
func ToolUseText(name, input string) string {
	var b strings.Builder
	b.WriteString("[Tool Use: ")
	b.WriteString(name)
	b.WriteString("]\n")
	trimmed := strings.TrimSpace(input)
	switch {
	case trimmed != "" && !json.Valid([]byte(trimmed)):
		b.WriteString(input)
		return b.String()
	case kindOf(trimmed) == kindArray:
		line := lineWriter{b: &b}
		n := 0
		for c := (cursor{s: trimmed, i: 1}); c.more(); n++ {
			line.write(formatNumber(float64(n)), c.value())
		}
	case kindOf(trimmed) == kindObject:
		line := lineWriter{b: &b}
		for _, p := range properties(trimmed) {
			line.write(unquote(p.key), p.value)
		}
	default:
		b.WriteString(toString(trimmed))
	}
	return b.String()
}

// A lineWriter writes lines with a newline between them.
type lineWriter struct {
	b     *strings.Builder
	begun bool
}

func (w *lineWriter) write(key, value string) {
	if w.begun {
		w.b.WriteByte('\n')
	}
	w.begun = true
	w.b.WriteString(key)
	w.b.WriteString(": ")
	switch kindOf(value) {
	case kindArray, kindObject:
		stringifyIndented(w.b, value, "")
	case kindUndefined, kindNull, kindBool, kindNumber, kindString:
		w.b.WriteString(toString(value))
	}
}

// stringifyIndented appends to b what JSON.stringify(JSON.parse(raw), null, 2) is. What is
// nested a hundred deep, which only an attacker writes, is copied as it is: indented, it
// would grow with the square of the depth.
func stringifyIndented(b *strings.Builder, raw, indent string) {
	const deepest = 200
	if len(indent) >= deepest {
		b.WriteString(raw)
		return
	}
	deeper := indent + "  "
	switch kindOf(raw) {
	case kindArray:
		empty := true
		b.WriteByte('[')
		for c := (cursor{s: raw, i: 1}); c.more(); empty = false {
			if !empty {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
			b.WriteString(deeper)
			stringifyIndented(b, c.value(), deeper)
		}
		if !empty {
			b.WriteByte('\n')
			b.WriteString(indent)
		}
		b.WriteByte(']')
	case kindObject:
		all := properties(raw)
		b.WriteByte('{')
		for i, p := range all {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
			b.WriteString(deeper)
			b.WriteString(p.key)
			b.WriteString(": ")
			stringifyIndented(b, p.value, deeper)
		}
		if len(all) > 0 {
			b.WriteByte('\n')
			b.WriteString(indent)
		}
		b.WriteByte('}')
	case kindUndefined, kindNull, kindBool, kindNumber, kindString:
		stringify(b, raw)
	}
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
