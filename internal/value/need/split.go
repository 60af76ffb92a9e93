package need

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// A line of more than longLine bytes is taken apart: a page of prose or of JSON is not
// kept or lost as one. Its pieces have leastPiece to mostPiece bytes, a sentence or two.
const (
	longLine   = 320
	leastPiece = 100
	mostPiece  = 260
)

// pieces yields line in several pieces, which end where a sentence, an object, a clause or
// a word does, whichever is found first in that order.
func pieces(line string, yield func(string)) {
	for len(line) > longLine {
		cut := cutAt(line)
		yield(line[:cut])
		line = line[cut:]
	}
	if line != "" {
		yield(line)
	}
}

func cutAt(line string) int {
	clause, word := -1, -1
	for i := leastPiece; i < mostPiece; i++ {
		switch b, next := line[i-1], line[i]; {
		case (b == '.' || b == '!' || b == '?' || b == ';') && next == ' ', b == '}' && next == ',', b == '>' && next == '<', b == 'n' && line[i-2] == '\\':
			return i
		case b == ',' || b == '}' || b == ']':
			if clause < 0 || i < mostPiece*3/4 {
				clause = i
			}
		case b == ' ':
			word = i
		}
	}
	switch {
	case clause > 0:
		return clause
	case word > 0:
		return word
	}
	cut := mostPiece
	for cut > leastPiece && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return cut
}

// isJSON reports whether a line looks like a JSON object or array that is worth reading as
// one.
func isJSON(line string) bool {
	const least = 40
	line = strings.TrimSpace(line)
	return len(line) >= least && (line[0] == '{' && line[len(line)-1] == '}' || line[0] == '[' && line[len(line)-1] == ']') && strings.IndexByte(line, '"') >= 0
}

// flatten yields the values in the JSON object or array args, each with its key before it, and the
// key, and reports whether args is one.
func flatten(args string, yield func(key, text string)) bool {
	args = strings.TrimSpace(args)
	if args == "" || args[0] != '{' && args[0] != '[' || !json.Valid([]byte(args)) {
		return false
	}
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	type level struct {
		object, isKey bool
		key           string
	}
	var stack []level
	for {
		t, err := d.Token()
		if err != nil {
			return true
		}
		top := len(stack) - 1
		if s, ok := t.(string); ok && top >= 0 && stack[top].isKey {
			stack[top].key, stack[top].isKey = s, false
			continue
		}
		var key, value string
		switch t := t.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				if top >= 0 && stack[top].object && strings.ContainsAny(stack[top].key, "0123456789/.") {
					yield("", stack[top].key+":") // a key that is no field says what follows is about
				}
				stack = append(stack, level{object: t == '{', isKey: t == '{'})
				continue
			}
			stack = stack[:top]
			if top--; top >= 0 {
				stack[top].isKey = stack[top].object
			}
			continue
		case string:
			value = t
		case json.Number:
			value = t.String()
		case bool:
			value = map[bool]string{true: "true", false: "false"}[t]
		default:
			value = "null"
		}
		if top >= 0 && stack[top].object {
			key = stack[top].key
			value = key + ": " + value
			stack[top].isKey = true
		}
		yield(key, value)
	}
}
