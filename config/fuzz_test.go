package config_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/condensehq/condense/config"
)

// Load never panics and reports complete errors. A configuration that it accepts resolves, for
// every profile and mode, to numbers within their limits.
func FuzzLoad(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/faults.txtar")
	if err != nil {
		f.Fatal(err)
	}
	formats := map[string]byte{".yaml": 0, ".json": 1}
	for _, file := range archive.Files {
		if format, ok := formats[filepath.Ext(file.Name)]; ok {
			f.Add(format, string(file.Data), "CONDENSE_THRESHOLD", "70")
		}
	}
	f.Add(byte(0), example, "CONDENSE_PROFILES__LOCAL__THRESHOLD", "60")
	f.Add(byte(0), example, "CONDENSE_PROVIDERS__TIDY__SETTINGS__A__B", "{x: [1, .inf]}")
	f.Add(byte(0), "a: &a [*a]", "CONDENSE_", "")
	f.Add(byte(0), strings.Repeat("[", 5000), "CONDENSE_CHAIN", "a,b")
	f.Add(byte(1), strings.Repeat(`{"a":`, 5000), "CONDENSE_CHAIN", "[[")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, format byte, text, variable, value string) {
		opts := known
		opts.Path = filepath.Join(dir, "condense."+[]string{"yaml", "json"}[format%2])
		opts.Env = []string{variable + "=" + value}
		opts.Flags = map[string]string{strings.TrimPrefix(variable, "CONDENSE_"): value}
		if err := os.WriteFile(opts.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(opts)
		if err != nil {
			errs, ok := errors.AsType[config.Errors](err)
			if !ok || len(errs) == 0 {
				t.Fatalf("got %T %v, want config.Errors", err, err)
			}
			for _, e := range errs {
				if e.Problem == "" || e.Origin.Kind == "" {
					t.Errorf("an incomplete error: %+v", *e)
				}
			}
			return
		}
		for _, profile := range append(c.Profiles(), "") {
			for _, mode := range append(c.Modes(), "") {
				r, err := c.Resolve(profile, mode)
				if err != nil {
					if profile == "" || mode == "" {
						t.Errorf("profile %q, mode %q: %v", profile, mode, err)
					}
					continue // the configuration does not combine the two, and their numbers do not fit
				}
				if _, err := json.Marshal(r); err != nil {
					t.Error(err)
				}
				if !r.RooRule && (r.Threshold < 5 || r.Threshold > 100 || r.Window < 1 || r.Reserve < 1 ||
					r.Target < 0 || r.Target >= r.Threshold || math.IsNaN(r.Target) || r.MaxContextTokens < 0) {
					t.Errorf("profile %q, mode %q: %+v", profile, mode, r)
				}
			}
		}
	})
}
