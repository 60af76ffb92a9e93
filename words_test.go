package condense_test

import (
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
	"unicode/utf8"

	"github.com/condensehq/condense/internal/testkit"
)

// words are expressions that read as translated or that name a concept by a second noun, each with what to write instead.
// The glossary of docs/architecture.md has the nouns. Matching ignores case, after fineEnglish has been removed from the line.
var words = []struct{ pattern, instead string }{
	{`(stands?|stood|standing)`, `is, is in, appears, replaces, remains`},
	{`behind`, `after, following; hidden by; under`},
	{`beside`, `next to, alongside, in addition to`},
	{`(whoever|whomever|nobody|he who)`, `callers, no caller, the default, users who`},
	{`(un)?lawful(ly)?`, `valid, invalid`},
	{`(sins?|sinners?|misconducts?)`, `violation, rule broken`},
	{`(taken|takes?|taking|took) (it |them )?back`, `reverted, undone, not used`},
	{`(is|are|was|were|be|been|being|has|not|never) told`, `receives, is given, is reported to`},
	{`(found out|is found out)`, `detected`},
	{`(comes?|came|coming) out`, `results in, is written, the result is`},
	{`(what|nothing) (comes|came) of`, `the result of, the outcome`},
	{`(lends?|lent|lending|lenders?|loans?)`, `gives, provides; model resolver`},
	{`contestants?`, `strategy, provider`},
	{`(next|each|every|first|last|another|later|earlier) candidate`, `provider`},
	{`candidates? of (a|the|this|its) chain`, `provider of the chain`},
	{`(the|a|no|this|that|what) (person|human)`, `the user, people`},
	{`(persons?|humans)`, `user, people`},
	{`(stay|stays|stayed|put|puts|is|are|lies|lie) aside`, `hidden`},
	{`out of sight`, `hidden`},
	{`(to|may|must|should|lands?) land (at|on|below|above)`, `stop at, reduce to the target`},
	{`as it was said`, `verbatim`},
	{`(hence|thereof|therein|thereby|wherein|whereof|thereupon|forthwith)`, `so, of it, in it`},
	{`(shall|shan't)`, `must, is to`},
	{`(spoilt|spoils|spoiled)`, `invalid, damaged, breaks`},
	{`(has|have|had) to do (it )?with`, `concerns, is related to`},
	{`the like of`, `such as`},
	{`(hearsay|moot|bethink|beholds?|betwixt|amidst|whilst|anew|afresh)`, `a plain word, such as "again"`},
}

// fineEnglish is what the patterns above would otherwise hit.
var fineEnglish = regexp.MustCompile(`(?i)stand-?in\b|stand-?alone|standing on its own|long-standing|as it stands|stands? out|stood up|an earlier note like this stood for|` +
	`stands for lines left out|(“user”|only user) is the person|this summary stands for|files beside it with lower|as you were told|what the person wants of this summary|as they are, behind your summary|` + // in extracts, summaries and prompts
	`(put|sits?|runs?|is|are)? ?behind (a|an|the|its|one) (\w+ )?(proxy|gateway|firewall|load balancer|NAT|flag|interface|build tag|lock|mutex)|behind the scenes|fall(s|ing)? behind|left behind|leaves? behind`)

// codeSpan is what Markdown shows as code: names that cannot change.
var codeSpan = regexp.MustCompile("`[^`]*`")

// quoted are files that others wrote, or that are lists of words or of what users say.
var quoted = []string{"words_test.go", "providers/native/prompts", "internal/value/common.txt", "LICENSE", "internal/lab/report/assets", "internal/lab/canary/second.go", "internal/dialog/demand.go", "internal/dialog/demand_words.go", "internal/lab/score/lex.go", "internal/testkit/benchdata/writer.go"}

// TestWords holds comments, messages and documents to plain English.
func TestWords(t *testing.T) {
	testkit.Slow(t)
	list, all := make([]*regexp.Regexp, len(words)), make([]string, len(words))
	for i, w := range words {
		list[i], all[i] = regexp.MustCompile(`(?i)\b`+w.pattern+`\b`), w.pattern
	}
	anyWord := regexp.MustCompile(`(?i)\b(` + strings.Join(all, "|") + `)\b`) // most lines have none
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		if d.IsDir() {
			skip := p != "." && strings.HasPrefix(d.Name(), ".") && p != ".ci" || p == "bin" || d.Name() == "node_modules" || d.Name() == "__pycache__" ||
				strings.Contains(p, "testdata") && !strings.HasPrefix("cmd/condense/testdata/script", p)
			if skip {
				return fs.SkipDir
			}
			return nil
		}
		if under(p, quoted) {
			return nil
		}
		found := prose(t, p)
		for _, at := range slices.Sorted(maps.Keys(found)) {
			for i, line := range strings.Split(found[at], "\n") {
				if !anyWord.MatchString(line) {
					continue
				}
				if strings.HasSuffix(p, ".md") {
					line = codeSpan.ReplaceAllString(line, "")
				}
				line = fineEnglish.ReplaceAllString(line, "")
				for n, re := range list {
					if hit := re.FindString(line); hit != "" {
						t.Errorf("%s:%d: %q: write %s\n\t%s", p, at+i, hit, words[n].instead, strings.TrimSpace(line))
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// under reports whether p is one of the folders, or in one. The folder "." has only its own files.
func under(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return p == f || strings.HasPrefix(p, f+"/") || f == "." && !strings.Contains(p, "/")
	})
}

// prose returns what people read in a file, by the line where it begins: comments and string literals of Go, but only the
// comments of its tests and scripts, and the whole of other text.
func prose(t *testing.T, file string) map[int]string {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, found := string(data), map[int]string{}
	if !utf8.Valid(data) {
		return nil // a program that somebody built here
	}
	switch filepath.Ext(file) {
	case ".go":
		if head, _, _ := strings.Cut(text, "\npackage "); strings.Contains(head, "DO NOT EDIT") {
			return nil
		}
		fset := token.NewFileSet()
		f := fset.AddFile(file, -1, len(data))
		var s scanner.Scanner
		s.Init(f, data, nil, scanner.ScanComments)
		for pos, tok, lit := s.Scan(); tok != token.EOF; pos, tok, lit = s.Scan() {
			if tok == token.COMMENT || tok == token.STRING && strings.Contains(lit, " ") && !strings.HasSuffix(file, "_test.go") {
				found[f.Line(pos)] += lit + " "
			}
		}
	case ".txtar":
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "#") {
				found[i+1] = line
			}
		}
	case ".md", ".py", ".js", ".mjs", ".ts", ".proto", ".yaml", ".yml", ".toml", ".tmpl", ".txt", ".html", ".css", ".sh", "":
		found[1] = text
	}
	return found
}
