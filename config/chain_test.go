package config_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/config"
)

// The program's own chain is used if no level sets one.
func TestDefaultChain(t *testing.T) {
	for _, tt := range []struct{ name, text, chain, origin string }{
		{"without a file", "", "smart", "default"},
		{"of a profile that names none", "profiles:\n  p: {window: 50000}\n", "smart", "default"},
		{"none is truncation", "profiles:\n  p: {window: 50000, chain: []}\n", "", "condense.yaml:2:29"},
		{"none at the top level", "chain: []\n", "", "condense.yaml:1:8"},
		{"truncation alone", "chain: [truncation]\n", "truncation", "condense.yaml:1:8"},
		{"truncation last", "chain: [smart, truncation]\n", "smart,truncation", "condense.yaml:1:8"},
		{"replaced and not added to", "chain: [native, slidingwindow]\n", "native,slidingwindow", "condense.yaml:1:8"},
		{"a preset has its own", "profiles:\n  p: {window: 50000, preset: roo}\n", "roo_half", "preset roo"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := load(t, tt.text)
			r := resolve(t, c, "", "")
			origin := r.Origin("chain").String()
			if got := chainNames(r); got != tt.chain || !strings.HasSuffix(origin, tt.origin) {
				t.Errorf("got %q from %s, want %q from %s", got, origin, tt.chain, tt.origin)
			}
			shown, err := c.Show()
			if err != nil {
				t.Fatal(err)
			}
			if got := chainNames(resolve(t, load(t, shown), "", "")); got != tt.chain {
				t.Errorf("what is shown has the chain %q, want %q:\n%s", got, tt.chain, shown)
			}
		})
	}
}

// A provider after truncation, and one that would hide the built-in truncation, are faults.
func TestTruncationIsLast(t *testing.T) {
	for text, want := range map[string]string{
		"chain: [truncation, smart, native]\n":                     "condense.yaml:1:9: chain[0]: truncation is not the last of the chain; must be last, because it always succeeds and smart, native would never be tried",
		"providers: {truncation: {strategy: slidingwindow}}\n":     "providers.truncation: reserved name: every chain ends with truncation; must have another name",
		"chain: [truncaton]\nproviders: {a: {strategy: native}}\n": `did you mean "truncation"?`,
	} {
		opts := known
		opts.Path = write(t, "condense.yaml", text)
		if _, err := config.Load(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// A declared provider with the name of the default one replaces it.
func TestDefaultChainIsDeclaredAnew(t *testing.T) {
	c := load(t, "providers:\n  smart: {strategy: smart, timeout: 7s, settings: {preset: lossless}}\n")
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %v", w)
	}
	p := resolve(t, c, "", "").Chain[0]
	if got, want := string(p.Settings), `{"preset":"lossless"}`; got != want || p.Timeout.Seconds() != 7 {
		t.Errorf("got %s within %v, want %s within 7s", got, p.Timeout, want)
	}
}

// The explanation of the key shows the program's default.
func TestDefaultChainIsExplained(t *testing.T) {
	all, err := load(t, "").ExplainKey("chain")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := all[0].String(), `Default: ["smart"].`; !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %s in it", got, want)
	}
	text, err := config.Schema(strategies, known)
	if err != nil {
		t.Fatal(err)
	}
	if want := "\"default\": [\n        \"smart\"\n      ]"; !strings.Contains(string(text), want) {
		t.Errorf("the schema does not have %s", want)
	}
}

// A default chain with an unknown provider is an error, whatever the files say.
func TestDefaultChainUnknown(t *testing.T) {
	_, err := config.New(config.Values{}, config.Options{Builtin: []string{"smart"}, Chain: []string{"smrt"}})
	if want := `default: chain[0]: there is no provider "smrt"; there are roo_half, smart, truncation; did you mean "smart"?`; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
