package tokens

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// vocabularies are those of the exact encodings.
func vocabularies(tb testing.TB) map[string]*vocabulary {
	tb.Helper()
	all := make(map[string]*vocabulary)
	for _, e := range encodings {
		opened, err := e.open()
		if err != nil {
			tb.Fatal(err)
		}
		if b, ok := opened.(*bpe); ok {
			all[e.name] = b.vocabulary
		}
	}
	return all
}

// merger.queued relies on this: if in any text a merge made one of a lower rank possible,
// then the result of that one would be a token of which the same were true. (What was
// merged inside its bytes before did not depend on what is around them, for no merge had
// crossed the border.) So it is enough to look at the tokens.
func TestRanksNeverFall(t *testing.T) {
	t.Parallel()
	for name, v := range vocabularies(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tokens := all(v)
			if len(tokens) != v.ranks-256 { // all but the single bytes
				t.Fatalf("found %d tokens of %d ranks", len(tokens), v.ranks)
			}
			var starts []int
			for _, s := range tokens {
				starts = starts[:0]
				for i := range len(s) + 1 {
					starts = append(starts, i)
				}
				last := uint32(0)
				for len(starts) > 2 {
					at, low := 0, uint32(noRank)
					for i := range len(starts) - 2 {
						if r := v.rank(s, starts[i], starts[i+2]); r < low {
							at, low = i, r
						}
					}
					if low == noRank {
						break
					}
					if low < last {
						t.Fatalf("merging %q: rank %d after %d", s, low, last)
					}
					last = low
					starts = slices.Delete(starts, at+1, at+2)
				}
			}
		})
	}
}

// all returns the tokens of two bytes and more.
func all(v *vocabulary) []string {
	var tokens []string
	for pair, rank := range v.pairs {
		if rank != noRank {
			tokens = append(tokens, string([]byte{byte(pair), byte(pair >> 8)}))
		}
	}
	for _, x := range v.short.slots {
		s := make([]byte, x.where)
		for i := range s {
			s[i] = byte(x.key >> (8 * i))
		}
		if x.where != 0 {
			tokens = append(tokens, string(s))
		}
	}
	for _, x := range v.long.slots {
		if x.where != 0 {
			at := int(x.where >> sizeBits)
			tokens = append(tokens, v.blob[at:at+int(x.where&maxSize)])
		}
	}
	return tokens
}

func TestMergesAgree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	for name, v := range vocabularies(t) {
		var a, b merger // reused, as in a worker: what one piece leaves must not show in the next
		for range 3000 {
			s := piece(r)
			a.linear(v, s)
			b.queued(v, s)
			if !slices.Equal(a.starts, b.starts) {
				t.Errorf("%s: %q: tokens begin at %v by queue, at %v one by one", name, s, b.starts, a.starts)
			}
		}
	}
}

// Merges that exclude each other and have the same rank are rare in the vocabularies that
// we have. Vocabularies learned from a few letters have many.
func TestMergesAgreeOnSmallVocabularies(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(29, 30))
	letters := func(n int) string {
		s := make([]byte, n)
		for i := range s {
			s[i] = "aab"[r.IntN(3)]
		}
		return string(s)
	}
	for range 300 {
		v := learn(t, []string{letters(40), letters(10), strings.Repeat(letters(2+r.IntN(5)), 8)}, 12)
		for range 20 {
			s := letters(2 + r.IntN(50))
			var a, b merger
			a.linear(v, s)
			b.queued(v, s)
			if !slices.Equal(a.starts, b.starts) {
				t.Fatalf("%q: tokens begin at %v by queue, at %v one by one; vocabulary %q", s, b.starts, a.starts, all(v))
			}
		}
	}
}

// learn returns the vocabulary of n merges that byte pair encoding learns from texts: the
// most frequent pair becomes a token, again and again.
func learn(tb testing.TB, texts []string, n int) *vocabulary {
	tb.Helper()
	var data strings.Builder
	add := func(s string) { data.WriteString(string([]byte{byte(len(s))}) + s) }
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	split := make([][]string, len(texts))
	for i, s := range texts {
		split[i] = strings.Split(s, "")
	}
	for range n {
		count, best := map[[2]string]int{}, [2]string{}
		for _, parts := range split {
			for i := range len(parts) - 1 {
				p := [2]string{parts[i], parts[i+1]}
				if count[p]++; count[p] > count[best] {
					best = p
				}
			}
		}
		if count[best] == 0 {
			break
		}
		add(best[0] + best[1])
		for i, parts := range split {
			for j := 0; j+1 < len(parts); j++ {
				if parts[j] == best[0] && parts[j+1] == best[1] {
					parts = slices.Replace(parts, j, j+2, best[0]+best[1])
				}
			}
			split[i] = parts
		}
	}
	v, err := parseVocabulary(data.String())
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// piece returns bytes of small alphabets, so that merges overlap and repeat.
func piece(r *rand.Rand) string {
	alphabet := []string{"a", "ab", "abc", " ", "-=", "\n\r", "0", "etaoin", "\x00", "中文字あい", "😀\u200d", "\xff\xfe"}[r.IntN(12)]
	if r.IntN(8) == 0 {
		alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	}
	s := make([]byte, 1+r.IntN(1+r.IntN(300)))
	for i := range s {
		s[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(s)
}

func FuzzMerge(f *testing.F) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 100 {
		f.Add(piece(r))
	}
	all := vocabularies(f)
	f.Fuzz(func(t *testing.T, s string) {
		if s = s[:min(len(s), 4096)]; s == "" {
			return
		}
		for name, v := range all {
			var a, b merger
			a.linear(v, s)
			b.queued(v, s)
			if !slices.Equal(a.starts, b.starts) {
				t.Errorf("%s: %q: tokens begin at %v by queue, at %v one by one", name, s, b.starts, a.starts)
			}
		}
	})
}

// BenchmarkMerge is how linearLimit was chosen.
func BenchmarkMerge(b *testing.B) {
	v := vocabularies(b)[O200kBase]
	var m merger
	for _, n := range []int{4, 8, 12, 16, 24, 32, 64} {
		// Many pieces, so that the processor cannot learn one by heart.
		r := rand.New(rand.NewPCG(13, 14))
		pieces := make([]string, 1024)
		for i := range pieces {
			s := make([]byte, n)
			for j := range s {
				s[j] = "etaoinshrdlcumwfgypbvkjxqz"[min(r.IntN(26), r.IntN(26))]
			}
			pieces[i] = string(s)
		}
		for name, merge := range map[string]func(*vocabulary, string){"linear": m.linear, "queued": m.queued} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.SetBytes(int64(n * len(pieces)))
				for b.Loop() {
					for _, s := range pieces {
						merge(v, s)
					}
				}
			})
		}
	}
}

// Pieces that share a place in the cache, or much of their bytes, are not confused.
func TestCacheComparesWholePieces(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	opened, err := encodings[0].open()
	if err != nil {
		t.Fatal(err)
	}
	b, ok := opened.(*bpe)
	if !ok {
		t.Fatalf("%s is not exact", encodings[0].name)
	}
	w := b.acquire()
	var m merger
	r := rand.New(rand.NewPCG(31, 32))
	for range 200_000 {
		s := "xqzjkvwp" + string([]byte{byte('a' + r.IntN(26)), byte('a' + r.IntN(26)), byte('a' + r.IntN(26)), byte('a' + r.IntN(26))})
		m.merge(b.vocabulary, s)
		if got, want := w.piece(s, 0, len(s)), len(m.starts); got != want {
			t.Fatalf("piece(%q) = %d, want %d", s, got, want)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		if _, err := openBPE(O200kBase, splitO200k); err != nil {
			b.Fatal(err)
		}
	}
}

func TestParseFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ data, want string }{
		{"", "byte 0x00 is no token"},
		{"\x01a\x01b\x00", "token 2 has 0 bytes, and 0 are left"},
		{"\x01a\x03bc", "token 1 has 3 bytes, and 2 are left"},
		{"\x01a\x02", "token 1 has 2 bytes, and 0 are left"},
		{"\x01\x01\x01\x02", "byte 0x00 is no token"},
		{strings.Repeat("\x01a", maxBlob/2+1), "16777218 bytes; want at most 16777216"},
	} {
		_, err := parseVocabulary(c.data)
		if err == nil || err.Error() != c.want {
			t.Errorf("parseVocabulary(%.20q): got error %v, want %s", c.data, err, c.want)
		}
	}
}
