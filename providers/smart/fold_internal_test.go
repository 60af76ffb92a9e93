package smart

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFoldMatches: the path of what a search found is written once, and what could not be put together again stays as it is.
func TestFoldMatches(t *testing.T) {
	for was, want := range map[string]string{
		"a/b.go:1:x\na/b.go:2:y\na/c.go:7:z":                      "a/b.go\n1:x\n2:y\na/c.go\n7:z",
		"a/b.go-1-x\na/b.go:2:y\na/b.go-3-z\n--\na/b.go:9:q\n":    "a/b.go\n1-x\n2:y\n3-z\n--\n9:q\n",
		"Found 2 lines\na/b-1-c.go:1:x\na/b-1-c.go-2-y\n\n(done)": "Found 2 lines\na/b-1-c.go\n1:x\n2-y\n\n(done)",
		`C:\a\c.go:1:x` + "\n" + `C:\a\c.go:2:y`:                  `C:\a\c.go` + "\n1:x\n2:y",
		"12:34:56 begun\n12:34:57 done":                           "",
		"2026/01/05 12:34:56 begun\n2026/01/05 12:34:57 done":     "",
		"2026-01-05T12:34:56 begun\n2026-01-05T12:34:57 done":     "",
		"a/b.go:1:x\na/b.go:2:y\n12:00 done":                      "", // the time would be a line of the file
		"error: no file\n12: x\n13: y":                            "",
		"https://a.example/x\nhttps://a.example/y":                "",
		"a.go:1:only": "",
	} {
		got, ok := foldMatches(was)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q is folded to %q, %v; want %q", was, got, ok, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a.go", "b/c-1-d.go", ":", "-", "12", "7", "\n", "--", "\n--\n", " ", "x", "a.go:3:", "b.go-4-", "\r\n", "C:\\x"})
		was := strings.Join(rapid.SliceOf(word).Draw(t, "words"), "")
		if got, ok := foldMatches(was); ok && unfoldMatches(got) != was {
			t.Fatalf("%q is folded to %q", was, got)
		}
	})
}
