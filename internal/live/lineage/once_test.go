package lineage_test

import (
	"flag"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/live/lineage"
)

// TestMain runs more random cases than rapid does by default, because the rare ones need hundreds.
func TestMain(m *testing.M) {
	flag.Parse()
	checks := "600"
	if testing.Short() {
		checks = "200"
	}
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			checks = f.Value.String()
		}
	})
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestHonestReportsStay: whatever part of a growing prompt a cache serves, an honest report is never corrected; one that counts
// the cached part twice is, after some requests.
func TestHonestReportsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, twice := lineage.State{}, rapid.Bool().Draw(t, "twice")
		ratio, head := rapid.Float64Range(0.6, 1.8).Draw(t, "ratio"), rapid.IntRange(0, 40_000).Draw(t, "head")
		our, last := rapid.IntRange(500, 50_000).Draw(t, "ours"), 0
		for n := range 30 {
			prompt := int(ratio * float64(our))
			read := min(last, prompt) // a cache serves the last prompt, the system prompt and tools, or nothing
			if !twice {
				read = min(read, rapid.SampledFrom([]int{0, head, head, read}).Draw(t, "read"))
			}
			u := lineage.Usage{Input: prompt, Read: read}
			if rapid.Bool().Draw(t, "writes") {
				u.Write = prompt - read
			}
			if twice {
				u.Input += u.Read
			}
			got := s.Once(our, u, false)
			s.Measured(our, got)
			if !twice && got != u {
				t.Fatalf("request %d: an honest report %+v became %+v", n, u, got)
			}
			if twice && n > 6 && got.Input > prompt+u.Write {
				t.Fatalf("request %d: of %d tokens, %d are counted", n, prompt, got.Input)
			}
			last = prompt
			our += our*rapid.IntRange(1, 30).Draw(t, "growth in percent")/100 + 1
		}
	})
}
