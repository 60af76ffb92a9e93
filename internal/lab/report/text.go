package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// visible returns s with everything that is invisible or acts on the text around it
// replaced by a visible sign: C0 and C1 controls, the marks that turn the direction of
// text, blanks without width, tags. Line ends and tabs stay; invalid UTF-8 becomes U+FFFD.
func visible(s string) string {
	if strings.IndexFunc(s, acts) < 0 && utf8.ValidString(s) && !strings.Contains(s, "\r") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for _, r := range s {
		switch {
		case !acts(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r) // the pictures of the controls
		case r == 0x7f:
			b.WriteRune('␡')
		default:
			fmt.Fprintf(&b, "⟦U+%04X⟧", r)
		}
	}
	return b.String()
}

// acts reports whether r does something instead of showing something.
func acts(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x061c, r == 0x200b, r >= 0x200e && r <= 0x200f, r == 0x2028, r == 0x2029,
		r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb,
		r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// line returns s as one visible line of at most n runes.
func line(s string, n int) string {
	s = strings.Join(strings.Fields(visible(s)), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// cut returns s, or where it has more than most bytes its beginning and its end, and how
// many bytes are left out.
func cut(s string, most int) (string, int) {
	if len(s) <= most {
		return s, 0
	}
	head, tail := most*3/4, len(s)-most/4
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	out := tail - head
	return fmt.Sprintf("%s\n\n[… %s bytes are left out of this page …]\n\n%s", s[:head], thousands(out), s[tail:]), out
}
