package editor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestEditorOfConfiguration: with the schema of one configuration an editor marks the wrong settings of its plugins, those that
// `condense config check` reports in a script, and names that are not declared; and it completes the right ones.
func TestEditorOfConfiguration(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir) // first: it may skip the test
	program := build(t)
	plugin := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "ours"), "../../cmd/condense/testdata/plugin")
	if out, err := plugin.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	archive, err := txtar.ParseFile("../../cmd/condense/testdata/script/plugin_settings.txtar")
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, f := range archive.Files {
		text[f.Name] = string(f.Data)
	}
	config := text["condense.yaml"]
	if err := os.WriteFile(filepath.Join(dir, "condense.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, program, "trust", "--yes")
	run(t, dir, program, "config", "schema", "-o", "condense.schema.json")

	const line = "# yaml-language-server: $schema=./condense.schema.json"
	got := s.open("all.yaml", line+"\n"+config)
	// What only the plugin can judge: numbers out of range, and values of a mapping.
	judged := regexp.MustCompile(`: must |is one too many|\.limits: `)
	seen := 0
	for want := range strings.Lines(text["wrong.want"]) {
		at := regexp.MustCompile(`^condense\.yaml:(\d+):`).FindStringSubmatch(want)
		if at == nil || judged.MatchString(want) {
			continue
		}
		seen++
		n, err := strconv.Atoi(at[1])
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(got, func(m string) bool { return strings.HasPrefix(m, strconv.Itoa(n+1)+":") }) {
			t.Errorf("not marked: %s", want)
		}
	}
	if seen < 35 {
		t.Errorf("only %d wrong settings were looked for", seen)
	}

	for i, d := range []struct{ text, want string }{
		{"chain: [a]\nproviders:\n  a: {plugin: ./ours, settings: {last: 4, mark: {style: dots}}}\n", ""},
		{"chain: [b]\nproviders:\n  a: {strategy: smart, settings: {preset: balanced}}\n", ""},
		{"chain: [newst]\n", "2:9 Value is not accepted"},
		{"modes: {ask: lokal}\n", "2:14 "},
		{"default_profile: cod\n", "2:18 Value is not accepted"},
		{"profiles: {p: {window: 1000, extends: cod}}\n", "2:39 Value is not accepted"},
	} {
		got := s.open("some"+string(rune('a'+i))+".yaml", line+"\n"+d.text)
		switch {
		case d.want == "" && len(got) > 0:
			t.Errorf("%q: got %q, want none", d.text, got)
		case d.want != "" && !slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, d.want) }):
			t.Errorf("%q: got %q, want one with %q", d.text, got, d.want)
		}
	}
	for i, c := range []struct {
		text string
		want []string
	}{
		{"chain:\n  - ¦", []string{"b", "smart", "truncation"}},
		{"default_profile: ¦", []string{"default"}},
		{"providers:\n  a:\n    plugin: ./ours\n    settings:\n      ¦", []string{"last", "mark", "share"}},
		{"providers:\n  a:\n    plugin: ./ours\n    settings:\n      mark:\n        style: ¦", []string{"none", "dots"}},
	} {
		got := s.complete("complete"+string(rune('a'+i))+".yaml", line+"\n"+c.text)
		for _, want := range c.want {
			if !slices.Contains(got, want) {
				t.Errorf("%q: %q is not offered, but %.20q", c.text, want, got)
			}
		}
	}
}
