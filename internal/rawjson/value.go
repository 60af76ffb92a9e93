package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the string raw; empty if raw is no string.
func Text(raw []byte) string {
	if !IsString(raw) {
		return ""
	}
	return Unquote(raw)
}

// Unquote decodes the string raw, quotes included, exactly as encoding/json does:
// bytes that are not UTF-8 and lone surrogates become U+FFFD.
func Unquote(raw []byte) string {
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
			r := Hex4(s[n:])
			size = 6
			if utf16.IsSurrogate(r) {
				pair := utf16.DecodeRune(r, Hex4(s[min(n+6, len(s)):]))
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

// Hex4 decodes the escape \uXXXX at the start of s; -1 if there is none.
func Hex4(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// AppendQuote appends s as a JSON string, without the escapes for HTML that
// encoding/json would put in. Bytes that are not UTF-8 become U+FFFD.
func AppendQuote(out []byte, s string) []byte {
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

// Encode returns the JSON of v with a line end, and without the escapes that only HTML needs.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Append appends text to out in which each ? is replaced by an argument: a string in quotes, bytes unchanged, a time
// in UTC with milliseconds. The text itself must not contain a ?.
func Append(out []byte, text string, args ...any) []byte {
	size := len(text)
	for _, a := range args {
		switch a := a.(type) {
		case string:
			size += len(a) + len(a)/16 // for escapes
		case []byte:
			size += len(a)
		}
	}
	out = slices.Grow(out, size)
	for _, a := range args {
		before, after, _ := strings.Cut(text, "?")
		out, text = append(out, before...), after
		switch a := a.(type) {
		case string:
			out = AppendQuote(out, a)
		case []byte:
			out = append(out, a...)
		case time.Time:
			out = appendTime(out, a)
		}
	}
	return append(out, text...)
}

// Clean returns raw, valid JSON, with U+FFFD in place of bytes that encoding/json accepts but vendors refuse: bytes
// that are not UTF-8 and halves of surrogate pairs.
func Clean(raw string) string {
	raw = string(appendValid(nil, []byte(raw)))
	var out []byte
	done := 0 // bytes of raw that out has
	for i := 0; i < len(raw); {
		n := strings.IndexByte(raw[i:], '\\')
		if n < 0 {
			break
		}
		i += n
		r := Hex4([]byte(raw[i:min(len(raw), i+6)]))
		switch {
		case r < 0:
			i += 2
		case !utf16.IsSurrogate(r):
			i += 6
		case utf16.DecodeRune(r, Hex4([]byte(raw[i+6:min(len(raw), i+12)]))) != utf8.RuneError:
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

// Int returns the whole Int raw; zero if it is none.
func Int(raw []byte) int {
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Time returns the time in a raw value as RFC 3339 has it; zero if there is none.
func Time(raw []byte) time.Time {
	t, err := time.Parse(time.RFC3339Nano, Text(raw))
	if err != nil {
		return time.Time{}
	}
	return t
}

// appendTime appends t as agents write it: UTC, with milliseconds. A time that is
// not known becomes the beginning of 1970.
func appendTime(out []byte, t time.Time) []byte {
	if t.IsZero() {
		t = time.UnixMilli(0)
	}
	return t.UTC().AppendFormat(out, `"2006-01-02T15:04:05.000Z"`)
}

// UnixMilli returns the time that is raw UnixMilli after 1970; zero if raw is no
// number, or none that is a time.
func UnixMilli(raw []byte) time.Time {
	if n := Int(raw); n > 0 && n < 1<<53 {
		return time.UnixMilli(int64(n)).UTC()
	}
	return time.Time{}
}

// QuoteOrNull returns s as a JSON string, or null if it is empty.
func QuoteOrNull(s string) []byte {
	if s == "" {
		return []byte("null")
	}
	return AppendQuote(nil, s)
}

// Visible returns text, which an encoder of JSON wrote, with \u in place of the characters in its
// strings that the encoder leaves and a terminal may act on.
func Visible(text string) string {
	invisible := func(r rune) bool {
		return r > '~' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp))
	}
	if strings.IndexFunc(text, invisible) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !invisible(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
