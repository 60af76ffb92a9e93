package plain_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"read_file":                         "read_file",
		"Größe 大小 🙂":                        "Größe 大小 🙂",
		"a\u00a0b\u3000c":                   "a\u00a0b\u3000c",
		"\x1b]0;title\x07":                  "\ufffd]0;title\ufffd",
		"\u009b31m":                         "\ufffd31m",
		"\x7f":                              "\ufffd",
		"done\ncondensation 0":              "done condensation 0",
		"a\r\nb\u2028c\u2029d\u0085e\vf\tg": "a  b c d e f g",
		"\u202egnp.exe\u2069":               "\ufffdgnp.exe\ufffd",
		"zero\u200bwidth\ufeff":             "zero\ufffdwidth\ufffd",
		"\U000e0041":                        "\ufffd",
		"bad \xff\x9b":                      "bad \ufffd\ufffd",
	} {
		if got := plain.Line(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestText(t *testing.T) {
	if got, want := plain.Text("a\tb\r\nc\rd\u2028e\x1b[2J\n"), "a\tb\nc\ufffdd\ne\ufffd[2J\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// No input leaves an invisible character, and plain text is unchanged.
func FuzzLine(f *testing.F) {
	f.Add("a\x1b[31m\n\u202e\u2028\xff")
	f.Fuzz(func(t *testing.T, s string) {
		line, text := plain.Line(s), plain.Text(s)
		for _, got := range []string{line, strings.NewReplacer("\n", "", "\t", "").Replace(text)} {
			if !utf8.ValidString(got) {
				t.Errorf("%q: %q is not UTF-8", s, got)
			}
			for _, r := range got {
				if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
					t.Errorf("%q: %q is left", s, r)
				}
			}
		}
		if plain.Line(line) != line || plain.Text(text) != text {
			t.Errorf("%q: cleaning twice differs from once", s)
		}
	})
}

func TestStrip(t *testing.T) {
	for got, want := range map[string]string{
		plain.Strip("a\x1b[31mb\u202ec\n\td\xff\r", "\n\t"): "a[31mbc\n\td\ufffd",
		plain.Strip("a\nb\tc", "\t"):                        "ab\tc",
		plain.Strip("naïve ✓", ""):                          "naïve ✓",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAbbreviate(t *testing.T) {
	long := strings.Repeat("ä", 41)
	for s, want := range map[string]string{"": "", long[:80]: long[:80], long: long[:80] + "…"} {
		if got := plain.Abbreviate(s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestOffsets(t *testing.T) {
	const s = "aä漢"
	for i, want := range [][2]int{{0, 0}, {1, 1}, {1, 3}, {3, 3}, {3, 6}, {3, 6}, {6, 6}, {7, 7}} {
		if back, on := plain.Back(s, i), plain.On(s, i); [2]int{back, on} != want {
			t.Errorf("%d: got %d and %d, want %d", i, back, on, want)
		}
	}
}

func TestIndex(t *testing.T) {
	words := []string{"one", "two", "six"}
	if got := plain.Index(words, func(s string) string { return s[:1] }); len(got) != 3 || got["s"] != 2 {
		t.Errorf("got %v", got)
	}
	if got := plain.Set(plain.Each(words, func(s string) int { return len(s) })); len(got) != 1 || !got[3] {
		t.Errorf("got %v", got)
	}
	if got := plain.Each(nil, strings.ToUpper); got != nil {
		t.Errorf("got %v, want nil", got)
	}
}
