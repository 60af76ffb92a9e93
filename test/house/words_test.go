package house_test

import (
	"cmp"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A ceiling is the largest number of "what" clauses ("what is kept", "what the model reads") in 10,000 words of prose. A noun
// says the same with fewer words: "the kept lines", "the prompt". Programs with well-written comments have 1 to 4.
type ceiling struct {
	prefix string // of the paths that it is about; the longest prefix of a file counts
	most   float64
}

// The goals. Each line stands for the folder without the lines below it.
var (
	inComments = []ceiling{
		{"", 15},
		{"cmd/", 15},
		{"config/", 15},
		{"core/", 15},
		{"internal/", 15},
		{"internal/dialog/", 15},
		{"internal/lab/", 15},
		{"internal/live/", 15},
		{"internal/value/", 15},
		{"live/", 15},
		{"providers/", 15},
		{"transcript/", 15},
	}
	inDocuments = []ceiling{{"", 20}, {"docs/", 16}, {"docs/decisions/", 5}}
)

var (
	whatClause = regexp.MustCompile(`(?i)\bwhat\s+(\w+)`)
	question   = []string{"to", "if", "kind", "about"} // "what to do" and "what if" are fine
	comment    = regexp.MustCompile(`(?m)^\s*//(.*)$`)
	directive  = regexp.MustCompile(`^(go:|line|nolint| \+build)`)
	fenced     = regexp.MustCompile("(?ms)^```.*?^```")
	anyWord    = regexp.MustCompile(`[A-Za-z']+`)
)

// TestWords: comments and documents do not get worse to read.
func TestWords(t *testing.T) {
	t.Parallel()
	comments, documents := map[string]*strings.Builder{}, map[string]*strings.Builder{}
	add := func(to map[string]*strings.Builder, list []ceiling, file, text string) {
		c := slices.MaxFunc(list, func(a, b ceiling) int { return cmp.Compare(reach(a, file), reach(b, file)) })
		if to[c.prefix] == nil {
			to[c.prefix] = &strings.Builder{}
		}
		to[c.prefix].WriteString(text + " ")
	}
	for _, file := range sources(t) {
		switch {
		case filepath.Ext(file) == ".md" && !strings.HasPrefix(file, "bench/results/"): // data
			add(documents, inDocuments, file, fenced.ReplaceAllString(readText(t, file), ""))
		case filepath.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(file, ".pb.go"):
			for _, m := range comment.FindAllStringSubmatch(readText(t, file), -1) {
				if !directive.MatchString(m[1]) {
					add(comments, inComments, file, strings.TrimSpace(m[1]))
				}
			}
		}
	}
	check := func(kind string, list []ceiling, texts map[string]*strings.Builder) {
		for _, c := range list {
			if texts[c.prefix] == nil {
				continue // nothing is there any more
			}
			clauses, total := 0, len(anyWord.FindAllString(texts[c.prefix].String(), -1))
			for _, m := range whatClause.FindAllStringSubmatch(texts[c.prefix].String(), -1) {
				if !slices.Contains(question, strings.ToLower(m[1])) {
					clauses++
				}
			}
			ratio := 1e4 * float64(clauses) / float64(total)
			t.Logf("%s of %-20s %5d words, %6.1f \"what\" clauses in 10,000 (at most %v)", kind, cmp.Or(c.prefix, "."), total, ratio, c.most)
			if ratio > c.most {
				t.Errorf("%s of %s have %.1f \"what\" clauses in 10,000 words, at most %v are allowed: name the thing with a noun", kind, cmp.Or(c.prefix, "."), ratio, c.most)
			}
		}
	}
	check("comments", inComments, comments)
	check("documents", inDocuments, documents)
}

// reach returns the length of the ceiling's prefix, or -1 if it is not about the file.
func reach(c ceiling, file string) int {
	if !strings.HasPrefix(file, c.prefix) {
		return -1
	}
	return len(c.prefix)
}

// houseWords are names that only we understand, with the number of identifiers that still have them. The field's names are
// online evaluation, tool rounds, cache, plugin, queue and unreachable.
var houseWords = map[string]int{"hindsight": 0, "aside": 2, "asides": 1, "shelf": 1, "seat": 0, "seats": 0, "desk": 4, "away": 7}

var part = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// TestWordsOfIdentifiers: no identifier gets a name from our own slang.
func TestWordsOfIdentifiers(t *testing.T) {
	t.Parallel()
	found := map[string]map[string]bool{}
	for _, file := range sources(t) {
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text := []byte(readText(t, file))
		fset := token.NewFileSet()
		var s scanner.Scanner
		s.Init(fset.AddFile(file, -1, len(text)), text, nil, 0)
		for _, tok, lit := s.Scan(); tok != token.EOF; _, tok, lit = s.Scan() {
			if tok != token.IDENT {
				continue
			}
			for _, p := range part.FindAllString(lit, -1) {
				if _, is := houseWords[strings.ToLower(p)]; is {
					w := strings.ToLower(p)
					if found[w] == nil {
						found[w] = map[string]bool{}
					}
					found[w][lit] = true
				}
			}
		}
	}
	for w, most := range houseWords {
		if len(found[w]) > most {
			t.Errorf("%d identifiers have the word %q, at most %d are allowed: %v", len(found[w]), w, most, slices.Sorted(maps.Keys(found[w])))
		}
	}
}

// sources returns the files of the repository that we wrote, without samples.
func sources(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case !d.IsDir():
			files = append(files, filepath.ToSlash(p))
		case p != "." && strings.HasPrefix(d.Name(), "."), p == "bin", d.Name() == "testdata", d.Name() == "node_modules":
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readText(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
