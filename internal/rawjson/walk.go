// Package rawjson walks, decodes and edits JSON text without building values: its results are subslices of the input,
// and an edit changes no other byte.
//
// Decoding with encoding/json would read every message at least twice, because callers need the raw text as well as
// the values, and would match keys without regard to case, which no vendor's API does. Validate input with
// encoding/json first. The functions accept any bytes all the same: on malformed input they stop early, and they
// never panic.
//
// Of members with the same name the last one counts, as in encoding/json.
package rawjson

import (
	"bytes"
	"iter"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
)

// SkipSpace returns the index of the first byte from i on that is not white space.
func SkipSpace(data []byte, i int) int {
	for i < len(data) {
		switch data[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// skipString returns the index after the string that starts at i, or -1 if it does not
// end.
func skipString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		slashes := 0
		for data[i-1-slashes] == '\\' { // ends at the opening quote at the latest
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return -1
}

// SkipValue returns the index after the value that starts at i, or -1 if there is none
// or it does not end.
func SkipValue(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			if i = skipString(data, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
			i++
			continue // something must follow
		case '}', ']':
			if depth--; depth < 0 {
				return -1
			}
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			if depth == 0 {
				return -1
			}
			i++
			continue
		default:
			i = skipLiteral(data, i)
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// skipLiteral returns the index after the number or word that starts at i.
func skipLiteral(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\n', '\r':
			return i
		}
	}
	return i
}

// Fields yields the keys, unquoted, and the raw values of the object raw. It stops where
// raw is malformed, and yields nothing if raw is no object.
func Fields(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		i := SkipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '{' {
			return
		}
		for i = SkipSpace(raw, i+1); i < len(raw) && raw[i] == '"'; i = SkipSpace(raw, i+1) {
			end := skipString(raw, i)
			if end < 0 {
				return
			}
			key := keyOf(raw[i:end])
			i = SkipSpace(raw, end)
			if i >= len(raw) || raw[i] != ':' {
				return
			}
			i = SkipSpace(raw, i+1)
			if end = SkipValue(raw, i); end < 0 || !yield(key, raw[i:end]) {
				return
			}
			i = SkipSpace(raw, end)
			if i >= len(raw) || raw[i] != ',' {
				return
			}
		}
	}
}

// keyOf returns a key without its quotes.
func keyOf(raw []byte) []byte {
	if key := raw[1 : len(raw)-1]; bytes.IndexByte(key, '\\') < 0 && utf8.Valid(key) {
		return key
	}
	return []byte(Unquote(raw))
}

// Leaves yields the strings, numbers and words inside of raw, in order and at any depth, each with the key of the member
// that it is, unquoted; nil in an array. Of an object or array it yields the opening bracket, before what is in it. It
// stops where raw is malformed.
func Leaves(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, leaf []byte) bool) {
		var inObject []bool // of the brackets that are open
		var key []byte
		for i := SkipSpace(raw, 0); i < len(raw); i = SkipSpace(raw, i) {
			n := len(inObject)
			switch c := raw[i]; c {
			case '{', '[':
				if !yield(key, raw[i:i+1]) {
					return
				}
				inObject, key = append(inObject, c == '{'), nil
				i++
			case '}', ']':
				if n == 0 {
					return
				}
				inObject = inObject[:n-1]
				i++
			case ',':
				key = nil
				i++
			case ':':
				i++
			default:
				end := SkipValue(raw, i)
				switch leaf := raw[i:max(i, end)]; {
				case end < 0:
					return
				case n > 0 && inObject[n-1] && key == nil && IsString(leaf):
					key = keyOf(leaf)
				case !yield(key, leaf):
					return
				}
				i = end
			}
		}
	}
}

// Pick stores the raw members of the object raw that have these names, each at the same index. Of several members the last one counts.
func Pick(raw []byte, names []string, to ...*[]byte) {
	for k, v := range Fields(raw) {
		for i, name := range names {
			if string(k) == name {
				*to[i] = v
			}
		}
	}
}

// Field returns the raw value of the member name of the object raw, the last one if
// there are several, as encoding/json has it; nil if there is none.
func Field(raw []byte, name string) []byte {
	var found []byte
	for k, v := range Fields(raw) {
		if string(k) == name {
			found = v
		}
	}
	return found
}

// Elements yields the raw Elements of the array raw. It stops where raw is malformed,
// and yields nothing if raw is no array.
func Elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := SkipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '[' {
			return
		}
		for i = SkipSpace(raw, i+1); i < len(raw); i = SkipSpace(raw, i+1) {
			end := SkipValue(raw, i)
			if end < 0 || !yield(raw[i:end]) {
				return
			}
			i = SkipSpace(raw, end)
			if i >= len(raw) || raw[i] != ',' {
				return
			}
		}
	}
}

// Offset returns the index of inner in outer. Inner must be a subslice of outer that was
// not cut with a capacity: only the capacities are compared.
func Offset(outer, inner []byte) int { return cap(outer) - cap(inner) }

// IsString reports whether raw is a string, by its first byte.
func IsString(raw []byte) bool { return len(raw) > 1 && raw[0] == '"' }

// IsArray reports whether raw is an array, by its first byte.
func IsArray(raw []byte) bool { return len(raw) > 0 && raw[0] == '[' }

// IsObject reports whether raw is an object, by its first byte.
func IsObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// IsNull reports whether raw is null, by its first byte.
func IsNull(raw []byte) bool { return len(raw) > 0 && raw[0] == 'n' }

// IsTrue reports whether raw is true, by its first byte.
func IsTrue(raw []byte) bool { return len(raw) > 0 && raw[0] == 't' }

// Complete reports whether the array that begins raw is complete.
func Complete(raw []byte) bool { return SkipValue(raw, 0) >= 0 }

// Set returns the set of names.
func Set(names ...string) map[string]bool {
	return plain.Set(names)
}

// ReplaceValue returns raw with the value old, a part of it, replaced by value.
func ReplaceValue(raw, old, value []byte) []byte {
	at := Offset(raw, old)
	out := make([]byte, 0, len(raw)-len(old)+len(value))
	return append(append(append(out, raw[:at]...), value...), raw[at+len(old):]...)
}

// SetField returns the object raw with the member name set to value: in place if there
// is one, else after the others.
func SetField(raw []byte, name string, value []byte) []byte {
	if old := Field(raw, name); old != nil {
		return ReplaceValue(raw, old, value)
	}
	end := bytes.LastIndexByte(raw, '}')
	if end < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw)+len(name)+len(value)+4)
	if SkipSpace(raw, bytes.IndexByte(raw, '{')+1) < end {
		end = len(bytes.TrimRight(raw[:end], " \t\r\n")) // the space stays at the end, so that CutField restores every byte
		out = append(append(out, raw[:end]...), ',')
	} else {
		out = append(out, raw[:end]...)
	}
	out = append(AppendQuote(out, name), ':')
	return append(append(out, value...), raw[end:]...)
}

// DropField returns the object raw without the members called name. The others are
// kept byte for byte.
func DropField(raw []byte, name string) []byte {
	if Field(raw, name) == nil {
		return raw
	}
	done := bytes.IndexByte(raw, '{') + 1
	out := append(make([]byte, 0, len(raw)), raw[:done]...)
	first := true
	for k, v := range Fields(raw) {
		end := Offset(raw, v) + len(v)
		member := raw[done:end] // with the comma before it
		done = end
		if string(k) == name {
			continue
		}
		if at := SkipSpace(member, 0); first && member[at] == ',' {
			member = member[at+1:]
		}
		first = false
		out = append(out, member...)
	}
	return append(out, raw[done:]...)
}

// CutField returns the object raw, which has no space around it, without the members called name. A member is removed
// with the comma and the space before it, the first member with those after it.
func CutField(raw []byte, name string) []byte {
	if Field(raw, name) == nil {
		return raw
	}
	begin := SkipSpace(raw, 1)
	out := append([]byte(nil), raw[:begin]...)
	kept := false
	last := begin // the end of the member before
	for at := begin; at < len(raw) && raw[at] == '"'; {
		key := raw[at:skipString(raw, at)]
		value := SkipSpace(raw, SkipSpace(raw, at+len(key))+1)
		end := SkipValue(raw, value)
		if Unquote(key) != name {
			if kept {
				out = append(out, raw[last:at]...)
			}
			out = append(out, raw[at:end]...)
			kept = true
		}
		last = end
		if at = SkipSpace(raw, end); raw[at] == ',' {
			at = SkipSpace(raw, at+1)
		}
	}
	return append(out, raw[last:]...)
}

// Array returns values as an array.
func Array[T ~[]byte](values []T) []byte {
	size := len("[]") + len(values)
	for _, v := range values {
		size += len(v)
	}
	out := append(make([]byte, 0, size), '[')
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}
