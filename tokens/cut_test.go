package tokens_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/condensehq/condense/tokens"
)

// borders returns the offsets at which s can be cut between two characters.
func borders(s string) []int {
	var at []int
	for i := range s {
		at = append(at, i)
	}
	return append(at, len(s))
}

// checkCuts verifies what Prefix and Suffix promise for s and n. If they leave more than
// three tokens unused, which a character may need, the longest text there is, found by
// trying all, may be longer by slack bytes.
func checkCuts(t *testing.T, enc *tokens.Encoding, s string, n, slack int) {
	t.Helper()
	prefix, suffix := enc.Prefix(s, n), enc.Suffix(s, n)
	if !strings.HasPrefix(s, prefix) {
		t.Fatalf("%s: Prefix(%q, %d) = %q, which is no prefix", enc.Name(), s, n, prefix)
	}
	if !strings.HasSuffix(s, suffix) {
		t.Fatalf("%s: Suffix(%q, %d) = %q, which is no suffix", enc.Name(), s, n, suffix)
	}
	if got := enc.CountText(prefix); got > max(n, 0) {
		t.Errorf("%s: Prefix(%q, %d) = %q, of %d tokens", enc.Name(), s, n, prefix, got)
	}
	if got := enc.CountText(suffix); got > max(n, 0) {
		t.Errorf("%s: Suffix(%q, %d) = %q, of %d tokens", enc.Name(), s, n, suffix, got)
	}
	cutPrefix, cutSuffix := false, false
	first, last := len(s), 0 // the borders of the longest suffix and prefix that fit
	for _, i := range borders(s) {
		cutPrefix = cutPrefix || i == len(prefix)
		cutSuffix = cutSuffix || i == len(s)-len(suffix)
		if enc.CountText(s[:i]) <= n {
			last = i
		}
		if i < first && enc.CountText(s[i:]) <= n {
			first = i
		}
	}
	if !cutPrefix || !cutSuffix {
		t.Errorf("%s: Prefix(%q, %d) = %q and Suffix %q break a character", enc.Name(), s, n, prefix, suffix)
	}
	if last-len(prefix) > slack && enc.CountText(prefix) < n-3 {
		t.Errorf("%s: Prefix(%q, %d) = %q, but %q has no more", enc.Name(), s, n, prefix, s[:last])
	}
	if len(s)-first-len(suffix) > slack && enc.CountText(suffix) < n-3 {
		t.Errorf("%s: Suffix(%q, %d) = %q, but %q has no more", enc.Name(), s, n, suffix, s[first:])
	}
	if enc.CountText(s) <= n && (prefix != s || suffix != s) {
		t.Errorf("%s: Prefix(%q, %d) = %q and Suffix %q, but all of it fits", enc.Name(), s, n, prefix, suffix)
	}
}

func TestCuts(t *testing.T) {
	t.Parallel()
	for _, name := range tokens.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enc := open(t, name)
			for _, s := range tokens.Samples {
				for n := -1; n <= enc.CountText(s)+1; n++ {
					checkCuts(t, enc, s, n, 8)
				}
			}
			// Tokens of o200k_base that are not one on their own, because the pattern splits
			// them, and white space that has more tokens at the end of a text than before a
			// number.
			const apart = "\u4e9a\u6d32AV"
			checkCuts(t, enc, apart+"a", 1, 8)
			checkCuts(t, enc, strings.Repeat("中", 50)+apart+"a", enc.CountText(strings.Repeat("中", 50))+1, 8)
			checkCuts(t, enc, "!\n//\n//", 1, 8)
			checkCuts(t, enc, "\t \u20031", 2, 8)
			r := rand.New(rand.NewPCG(15, 16))
			for range 300 {
				s := tokens.RandomText(r, 20)
				checkCuts(t, enc, s, r.IntN(enc.CountText(s)+2), 8)
			}
		})
	}
}

func TestCutsOfLongTexts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{tokens.O200kBase, tokens.CL100kBase} {
		enc := open(t, name)
		for kind, s := range worst(8 << 10) {
			total := enc.CountText(s)
			for _, n := range []int{1, 2, 100, total / 3, total - 1} {
				prefix, suffix := enc.Prefix(s, n), enc.Suffix(s, n)
				for _, part := range []string{prefix, suffix} {
					if !utf8.ValidString(part) && utf8.ValidString(s) {
						t.Errorf("%s: %s cut to %d tokens is not valid UTF-8", name, kind, n)
					}
					// A character has up to 4 tokens.
					if got := enc.CountText(part); got > n || got < min(n, total)-3 {
						t.Errorf("%s: %s cut to %d tokens has %d", name, kind, n, got)
					}
				}
				if !strings.HasPrefix(s, prefix) || !strings.HasSuffix(s, suffix) {
					t.Errorf("%s: %s cut to %d tokens is something else", name, kind, n)
				}
			}
		}
	}
}

func FuzzCut(f *testing.F) {
	for i, s := range append(tokens.Samples, tokens.Atoms...) {
		f.Add(s, i%20)
	}
	r := rand.New(rand.NewPCG(17, 18))
	for range 100 {
		f.Add(tokens.RandomText(r, 30), r.IntN(30))
	}
	var all []*tokens.Encoding
	for _, name := range tokens.Names() {
		all = append(all, open(f, name))
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		for _, enc := range all {
			// The search for a longer one is quadratic, and how much longer one there
			// may be has no bound that would hold for everything that fuzzing finds.
			checkCuts(t, enc, s[:min(len(s), 200)], n, 200)
		}
	})
}
