// Package plain makes text from other sources safe to print. It replaces characters that act on a
// terminal, change the direction of text, or begin a line that looks like the program's own. And it has the patterns and
// sets of words by which texts are read.
package plain

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Line returns s on one line. Line ends and tabs become spaces. Every other character that is not
// visible becomes U+FFFD: control characters of both sets, characters that change the direction
// of text, bytes that are not UTF-8.
func Line(s string) string {
	return clean(s, func(r rune) rune {
		switch r {
		case '\n', '\t', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
			return ' '
		}
		return visible(r)
	})
}

// Text is [Line] for text of several lines: it keeps line feeds and tabs, and removes a carriage
// return before a line feed.
func Text(s string) string {
	return clean(strings.ReplaceAll(s, "\r\n", "\n"), func(r rune) rune {
		switch r {
		case '\n', '\t':
			return r
		case '\u2028', '\u2029':
			return '\n'
		}
		return visible(r)
	})
}

// Each returns what a function makes of each value; nil if there are none.
func Each[T, U any](values []T, of func(T) U) (all []U) {
	all = slices.Grow(all, len(values))
	for _, v := range values {
		all = append(all, of(v))
	}
	return all
}

// Only returns the values for which a function is true; nil if there are none.
func Only[T any](values []T, is func(T) bool) (all []T) {
	for _, v := range values {
		if is(v) {
			all = append(all, v)
		}
	}
	return all
}

// Sum returns the sum of what a function makes of each value.
func Sum[T any, N int | int64 | float64 | time.Duration](values []T, of func(T) N) (sum N) {
	for _, v := range values {
		sum += of(v)
	}
	return sum
}

// Set returns the set of keys.
func Set[K comparable](keys []K) map[K]bool {
	m := make(map[K]bool, len(keys))
	for _, k := range keys {
		m[k] = true
	}
	return m
}

// Index returns where each key of the values is; of a key that several have, where the last is.
func Index[T any, K comparable](values []T, key func(T) K) map[K]int {
	m := make(map[K]int, len(values))
	for i, v := range values {
		m[key(v)] = i
	}
	return m
}

// Back returns the offset at or before i where a character of s begins; i if it is no offset within s.
func Back(s string, i int) int {
	for 0 < i && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// On returns the offset at or after i where a character of s begins, or its end; i if it is no offset within s.
func On(s string, i int) int {
	for 0 < i && i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

// Strip returns s without control and format characters, except for those in keep. A byte that is not UTF-8 becomes
// U+FFFD. Unlike [Line] it leaves no marks; it is for names.
func Strip(s, keep string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(keep, r) || !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) {
			return r
		}
		return -1
	}, s)
}

func clean(s string, replace func(rune) rune) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 { // the common case, printable ASCII
		return s
	}
	return strings.Map(replace, s) // a byte that is not UTF-8 becomes U+FFFD
}

// visible returns r, or U+FFFD if it is neither a visible character nor a space.
func visible(r rune) rune {
	if unicode.IsPrint(r) || unicode.Is(unicode.Zs, r) || unicode.Is(unicode.Co, r) {
		return r
	}
	return utf8.RuneError
}

// Abbreviate returns s if it has at most 40 characters, and else its first 40 and an ellipsis.
func Abbreviate(s string) string { return First(s, 40) }

// First returns s if it has at most n characters, and else its first n and an ellipsis.
func First(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// Clip makes text from a request safe for a message: at most 80 bytes, printable ASCII.
func Clip(s string) string {
	const longest = 80
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return s
}

// Pattern returns a regular expression that is compiled when it is first asked for: most runs of the program need few of them.
func Pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// Words returns the set of the words in list.
func Words(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// Where returns the place of a panic in a stack: the first frame below the runtime's.
func Where(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") && i+3 < len(lines) {
			file := strings.TrimSpace(lines[i+3])
			file = file[strings.LastIndex(file, "/")+1:]
			file, _, _ = strings.Cut(file, " ")
			return " at " + file
		}
	}
	return ""
}
