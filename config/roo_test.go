package config_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/config"
)

// A profile with the preset has Roo's numbers whatever the top level says, but inherits its
// threshold from there, as Roo's profiles do.
func TestPresetRoo(t *testing.T) {
	c := load(t, `
threshold: 60
buffer: 30
min_gain: 20
min_new_tokens: 9000
max_context_tokens: 1000
chain: [native]
default_profile: roo
profiles:
  roo: {window: 100000, preset: roo}
  too-high: {extends: roo, threshold: 120}
  too-low: {extends: roo, threshold: 4.99}
  zero: {extends: roo, threshold: 0}
  negative: {extends: roo, threshold: -2}
  inherits: {extends: roo, threshold: -1}
  lowest: {extends: roo, threshold: 5}
  highest: {extends: roo, threshold: 100}
  below-zero: {extends: roo, max_output: -5000}
  no-output: {extends: roo, max_output: 0}
  small: {extends: roo, window: 8000}
  own-chain: {extends: roo, chain: [native, roo_half]}
`)
	r := resolve(t, c, "roo", "")
	if !r.RooRule || r.Buffer != 10 || r.MinGain != 0 || r.MinNewTokens != 0 || r.MaxContextTokens != 0 || r.MinSize != 0 || r.Reserve != 8192 {
		t.Errorf("got %+v", r)
	}
	if len(r.Chain) != 1 || r.Chain[0].Strategy != "slidingwindow" || string(r.Chain[0].Settings) != `{"mode":"half"}` {
		t.Errorf("chain: got %+v", r.Chain)
	}
	for profile, want := range map[string]float64{
		"roo": 60, "too-high": 60, "too-low": 60, "zero": 60, "negative": 60, "inherits": 60, "lowest": 5, "highest": 100,
	} {
		if got := resolve(t, c, profile, "").Threshold; got != want {
			t.Errorf("threshold of %s: got %v, want %v", profile, got, want)
		}
	}
	for profile, want := range map[string]int{"below-zero": -5000, "no-output": 8192, "small": 8192} {
		if got := resolve(t, c, profile, "").Reserve; got != want {
			t.Errorf("reserve of %s: got %d, want %d", profile, got, want)
		}
	}
	if got := chainNames(resolve(t, c, "own-chain", "")); got != "native,roo_half" {
		t.Errorf("own chain: got %s", got)
	}
	// A threshold that Roo ignores silently gives a warning.
	var ignored []string
	for _, w := range c.Warnings() {
		if strings.Contains(w.Problem, "which Roo's rule ignores") {
			ignored = append(ignored, w.Key)
		}
	}
	if len(ignored) != 4 {
		t.Errorf("warnings: got %v, want one for each threshold that is ignored", ignored)
	}
	// Without the preset, the same numbers are errors.
	opts := known
	opts.Path = write(t, "condense.yaml", "profiles:\n  p: {window: 100000, threshold: 120, max_output: -5000}\n")
	if _, err := config.Load(opts); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("got %v, want two errors", err)
	}
}
