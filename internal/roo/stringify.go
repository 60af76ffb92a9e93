package roo

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// stringify appends to b what JSON.stringify(JSON.parse(raw)) is: compact, members that
// look like array indices first and ascending, of members with one name the last one's
// value in the first one's place, numbers and escapes as JavaScript spells them.
func stringify(b *strings.Builder, raw string) {
	switch kindOf(raw) {
	case kindNumber:
		// Beyond the range of float64, JavaScript has infinities, and writes them as null.
		if f := parseNumber(raw); f == 0 {
			b.WriteByte('0')
		} else {
			b.WriteString(formatNumber(f))
		}
	case kindString:
		b.WriteString(requote(raw))
	case kindArray:
		b.WriteByte('[')
		first := true
		for c := (cursor{s: raw, i: 1}); c.more(); first = false {
			if !first {
				b.WriteByte(',')
			}
			stringify(b, c.value())
		}
		b.WriteByte(']')
	case kindObject:
		b.WriteByte('{')
		for i, p := range properties(raw) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(p.key)
			b.WriteByte(':')
			stringify(b, p.value)
		}
		b.WriteByte('}')
	case kindUndefined, kindNull, kindBool:
		b.WriteString(raw)
	}
}

// A property is a member of an object in JavaScript's order.
type property struct {
	key   string // quoted as JSON.stringify does
	value string
	index int64 // of the key as an array index, -1 if it is none
}

// properties returns the members of object in the order of JavaScript's Object.keys.
func properties(object string) []property {
	var all []property
	at := make(map[string]int)
	for c := (cursor{s: object, i: 1}); c.more(); {
		key := requote(c.str())
		c.space()
		c.i++ // the colon
		c.space()
		value := c.value()
		if i, ok := at[key]; ok {
			all[i].value = value
			continue
		}
		at[key] = len(all)
		all = append(all, property{key: key, value: value, index: arrayIndex(key[1 : len(key)-1])})
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

// arrayIndex returns the array index that key spells in JavaScript, -1 if it spells none.
func arrayIndex(key string) int64 {
	const last = 1<<32 - 2
	n, err := strconv.ParseInt(key, 10, 64)
	if err != nil || n < 0 || n > last || strconv.FormatInt(n, 10) != key {
		return -1
	}
	return n
}

// requote spells a JSON string as JSON.stringify does: it escapes what must be escaped
// and surrogates without their other half, and nothing else.
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
		switch rest[1] {
		case '/':
			b.WriteByte('/')
		case 'u':
			r := hex4(rest[2:])
			if utf16.IsSurrogate(r) && strings.HasPrefix(rest[6:], `\u`) {
				if pair := utf16.DecodeRune(r, hex4(rest[8:])); pair != '\uFFFD' {
					b.WriteRune(pair)
					rest = rest[12:]
					continue
				}
			}
			writeEscaped(&b, r)
			rest = rest[6:]
			continue
		default:
			b.WriteString(rest[:2])
		}
		rest = rest[2:]
	}
}

// hex4 reads the four hexadecimal digits that s begins with.
func hex4(s string) rune {
	n, _ := strconv.ParseUint(s[:4], 16, 16) // JSON admits nothing else here
	return rune(n)
}

// writeEscaped writes a character that the source had as \uXXXX.
func writeEscaped(b *strings.Builder, r rune) {
	switch {
	case r == '"' || r == '\\':
		b.WriteByte('\\')
		b.WriteRune(r)
	case r < ' ':
		if short := strings.IndexRune("\b\f\n\r\t", r); short >= 0 {
			b.WriteByte('\\')
			b.WriteByte("bfnrt"[short])
			return
		}
		fmt.Fprintf(b, `\u%04x`, r)
	case utf16.IsSurrogate(r):
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		b.WriteRune(r)
	}
}
