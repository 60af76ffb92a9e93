package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// This file walks JSON without decoding it. Reading with encoding/json would decode
// every message at least twice (the raw block is needed beside its parts) and match
// keys without regard to case, which no vendor's API does. Files are validated by
// encoding/json first; the functions here are total on any bytes all the same, because
// detection looks at files that have not been validated.

// skipSpace returns the index of the first byte at or behind i that is not white space.
func skipSpace(data []byte, i int) int {
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

// skipString returns the index behind the string that starts at i, or -1 if it does not
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

// skipValue returns the index behind the value that starts at i, or -1 if there is none
// or it does not end.
func skipValue(data []byte, i int) int {
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

// skipLiteral returns the index behind the number or word that starts at i.
func skipLiteral(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\n', '\r':
			return i
		}
	}
	return i
}

// fields yields the keys, unquoted, and the raw values of the object raw. It stops where
// raw is malformed, and yields nothing if raw is no object.
func fields(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		i := skipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '{' {
			return
		}
		for i = skipSpace(raw, i+1); i < len(raw) && raw[i] == '"'; i = skipSpace(raw, i+1) {
			end := skipString(raw, i)
			if end < 0 {
				return
			}
			key := raw[i+1 : end-1]
			if bytes.IndexByte(key, '\\') >= 0 || !utf8.Valid(key) {
				key = []byte(unquote(raw[i:end]))
			}
			i = skipSpace(raw, end)
			if i >= len(raw) || raw[i] != ':' {
				return
			}
			i = skipSpace(raw, i+1)
			if end = skipValue(raw, i); end < 0 || !yield(key, raw[i:end]) {
				return
			}
			i = skipSpace(raw, end)
			if i >= len(raw) || raw[i] != ',' {
				return
			}
		}
	}
}

// field returns the raw value of the member name of the object raw, the last one if
// there are several, as encoding/json has it; nil if there is none.
func field(raw []byte, name string) []byte {
	var found []byte
	for k, v := range fields(raw) {
		if string(k) == name {
			found = v
		}
	}
	return found
}

// elements yields the raw elements of the array raw. It stops where raw is malformed,
// and yields nothing if raw is no array.
func elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '[' {
			return
		}
		for i = skipSpace(raw, i+1); i < len(raw); i = skipSpace(raw, i+1) {
			end := skipValue(raw, i)
			if end < 0 || !yield(raw[i:end]) {
				return
			}
			i = skipSpace(raw, end)
			if i >= len(raw) || raw[i] != ',' {
				return
			}
		}
	}
}

// offsetIn returns where inner stands in outer, of which it must be a subslice that
// was not cut with a capacity. Only capacities tell; the bytes are not looked at.
func offsetIn(outer, inner []byte) int { return cap(outer) - cap(inner) }

// isString, isArray, isObject and isNull tell the type of the raw value by its first
// byte.
func isString(raw []byte) bool { return len(raw) > 1 && raw[0] == '"' }
func isArray(raw []byte) bool  { return len(raw) > 0 && raw[0] == '[' }
func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
func isNull(raw []byte) bool   { return len(raw) > 0 && raw[0] == 'n' }
func isTrue(raw []byte) bool   { return len(raw) > 0 && raw[0] == 't' }

// text returns the string raw; empty if raw is no string.
func text(raw []byte) string {
	if !isString(raw) {
		return ""
	}
	return unquote(raw)
}

// unquote decodes the string raw, quotes included, exactly as encoding/json does:
// bytes that are not UTF-8 and lone surrogates become U+FFFD.
func unquote(raw []byte) string {
	s := raw[1 : len(raw)-1]
	n := bytes.IndexByte(s, '\\')
	if n < 0 && utf8.Valid(s) {
		return string(s)
	}
	out := make([]byte, 0, len(s))
	for n >= 0 && n+1 < len(s) {
		out = appendValid(out, s[:n])
		size := 2
		switch c := s[n+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(s[n:])
			size = 6
			if utf16.IsSurrogate(r) {
				pair := utf16.DecodeRune(r, hex4(s[min(n+6, len(s)):]))
				if pair != utf8.RuneError {
					size = 12
				}
				r = pair
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
		s = s[min(n+size, len(s)):]
		n = bytes.IndexByte(s, '\\')
	}
	return string(appendValid(out, s))
}

// appendValid appends s with U+FFFD for each byte that is not part of UTF-8.
func appendValid(out, s []byte) []byte {
	if utf8.Valid(s) {
		return append(out, s...)
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		out = utf8.AppendRune(out, r)
		s = s[n:]
	}
	return out
}

// hex4 decodes the escape \uXXXX at the start of s; -1 if there is none.
func hex4(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// appendQuoted appends s as a JSON string, without the escapes for HTML that
// encoding/json would put in. Bytes that are not UTF-8 become U+FFFD.
func appendQuoted(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				out = append(append(out, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		out = append(out, s[start:i]...)
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(out, s[start:]...), '"')
}

// replaceValue returns raw with the value old, a part of it, replaced by value.
func replaceValue(raw, old, value []byte) []byte {
	at := offsetIn(raw, old)
	out := make([]byte, 0, len(raw)-len(old)+len(value))
	return append(append(append(out, raw[:at]...), value...), raw[at+len(old):]...)
}

// setField returns the object raw with the member name set to value: in place if there
// is one, else behind the others.
func setField(raw []byte, name string, value []byte) []byte {
	if old := field(raw, name); old != nil {
		return replaceValue(raw, old, value)
	}
	end := bytes.LastIndexByte(raw, '}')
	if end < 0 {
		return raw
	}
	out := append(make([]byte, 0, len(raw)+len(name)+len(value)+4), raw[:end]...)
	if skipSpace(raw, bytes.IndexByte(raw, '{')+1) < end {
		out = append(out, ',')
	}
	out = append(appendQuoted(out, name), ':')
	return append(append(out, value...), raw[end:]...)
}

// validate checks that data is one JSON value. The error says where it is not.
func validate(data []byte) *SyntaxError {
	if json.Valid(data) {
		return nil
	}
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	e := &SyntaxError{Found: "no valid JSON", Want: "one JSON value"}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		e.Offset = max(0, int(syntax.Offset)-1)
		e.Found = syntax.Error()
	}
	if strings.HasSuffix(e.Found, "exceeded max depth") {
		e.Found, e.Want = "values nested more than 10000 deep", "fewer"
	}
	if skipSpace(data, 0) == len(data) {
		e.Found, e.Offset = "nothing", 0
	} else if e.Found == "unexpected end of JSON input" {
		e.Offset = len(data)
		e.Found = "the end of the file inside a JSON value"
		e.Want = "a complete file; was it cut off?"
	}
	return e
}

// describe names the raw value for an error: its type, and itself if it is short.
func describe(raw []byte) string {
	switch {
	case raw == nil:
		return "nothing"
	case isObject(raw):
		return "an object"
	case isArray(raw):
		return "an array"
	case len(raw) > 40:
		return fmt.Sprintf("%s…", bytes.ToValidUTF8(raw[:40], nil))
	}
	return string(raw)
}

// dropField returns the object raw without the members called name. The others are
// kept byte for byte.
func dropField(raw []byte, name string) []byte {
	if field(raw, name) == nil {
		return raw
	}
	done := bytes.IndexByte(raw, '{') + 1
	out := append(make([]byte, 0, len(raw)), raw[:done]...)
	first := true
	for k, v := range fields(raw) {
		end := offsetIn(raw, v) + len(v)
		member := raw[done:end] // with the comma before it
		done = end
		if string(k) == name {
			continue
		}
		if at := skipSpace(member, 0); first && member[at] == ',' {
			member = member[at+1:]
		}
		first = false
		out = append(out, member...)
	}
	return append(out, raw[done:]...)
}

// cleanJSON returns raw, valid JSON, without what vendors refuse although
// encoding/json takes it: bytes that are not UTF-8 and halves of surrogate pairs. Both
// become U+FFFD.
func cleanJSON(raw string) string {
	raw = string(appendValid(nil, []byte(raw)))
	var out []byte
	done := 0 // bytes of raw that out has
	for i := 0; i < len(raw); {
		n := strings.IndexByte(raw[i:], '\\')
		if n < 0 {
			break
		}
		i += n
		r := hex4([]byte(raw[i:min(len(raw), i+6)]))
		switch {
		case r < 0:
			i += 2
		case !utf16.IsSurrogate(r):
			i += 6
		case utf16.DecodeRune(r, hex4([]byte(raw[i+6:min(len(raw), i+12)]))) != utf8.RuneError:
			i += 12
		default:
			out = append(append(out, raw[done:i]...), `\ufffd`...)
			i += 6
			done = i
		}
	}
	if out == nil {
		return raw
	}
	return string(append(out, raw[done:]...))
}
