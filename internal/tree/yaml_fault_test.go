package tree //nolint:testpackage // it compares the scan with the parser

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
)

// written returns the YAML files of the tests that the parser takes, and a long one.
func written(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	text, err := os.ReadFile("../../config/testdata/init.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out["init"] = string(text)
	archive, err := txtar.ParseFile("../../config/testdata/faults.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".yaml") {
			out[f.Name] = string(f.Data)
		}
	}
	for name, text := range out {
		if _, syntax := ParseYAML([]byte(text)); syntax != nil {
			delete(out, name)
		}
	}
	if len(out) < 60 {
		t.Fatalf("only %d files", len(out))
	}
	return out
}

// A file that is right has no line that is reported as wrong.
func TestNothingIsLocatedInValidYAML(t *testing.T) {
	for name, text := range written(t) {
		s := yamlScan{lines: strings.Split(text, "\n")}
		if f := s.locate(); f != nil {
			t.Errorf("%s: %+v\n%s", name, *f, text)
		}
	}
}

// slips are what goes wrong with one line when people type.
var slips = map[string]func(line string) string{
	"a space too many":   func(l string) string { return " " + l },
	"a space too few":    func(l string) string { return strings.TrimPrefix(l, " ") },
	"no space":           func(l string) string { return strings.Replace(l, ": ", ":", 1) },
	"no colon":           func(l string) string { return strings.Replace(l, ": ", " ", 1) },
	"a tab":              func(l string) string { return strings.Replace(l, "  ", "\t", 1) },
	"a bracket is open":  func(l string) string { return strings.Replace(l, "]", "", 1) },
	"a brace is open":    func(l string) string { return strings.Replace(l, "}", "", 1) },
	"a quote is open":    func(l string) string { return strings.Replace(l, `"`, "", 1) },
	"a colon in a value": func(l string) string { return l + ": more" },
}

// Of the slips that make a file invalid, more than nine in ten are found in their line or in
// the one after it; the parser alone finds fewer.
func TestMistakesAreFoundInTheirLine(t *testing.T) {
	found, parser, total := 0, 0, 0
	for name, text := range written(t) {
		lines := strings.Split(text, "\n")
		for slip, change := range slips {
			for i, line := range lines {
				changed := change(line)
				if trimmed := strings.TrimSpace(line); changed == line || trimmed == "" || trimmed[0] == '#' {
					continue
				}
				lines[i] = changed
				_, syntax := ParseYAML([]byte(strings.Join(lines, "\n")))
				var ignored any
				err := yaml.Unmarshal([]byte(strings.Join(lines, "\n")), &ignored)
				lines[i] = line
				if syntax == nil || !strings.HasPrefix(syntax.Problem, "not valid YAML") {
					continue
				}
				total++
				near := func(n int) bool { return n == i+1 || n == i+2 }
				if near(syntax.At.Line) {
					found++
				} else if testing.Verbose() {
					t.Logf("%s: %s in line %d %q: %+v", name, slip, i+1, changed, *syntax)
				}
				if err != nil && near(yamlSyntax(err).At.Line) {
					parser++
				}
			}
		}
	}
	t.Logf("%d of %d found; by the parser alone %d", found, total, parser)
	if total < 300 || found*10 < total*9 || parser >= found {
		t.Errorf("%d of %d found; by the parser alone %d", found, total, parser)
	}
}

// The text of !!binary is not what it means, so it is not taken as the value.
func TestBinaryIsRefused(t *testing.T) {
	for _, text := range []string{"prompt: !!binary aGVsbG8=\n", "prompt: !!binary |\n  aGVsbG8=\n"} {
		if _, err := ParseYAML([]byte(text)); err == nil || !strings.Contains(err.Problem, "!!binary is not read") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
