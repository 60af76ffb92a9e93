//go:build unix

package pluginexamples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestTemplates makes a plugin of the templates of `condense plugin new`, runs its tests, and
// checks it against the rules.
func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			made := l.folder("plugin", map[string]string{".": render(t, filepath.Join(templates, l.name))})
			l.runTests(t, made.dir(t))
			p := open(t, made, `{"recent": 0, "min_bytes": 100}`)
			d, err := p.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if d.Name != "my_plugin" || d.Abilities != core.Rewrites {
				t.Errorf("it calls itself %q and declares %v; want my_plugin, rewrites only", d.Name, d.Abilities)
			}
			coretest.Run(t, func(*testing.T) core.CondensationProvider { return p })
		})
	}
}

// render returns a folder with the templates in dir filled in.
func render(t *testing.T, dir string) string {
	t.Helper()
	made := t.TempDir()
	if err := os.CopyFS(made, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(made, "*.tmpl"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no templates (%v)", err)
	}
	for _, path := range found {
		tmpl, err := template.New(filepath.Base(path)).Option("missingkey=error").ParseFiles(path)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := tmpl.Execute(&text, map[string]string{"Program": "condense-my-plugin", "Strategy": "my_plugin"}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(strings.TrimSuffix(path, ".tmpl"), []byte(text.String()), info.Mode()); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	return made
}
