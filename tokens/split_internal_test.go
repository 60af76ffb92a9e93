package tokens

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dlclark/regexp2"
)

// The patterns of the encodings, as tiktoken-go compiles them.
var patterns = []struct {
	name    string
	pattern *regexp2.Regexp
	split   splitter
}{
	{O200kBase, regexp2.MustCompile(
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
			`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
			`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`, regexp2.None), splitO200k},
	{CL100kBase, regexp2.MustCompile(
		`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`, regexp2.None), splitCL100k},
}

// checkSplit compares the pieces themselves: other pieces often have as many tokens.
func checkSplit(t *testing.T, s string) {
	t.Helper()
	s = toValid(s)
	for _, p := range patterns {
		var got, want []string
		for i := 0; i < len(s); {
			e := p.split(loadClasses(), s, i)
			got = append(got, s[i:e])
			i = e
		}
		m, err := p.pattern.FindStringMatch(s)
		for ; m != nil && err == nil; m, err = p.pattern.FindNextMatch(m) {
			want = append(want, m.String())
		}
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q splits into %q, want %q", p.name, s, got, want)
		}
	}
}

func TestSplitAsPattern(t *testing.T) {
	t.Parallel()
	for _, a := range Atoms {
		checkSplit(t, a)
		for _, b := range Atoms {
			checkSplit(t, a+b)
		}
	}
	r := rand.New(rand.NewPCG(25, 26))
	for range 5000 {
		checkSplit(t, RandomText(r, 10))
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range append(Samples, Atoms...) {
		f.Add(s)
	}
	r := rand.New(rand.NewPCG(27, 28))
	for range 200 {
		f.Add(RandomText(r, 30))
	}
	f.Fuzz(func(t *testing.T, s string) { checkSplit(t, s[:min(len(s), 2048)]) })
}
