package comparecmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab"
)

// A size becomes part of the mode that the fragment has, or a mode of its own; either loads.
func TestSizesInTheFragment(t *testing.T) {
	e := &lab.Estimate{Mean: 0.3, Low: 0.2, High: 0.4}
	c := &lab.Choice{Sessions: 7, Cheaper: e, Lost: &lab.Estimate{Mean: 0.01}}
	s := sizings(200_000)
	if len(s) == 0 {
		t.Fatal("no sizes")
	}
	text := withSize("# Written by condense\nmodes:\n  code: {chain: [truncation]}\n", "code", &s[0], c)
	text = withSize(text, "on", &s[1], c)
	if !strings.Contains(text, "  code: {chain: [truncation], max_context_tokens: 60000, target: 15}\n") || !strings.Contains(text, `  "on": {max_context_tokens: `) {
		t.Errorf("%s", text)
	}
	for _, text := range []string{text, withSize("# nothing\n", "code", &s[0], c)} {
		file := filepath.Join(t.TempDir(), "condense.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(config.Options{Path: file, Env: []string{}, Strategies: []string{"smart", "slidingwindow"}}); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
	}
}
