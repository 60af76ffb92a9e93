package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/condensehq/condense/config"
)

// known are the names that a program would pass.
var known = config.Options{
	Env:        []string{},
	Builtin:    []string{"native", "slidingwindow", "smart"},
	Chain:      []string{"smart"},
	Strategies: []string{"native", "slidingwindow", "smart"},
	Trust:      func(config.Claims) bool { return true },
	Tokenizers: []string{"cl100k_base", "o200k_base", "p50k_base", "r50k_base"},
}

// write makes a file in a new directory and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// load reads a YAML text as the only file.
func load(t *testing.T, text string) *config.Config {
	t.Helper()
	return loadFrom(t, write(t, "condense.yaml", text))
}

func loadFrom(t *testing.T, file string) *config.Config {
	t.Helper()
	opts := known
	opts.Path = file
	c, err := config.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func resolve(t *testing.T, c *config.Config, profile, mode string) *config.Resolved {
	t.Helper()
	r, err := c.Resolve(profile, mode)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
