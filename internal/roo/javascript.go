package roo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/rawjson"
)

// This file reproduces JavaScript's treatment of values from JSON. A value is its JSON text, which must be valid;
// undefined is nil.

// isNumber reports whether raw is a number.
func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}

// truthy reports whether JavaScript's if takes raw for true.
func truthy(raw []byte) bool {
	switch {
	case len(raw) == 0, raw[0] == 'n', raw[0] == 'f', string(raw) == `""`:
		return false
	case isNumber(raw):
		return number(raw) != 0
	}
	return true
}

// number returns the float64 nearest to a number, an infinity beyond the range.
func number(raw []byte) float64 {
	f, _ := strconv.ParseFloat(string(raw), 64) // f is the right value even after a range error
	return f
}

// toString converts raw as String does.
func toString(raw []byte) string {
	switch {
	case len(raw) == 0:
		return "undefined"
	case isNumber(raw):
		switch f := number(raw); {
		case math.IsInf(f, 1):
			return "Infinity"
		case math.IsInf(f, -1):
			return "-Infinity"
		default:
			return formatNumber(f)
		}
	case rawjson.IsString(raw):
		return rawjson.Unquote(raw)
	case rawjson.IsArray(raw):
		var parts []string
		for v := range rawjson.Elements(raw) {
			if rawjson.IsNull(v) {
				v = []byte(`""`)
			}
			parts = append(parts, toString(v))
		}
		return strings.Join(parts, ",")
	case rawjson.IsObject(raw):
		return "[object Object]"
	}
	return string(raw)
}

// formatNumber spells f as JSON.stringify does, which is also how encoding/json does. JSON
// has no NaN and no infinities; both are null.
func formatNumber(f float64) string {
	if f == 0 {
		return "0" // of -0, too
	}
	text, err := json.Marshal(f)
	if err != nil {
		return "null"
	}
	return string(text)
}

// stringify appends JSON.stringify(JSON.parse(raw), null, 2) to b, for a value that is indented by indent: members
// whose names are array indices come first, in ascending order; of members with one name the last one's value takes
// the first one's place; numbers and escapes are spelled as JavaScript does. Values nested a hundred deep, which only
// an attacker writes, are copied unchanged: indented, they would grow with the square of the depth.
func stringify(b *strings.Builder, raw []byte, indent string) {
	const deepest = 200
	deeper := indent + "  "
	line := func(n int) {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + deeper)
	}
	end := func(n int, bracket byte) {
		if n > 0 {
			b.WriteString("\n" + indent)
		}
		b.WriteByte(bracket)
	}
	n := 0
	switch {
	case len(indent) >= deepest:
		b.Write(raw)
	case isNumber(raw):
		b.WriteString(formatNumber(number(raw)))
	case rawjson.IsString(raw):
		b.WriteString(requote(string(raw)))
	case rawjson.IsArray(raw):
		b.WriteByte('[')
		for v := range rawjson.Elements(raw) {
			line(n)
			stringify(b, v, deeper)
			n++
		}
		end(n, ']')
	case rawjson.IsObject(raw):
		b.WriteByte('{')
		for _, p := range properties(raw) {
			line(n)
			b.WriteString(quote(p.key) + ": ")
			stringify(b, p.value, deeper)
			n++
		}
		end(n, '}')
	default:
		b.Write(raw)
	}
}

// A property is a member of an object.
type property struct {
	key   string
	value []byte
	index int64 // of the key as an array index, -1 if it is none
}

// properties returns the members of object in the order of Object.keys.
func properties(object []byte) []property {
	var all []property
	at := make(map[string]int)
	for k, v := range rawjson.Fields(object) {
		key := string(k)
		if i, ok := at[key]; ok {
			all[i].value = v
			continue
		}
		at[key] = len(all)
		all = append(all, property{key, v, arrayIndex(key)})
	}
	slices.SortStableFunc(all, func(a, b property) int {
		switch {
		case a.index >= 0 && b.index >= 0:
			return cmp.Compare(a.index, b.index)
		case a.index >= 0:
			return -1
		case b.index >= 0:
			return 1
		}
		return 0
	})
	return all
}

// arrayIndex returns the array index that key spells, -1 if it spells none.
func arrayIndex(key string) int64 {
	const last = 1<<32 - 2
	n, err := strconv.ParseInt(key, 10, 64)
	if err != nil || n < 0 || n > last || strconv.FormatInt(n, 10) != key {
		return -1
	}
	return n
}

// quote spells s as JSON.stringify does, with a minimum of escapes.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		writeEscaped(&b, r)
	}
	b.WriteByte('"')
	return b.String()
}

// requote spells the JSON string token as JSON.stringify does. A surrogate without its other
// half, which quote cannot spell, stays escaped.
func requote(token string) string {
	i := strings.IndexByte(token, '\\')
	if i < 0 {
		return token
	}
	var b strings.Builder
	b.Grow(len(token))
	for rest := token; ; i = strings.IndexByte(rest, '\\') {
		if i < 0 {
			b.WriteString(rest)
			return b.String()
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		size := 2
		switch rest[1] {
		case '/':
			b.WriteByte('/')
		case 'u':
			r := hex4(rest[2:])
			size = 6
			if utf16.IsSurrogate(r) && strings.HasPrefix(rest[6:], `\u`) {
				if pair := utf16.DecodeRune(r, hex4(rest[8:])); pair != utf8.RuneError {
					r, size = pair, 12
				}
			}
			writeEscaped(&b, r)
		default:
			b.WriteString(rest[:2])
		}
		rest = rest[size:]
	}
}

// hex4 reads the four hexadecimal digits that s begins with.
func hex4(s string) rune {
	n, _ := strconv.ParseUint(s[:4], 16, 16) // valid JSON has nothing else here
	return rune(n)
}

// writeEscaped writes a character, escaped if it must be.
func writeEscaped(b *strings.Builder, r rune) {
	switch short := bytes.IndexByte([]byte("\b\f\n\r\t"), byte(min(r, 0xff))); {
	case r == '"' || r == '\\':
		b.WriteByte('\\')
		b.WriteRune(r)
	case short >= 0:
		b.WriteByte('\\')
		b.WriteByte("bfnrt"[short])
	case r < ' ' || utf16.IsSurrogate(r):
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		b.WriteRune(r)
	}
}
