package tokens_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/tokens"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	want := []string{"o200k_base", "cl100k_base", "chars4"}
	if got := tokens.Names(); !slices.Equal(got, want) {
		t.Errorf("Names() = %q, want %q", got, want)
	}
	for _, name := range want {
		if got := open(t, name).Name(); got != name {
			t.Errorf("Open(%q) has the name %q", name, got)
		}
	}
	_, err := tokens.Open("gpt2")
	if want := `unknown encoding "gpt2"; want one of o200k_base, cl100k_base, chars4`; err == nil || err.Error() != want {
		t.Errorf("Open(gpt2): got error %v, want %s", err, want)
	}
}

func TestCountText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text                  string
		o200k, cl100k, chars4 int
	}{
		{"", 0, 0, 0},
		{"hello world", 2, 2, 3},
		{"a<|endoftext|>b", 9, 9, 4},
		{"\xff", 1, 1, 1},
		{"\x7f", 1, 1, 1},
		{"antidisestablishmentarianism", 6, 6, 7},
		{"お誕生日おめでとう", 8, 9, 3},
		{"😀😀", 2, 4, 1},
		{"12345", 2, 2, 2},
	} {
		for name, want := range map[string]int{tokens.O200kBase: c.o200k, tokens.CL100kBase: c.cl100k, tokens.Chars4: c.chars4} {
			if got := open(t, name).CountText(c.text); got != want {
				t.Errorf("%s: CountText(%q) = %d, want %d", name, c.text, got, want)
			}
		}
	}
}

// A UTF-16 code unit is what JavaScript calls a character.
func TestChars4CountsUTF16(t *testing.T) {
	t.Parallel()
	enc := open(t, tokens.Chars4)
	for s, want := range map[string]int{
		"1234": 1, "12345": 2, "éééé": 1, "中文字": 1, "😀😀": 1, "😀😀a": 2, "\xff\xff\xff\xff": 1, "\xf0\x9f\x98": 1,
	} {
		if got := enc.CountText(s); got != want {
			t.Errorf("CountText(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestCountAllocatesNothing(t *testing.T) {
	for _, name := range tokens.Names() {
		enc := open(t, name)
		s := strings.Join(tokens.Samples, "\n")
		if got := testing.AllocsPerRun(10, func() { enc.CountText(s) }); got != 0 {
			t.Errorf("%s: CountText allocates %v times", name, got)
		}
	}
}

func TestCountConcurrently(t *testing.T) {
	t.Parallel()
	enc := open(t, tokens.O200kBase)
	r := rand.New(rand.NewPCG(19, 20))
	texts, want := make([]string, 100), make([]int, 100)
	for i := range texts {
		texts[i] = tokens.RandomText(r, 50)
		want[i] = enc.CountText(texts[i])
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i, s := range texts {
				if got := enc.CountText(s); got != want[i] {
					t.Errorf("CountText(%q) = %d, want %d", s, got, want[i])
				}
				if got := enc.Prefix(s, want[i]); got != s {
					t.Errorf("Prefix(%q, %d) = %q", s, want[i], got)
				}
			}
		})
	}
	wg.Wait()
}

// worst returns texts on which tiktoken-go takes quadratic time: hours for a megabyte.
func worst(size int) map[string]string {
	r := rand.New(rand.NewPCG(21, 22))
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	random := func(low, n rune) string {
		var b strings.Builder
		for b.Len() < size {
			b.WriteRune(low + r.Int32N(n))
		}
		return b.String()
	}
	base64url := func() string {
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		s := make([]byte, size)
		for i := range s {
			s[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(s)
	}
	return map[string]string{
		"a": repeat("a"), "spaces": repeat(" "), "newlines": repeat("\n"), "tabs": repeat("\t"), "dashes": repeat("-"), "NULs": repeat("\x00"),
		"emoji": repeat("😀"), "marks": repeat("\u0301"), "invalid": repeat("\xff"), "upper and lower": repeat("aB"), "contractions": repeat("'s"),
		"letters": random('a', 26), "capitals": random('A', 26), "CJK": random('一', 5000), "emojis": random('😀', 60),
		"base64": base64url(), "case at the end": repeat("あ") + repeat("A") + "a",
	}
}

func TestTimeIsNeverQuadratic(t *testing.T) {
	sizes := map[string]int{tokens.O200kBase: 1 << 20, tokens.CL100kBase: 1 << 16}
	if raceEnabled || testing.Short() {
		// Slower, and still long enough for quadratic time to show.
		sizes = map[string]int{tokens.O200kBase: 1 << 16, tokens.CL100kBase: 1 << 16}
	}
	for name, size := range sizes {
		enc := open(t, name)
		small, large := worst(size/8), worst(size)
		for kind := range large {
			t.Run(name+"/"+kind, func(t *testing.T) {
				testkit.Linear(t, size, func(n int) func() {
					s := small[kind]
					if n == size {
						s = large[kind]
					}
					return func() { enc.CountText(s) }
				})
			})
		}
	}
}
