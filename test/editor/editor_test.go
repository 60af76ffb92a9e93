// Package editor_test tests the schema of configurations with the YAML language server of editors,
// on the file that `condense config init` writes.
package editor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A strategy is one as `condense providers --json` lists it.
type strategy struct {
	Name     string
	Settings []struct {
		Name string
		Enum []string
	}
}

func TestEditor(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir) // first: it may skip the test
	program := build(t)
	run(t, dir, program, "config", "init")
	text, err := os.ReadFile(filepath.Join(dir, "condense.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.open("condense.yaml", string(text)); len(got) > 0 {
		t.Errorf("the file that init writes has diagnostics: %q", got)
	}
	// From here on only the first line of the file names the schema.
	line, _, _ := strings.Cut(string(text), "\n")
	var strategies []strategy
	if err := json.Unmarshal(run(t, dir, program, "providers", "--json"), &strategies); err != nil {
		t.Fatal(err)
	}
	if len(strategies) == 0 {
		t.Fatal("there are no strategies")
	}
	diagnostics(t, s, line, strategies[0].Name)
	completions(t, s, line, strategies)
	hovers(t, s, line)
	// Without that line there must be no schema, or the test above proves nothing.
	if got := s.open("none.yaml", "treshold: 70\n"); len(got) > 0 {
		t.Errorf("without a schema: got %q", got)
	}
}

func diagnostics(t *testing.T, s *server, line, known string) {
	t.Helper()
	for i, d := range []struct{ text, want string }{
		{"treshold: 70\n", "2:1 Property treshold is not allowed"},
		{"threshold: 3\n", "2:12 "},
		{"threshold: 70%\nprofiles:\n  a/b.c: {window: 32Ki, threshold: -1}\nmodes:\n  x: a/b.c\n", ""},
		{"profiles:\n  code: {window: 1000, treshold: 70}\n", "3:24 Property treshold is not allowed"},
		{"providers:\n  a: {strategy: smrt}\n", "3:17 Value is not accepted"},
		{"providers:\n  a: {strategy: " + known + ", settings: {kepe: 1}}\n", "Property kepe is not allowed"},
		{"providers:\n  a: {strategy: " + known + ", tiemout: 3s}\n", "Property tiemout is not allowed"},
		{"models:\n  a: {api: openai, api_key: x}\n", "Property api_key is not allowed"},
	} {
		got := s.open(fmt.Sprintf("wrong%d.yaml", i), line+"\n"+d.text)
		switch {
		case d.want == "" && len(got) > 0:
			t.Errorf("%q: got %q, want none", d.text, got)
		case d.want != "" && !slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, d.want) }):
			t.Errorf("%q: got %q, want one with %q", d.text, got, d.want)
		}
	}
}

func completions(t *testing.T, s *server, line string, strategies []strategy) {
	t.Helper()
	type completion struct {
		text string
		want []string
	}
	var names []string
	list := []completion{
		{"thr¦", []string{"threshold"}},
		{"profiles:\n  code:\n    window: 1000\n    ¦", []string{"threshold", "chain", "extends"}},
		{"profiles:\n  code:\n    model: ¦", []string{"anthropic/claude-sonnet-4-5"}},
		{"modes:\n  code:\n    ¦", []string{"profile", "chain"}},
		{"tokenizer: ¦", []string{"cl100k_base", "o200k_base"}},
	}
	for _, st := range strategies {
		names = append(names, st.Name)
		var settings []string
		for _, set := range st.Settings {
			settings = append(settings, set.Name)
			if len(set.Enum) > 0 {
				list = append(list, completion{
					fmt.Sprintf("providers:\n  mine:\n    strategy: %s\n    settings:\n      %s: ¦", st.Name, set.Name), set.Enum,
				})
			}
		}
		list = append(list, completion{
			fmt.Sprintf("providers:\n  mine:\n    strategy: %s\n    settings:\n      ¦", st.Name), settings,
		})
	}
	list = append(list,
		completion{"chain:\n  - ¦", append(slices.Clone(names), "roo_half")},
		completion{"providers:\n  mine:\n    strategy: ¦", names},
	)
	for i, c := range list {
		got := s.complete(fmt.Sprintf("complete%d.yaml", i), line+"\n"+c.text)
		for _, want := range c.want {
			if !slices.Contains(got, want) {
				t.Errorf("%q: %q is not offered, but %.20q", c.text, want, got)
			}
		}
	}
}

func hovers(t *testing.T, s *server, line string) {
	t.Helper()
	for i, h := range []struct{ text, want string }{
		{"thre¦shold: 70\n", "Percent of the context window"},
		{"providers:\n  mine:\n    strategy: slidingwindow\n    settings:\n      keep_¦first: 2\n", "messages kept at the beginning"},
	} {
		// The server escapes what Markdown would take for markup.
		got := strings.ReplaceAll(s.hover(fmt.Sprintf("hover%d.yaml", i), line+"\n"+h.text), "&nbsp;", " ")
		if !strings.Contains(got, h.want) {
			t.Errorf("%q: got %q, want something with %q", h.text, got, h.want)
		}
	}
}
