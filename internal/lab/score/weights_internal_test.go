package score

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIDF(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		df, n int
		want  float64
	}{
		{1, 1, 1},
		{1, 100, 1},
		{0, 100, 1},
		{100, 100, math.Log(101/100.5) / math.Log(101/1.5)},
		{10, 99, math.Log(100/10.5) / math.Log(100/1.5)},
		{200, 100, 0}, // no more than all
		{1, 0, 0},
	} {
		if got := idf(c.df, c.n); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d of %d messages: got %v, want %v", c.df, c.n, got, c.want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 1000).Draw(rt, "n")
		df := rapid.IntRange(1, n).Draw(rt, "df")
		if v := idf(df, n); v < 0 || v > 1 || df > 1 && v > idf(df-1, n) {
			rt.Fatalf("%d of %d messages weigh %v, one fewer %v", df, n, v, idf(df-1, n))
		}
	})
}

// A name counts less the more unrelated sources have it; the source at hand may be one of those counted.
func TestRarity(t *testing.T) {
	t.Parallel()
	b := &Background{sources: map[string]bool{"known": true}, count: map[uint64]uint16{1: 1, 2: 2, 3: 3, 5: 5, 7: 7}}
	for _, c := range []struct {
		hash   uint64
		source string
		want   float64
	}{
		{9, "known", 1},
		{1, "known", 1},
		{2, "known", 0.75},
		{3, "known", 0.5},
		{5, "known", 0},
		{7, "known", 0},
		{1, "new", 0.75},
		{3, "new", 0.25},
		{5, "new", 0},
	} {
		if got := b.rarity(c.hash, c.source); got != c.want {
			t.Errorf("%d sources, from %s: got %v, want %v", c.hash, c.source, got, c.want)
		}
	}
	if got := (*Background)(nil).rarity(5, "known"); got != 1 {
		t.Errorf("without a background: got %v, want 1", got)
	}
}

func TestRunCredit(t *testing.T) {
	t.Parallel()
	for words, want := range map[int]float64{0: 0, 5: 0, 6: 0.25, 14: 0.625, 22: 1, 99: 1} {
		if got := runCredit(words); got != want {
			t.Errorf("%d words: got %v, want %v", words, got, want)
		}
	}
}

// Lines are the same whatever separates their words, and differ in every word.
func TestLineHash(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{`path: "a/b.go", line: 3`, "path a/b.go line 3", `{"path":"a/b.go","line":3}`, "\tpath: [a/b.go] line: (3)\r"},
	} {
		for _, s := range same {
			if lineHash(s) != lineHash(same[0]) {
				t.Errorf("%q is another line than %q", s, same[0])
			}
		}
	}
	for _, pair := range [][2]string{{"a = 1", "a = 2"}, {"a.b", "a/b"}, {"Name", "name"}, {"a-b", "ab"}} {
		if lineHash(pair[0]) == lineHash(pair[1]) {
			t.Errorf("%q and %q are the same line", pair[0], pair[1])
		}
	}
	for _, s := range []string{"", "  ", "{}", `"",`, "----", "=="} {
		if lineHash(s) != 0 {
			t.Errorf("%q says something", s)
		}
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"One. Two! Three? Four": "One.| Two!| Three?| Four",
		"a.go is v1.2.3, done.": "a.go is v1.2.3, done.",
		"":                      "",
	} {
		var got []string
		sentences(line, func(start, end int) { got = append(got, line[start:end]) })
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q: got %q, want %q", line, s, want)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		`{"path":"a","lines":{"from":1}}`: {"path", "lines"},
		`["path"]`:                        nil,
		`{"path":"a","li`:                 {"path"},
		`not JSON`:                        nil,
	} {
		if got := keys(args); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestReportsFault(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"--- FAIL: TestHeader":               true,
		"main.go:3: undefined: x":            false, // not at the beginning
		"undefined: x":                       true,
		"error[E0425]: cannot find value":    true,
		"panic: runtime error":               true,
		"TypeError: x is not a function":     true,
		"Traceback (most recent call last):": true,
		"0 errors, all is well":              false,
		"ok  	example.com/a	0.01s":           false,
	} {
		if got := reportsFault(line); got != want {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
}

// Cut returns the cut of s.
func (s *Scorer) Cut() Cut { return s.cut }
