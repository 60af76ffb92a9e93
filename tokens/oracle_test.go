package tokens_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/condensehq/condense/tokens"
)

// The oracle is tiktoken-go. Its time is quadratic in the length of a piece, so it gets
// short texts only.

var useOfflineLoader = sync.OnceFunc(func() { tiktoken.SetBpeLoader(loader.NewOfflineLoader()) })

// oracles are built once: tiktoken-go takes half a second for each.
var oracles = map[string]func() (*tiktoken.Tiktoken, error){
	"o200k_base":  sync.OnceValues(func() (*tiktoken.Tiktoken, error) { return openOracle("o200k_base") }),
	"cl100k_base": sync.OnceValues(func() (*tiktoken.Tiktoken, error) { return openOracle("cl100k_base") }),
}

func openOracle(name string) (*tiktoken.Tiktoken, error) {
	useOfflineLoader()
	return tiktoken.GetEncoding(name)
}

// oracle returns a function that counts by tiktoken-go.
func oracle(tb testing.TB, name string) func(string) int {
	tb.Helper()
	enc, err := oracles[name]()
	if err != nil {
		tb.Fatal(err)
	}
	return func(s string) int { return len(enc.EncodeOrdinary(s)) }
}

func open(tb testing.TB, name string) *tokens.Encoding {
	tb.Helper()
	enc, err := tokens.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	return enc
}

func TestCountAsTiktoken(t *testing.T) {
	t.Parallel()
	for name := range oracles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enc, want := open(t, name), oracle(t, name)
			check := func(s string) {
				if got, want := enc.CountText(s), want(s); got != want {
					t.Errorf("CountText(%q) = %d, want %d", s, got, want)
				}
			}
			check("")
			for _, a := range tokens.Atoms {
				check(a)
			}
			for _, s := range tokens.Samples {
				check(s)
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range 4000 {
				check(tokens.RandomText(r, 12))
			}
			for range 100 {
				check(tokens.RandomText(r, 200))
			}
		})
	}
}

func FuzzO200k(f *testing.F)  { fuzzCount(f, "o200k_base") }
func FuzzCL100k(f *testing.F) { fuzzCount(f, "cl100k_base") }

func fuzzCount(f *testing.F, name string) {
	f.Helper()
	for _, s := range append(tokens.Samples, tokens.Atoms...) {
		f.Add(s)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		f.Add(tokens.RandomText(r, 30))
	}
	enc, want := open(f, name), oracle(f, name)
	f.Fuzz(func(t *testing.T, s string) {
		s = s[:min(len(s), 2048)]
		if got, want := enc.CountText(s), want(s); got != want {
			t.Errorf("CountText(%q) = %d, want %d", s, got, want)
		}
	})
}
