package tokens

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestRegister: an encoding that only counts cuts as the others do: at characters, with no more tokens than asked for, and with another
// character there would be more.
func TestRegister(t *testing.T) {
	before := encodings
	defer func() { encodings = before }()
	Register("letters", func() (func(string) int, error) { return func(s string) int { return strings.Count(s, "é") }, nil })
	e, err := Open("letters")
	if err != nil || e.Name() != "letters" || Names()[len(Names())-1] != "letters" {
		t.Fatal(e, err, Names())
	}
	for _, s := range []string{"aé bé cé dé", "ééé", "x", "\x80\x80é\xc3é"} {
		for n := range 6 {
			head, tail := e.Prefix(s, n), e.Suffix(s, n)
			if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || e.CountText(head) > n || e.CountText(tail) > n {
				t.Errorf("%d of %q: %q and %q", n, s, head, tail)
			}
			if n == 0 || !utf8.ValidString(s) {
				continue
			}
			_, next := utf8.DecodeRuneInString(s[len(head):])
			_, last := utf8.DecodeLastRuneInString(s[:len(s)-len(tail)])
			if head != s && e.CountText(s[:len(head)+next]) <= n || tail != s && e.CountText(s[len(s)-len(tail)-last:]) <= n {
				t.Errorf("%d of %q: %q and %q could be longer", n, s, head, tail)
			}
		}
	}
}
