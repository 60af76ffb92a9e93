package house_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// TestRulesDocument: docs/rules.md, which is generated from the table of rules, is up to
// date.
func TestRulesDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The rules that every result must respect

Made from ` + "`core.Rules`" + ` by ` + "`go test ./test/house -update`" + `. The host checks the results of all providers, also built-in ones, rejects a
result that breaks a rule, and asks the next provider. Rules are relative to the request: conversations arrive with faults of their own, and
returning the messages unchanged breaks no rule.

| rule | requirement |
|---|---|
`)
	for _, r := range core.Rules() {
		b.WriteString("| `" + r.Name + "` | " + r.Text + " |\n")
	}
	const file = "docs/rules.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is stale: run go test ./test/house -update", file)
	}
}

// writtenByTests are the parts of documents that tests and make write, and the output of commands, which tests write too.
var writtenByTests = []*regexp.Regexp{
	regexp.MustCompile(`(?s)<!-- table: .*?<!-- end -->`),
	regexp.MustCompile(`(?s)<!-- (?:presets|passes|settings|scores|records)\b.*?<!-- end of \w+ -->`),
	regexp.MustCompile(`(?m)^[^$\n].*\n`), // within ```console
}

var aWord = regexp.MustCompile(`\S*[\p{L}\p{N}]\S*`) // the bars of tables are none

var console = regexp.MustCompile("(?ms)^```console\n.*?^```$")

// generatedDocs are written by programs: they are tables that nobody reads from beginning to end.
var generatedDocs = map[string]bool{"rules.md": true}

// TestDocsLength: README is read to its end, and the documents in an afternoon. Decision records and generated documents and
// parts are not counted.
func TestDocsLength(t *testing.T) {
	t.Parallel()
	if n := len(strings.Fields(readText(t, "README.md"))); n > 700 {
		t.Errorf("README.md has %d words, at most 700 are allowed", n)
	}
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, file := range files {
		if generatedDocs[filepath.Base(file)] {
			continue
		}
		text := writtenByTests[0].ReplaceAllString(readText(t, file), "")
		text = writtenByTests[1].ReplaceAllString(text, "")
		text = console.ReplaceAllStringFunc(text, func(s string) string { return writtenByTests[2].ReplaceAllString(s, "") })
		n := len(aWord.FindAllString(text, -1))
		t.Logf("%-32s %5d", file, n)
		total += n
	}
	if total > 25_000 {
		t.Errorf("the documents have %d words without generated parts, at most 25,000 are allowed", total)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestDocsLinks: every link of a document leads to a file of the repository, and to a heading that is there.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	for _, file := range sources(t) {
		if filepath.Ext(file) != ".md" {
			continue
		}
		text := fenced.ReplaceAllString(readText(t, file), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor := m[1], strings.TrimPrefix(m[2], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			at := file
			if target != "" {
				at = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(at); err != nil {
				t.Errorf("%s: %s: %v", file, m[0], err)
				continue
			}
			if anchor == "" {
				continue
			}
			found := false
			for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(readText(t, at), ""), -1) {
				slug := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
				found = found || slug == anchor
			}
			if !found {
				t.Errorf("%s: %s: %s has no such heading", file, m[0], at)
			}
		}
	}
}

// TestDocsRecords: the decision records are numbered without gaps, and docs/decisions/README.md lists them.
func TestDocsRecords(t *testing.T) {
	const index = "docs/decisions/README.md"
	files, err := filepath.Glob("docs/decisions/0*.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, file := range files {
		name := filepath.Base(file)
		if want := fmt.Sprintf("%04d", i+1); name[:4] != want {
			t.Errorf("%s: the next number is %s: rename the file, and change its heading and the links to it", file, want)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(readText(t, file), "# "), "\n")
		number, title, _ := strings.Cut(title, ". ")
		if fmt.Sprintf("%04s", number) != name[:4] {
			t.Errorf("%s has the number %s in its heading", file, number)
		}
		fmt.Fprintf(&b, "%s. [%s](%s)\n", number, title, name)
	}
	const begin, end = "<!-- records: generated -->\n", "<!-- end of records -->"
	was := readText(t, index)
	head, rest, ok := strings.Cut(was, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the list of records", index)
	}
	got := head + begin + b.String() + end + tail
	if *update && got != was {
		if err := os.WriteFile(index, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		was = got
	}
	if got != was {
		t.Errorf("%s is stale: run go test ./test/house -run TestDocsRecords -update", index)
	}
}

// ours keeps the user's messages and the newest half.
func ours(ctx context.Context, req *core.Request) (*core.Result, error) {
	keep := func(i int) bool { return req.FromUser(&req.Messages[i]) || i >= len(req.Messages)/2 }
	return &core.Result{Messages: core.KeepGroups(req.Messages, keep)}, ctx.Err()
}

// The provider in README works.
func TestReadmeProvider(t *testing.T) {
	coretest.Run(t, func(*testing.T) core.CondensationProvider { return core.ProviderFunc(ours) })
}

// The program in the guide to the library works. TestProgramsOfGuidesAreTested checks that it is this one.
func TestLibraryProgram(t *testing.T) {
	ctx, sent := t.Context(), 0
	send := func(messages []core.Message) { sent = len(messages) }
	messages := []core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text("Hello")}}}
	program := func() error {
		h, err := condense.Open(ctx, nil) // the built-in strategies and configuration
		if err != nil {
			return err
		}
		defer h.Close()
		c := condense.NewConversation()

		if err := c.Append(messages...); err != nil { // user, assistant, tool calls and results
			return err
		}
		report, err := h.Manage(ctx, c, condense.Turn{}) // before every request to the model
		if err != nil {
			return err
		}
		send(c.View())
		if report == nil {
			return errors.New("no report")
		}
		return nil
	}
	if err := program(); err != nil || sent != 1 {
		t.Errorf("sent %d messages, %v", sent, err)
	}
}

func TestProgramsOfGuidesAreTested(t *testing.T) {
	t.Parallel()
	space := regexp.MustCompile(`\s+`)
	tested := space.ReplaceAllString(readText(t, "test/house/docs_test.go"), " ")
	for file, heading := range map[string]string{"README.md": "## Your own provider", "docs/library.md": "# In a Go program"} {
		_, rest, _ := strings.Cut(readText(t, file), heading)
		_, rest, _ = strings.Cut(rest, "```go\n")
		block, _, found := strings.Cut(rest, "\n```")
		if !found || !strings.Contains(tested, space.ReplaceAllString(block, " ")) {
			t.Errorf("%s: the program is not the one that is tested:\n%s", file, block)
		}
	}
}
