package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/config"
)

// Faults that CheckProvider returns are reported with all others, at their positions.
func TestCheckProvider(t *testing.T) {
	opts := known
	var asked []string
	opts.CheckProvider = func(_ *config.Config, p config.Provider) []config.ProviderFault {
		asked = append(asked, p.Name)
		switch p.Name {
		case "a.b":
			return []config.ProviderFault{
				{Key: []string{"settings", "kepe"}, AtName: true, Problem: "unknown setting", Suggestion: "keep"},
				{Key: []string{"settings", "mode"}, Problem: "is no mode", Allowed: "there are x, y"},
				{Key: []string{"settings", "nowhere"}, Problem: "is missing"},
				{AtName: true, Problem: "is wrong as such"},
			}
		case "ours":
			return []config.ProviderFault{{Key: []string{"plugin"}, Problem: "is not there"}}
		}
		return nil
	}
	opts.Path = write(t, "condense.yaml", `chain: [a.b, ours, right]
threshold: 3
providers:
  a.b:
    strategy: smart
    settings: {mode: z, kepe: 1}
  ours: {plugin: ./nowhere}
  right: {strategy: smart}
  wrong: {strategy: smrt, settings: {mode: z}}
`)
	_, err := config.Load(opts)
	if err == nil {
		t.Fatal("got no error")
	}
	got := strings.ReplaceAll(err.Error(), opts.Path, "condense.yaml")
	want := `condense.yaml:2:12: threshold: is 3; must be a percentage from 5 to 100, or -1 to inherit
condense.yaml:4:3: providers."a.b": is wrong as such
condense.yaml:6:5: providers."a.b".settings.nowhere: is missing
condense.yaml:6:22: providers."a.b".settings.mode: is no mode; there are x, y
condense.yaml:6:25: providers."a.b".settings.kepe: unknown setting; did you mean "keep"?
condense.yaml:7:18: providers.ours.plugin: is not there
condense.yaml:9:21: providers.wrong.strategy: there is no strategy "smrt"; there are native, slidingwindow, smart; did you mean "smart"?`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Providers that cannot be opened are not checked. The preset's own provider is declared too.
	slices.Sort(asked)
	if want := []string{"a.b", "ours", "right", "roo_half"}; !slices.Equal(asked, want) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
}

// The result of Init names only strategies that exist.
func TestStrategiesThatExist(t *testing.T) {
	opts := known
	opts.Strategies = []string{"slidingwindow"}
	opts.Builtin, opts.Chain = opts.Strategies, nil

	opts.Path = write(t, "condense.yaml", config.Init("", opts))
	c, err := config.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	code, architect := chainNames(resolve(t, c, "", "code")), chainNames(resolve(t, c, "", "architect"))
	if code == architect || code == "" || architect == "" || len(c.Warnings()) > 0 {
		t.Errorf("got chains %q and %q, warnings %v", code, architect, c.Warnings())
	}
}
