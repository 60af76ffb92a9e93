package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/model"
)

const example = `auto: true
threshold: 80              # percent of the window
default_profile: sonnet
profiles:
  sonnet:
    model: anthropic/claude-sonnet-4-5
    threshold: -1          # inherit the global one
    chain: [tidy, summary]
  local:
    window: 32768
    threshold: 60
    chain: [tidy]
modes:
  code: sonnet
  ask: local
providers:
  tidy:    {strategy: smart, settings: {preset: balanced}}
  summary: {strategy: native, timeout: 45s, settings: {preset: fresh_start, model: cheap}}
  ours:    {plugin: ./condense-provider-ours, settings: {keep: 12}}
models:
  cheap: {api: anthropic, model: claude-haiku-4-5, api_key_env: ANTHROPIC_API_KEY}
`

func TestDefault(t *testing.T) {
	r := resolve(t, config.Default(), "", "")
	if r.Profile != "default" || r.Window != 200_000 || r.Tokenizer != "o200k_base" || len(r.Chain) != 0 || !r.Auto {
		t.Errorf("got %+v", r)
	}
	if r.Threshold != 80 || r.Buffer != 10 || r.Target != 0 || r.Reserve != 8192 || r.MaxOutput != 0 || r.MinNewTokens != 10_000 || r.MinGain != 10 {
		t.Errorf("got %+v", r)
	}
	if got := r.Origin("window").String(); got != "default" {
		t.Errorf("origin of the window: got %s, want default", got)
	}
}

func TestResolveExample(t *testing.T) {
	c := load(t, example)
	code := resolve(t, c, "", "code")
	if code.Profile != "sonnet" || code.Window != 200_000 || code.Threshold != 80 || code.Model.API != "anthropic" {
		t.Errorf("code: got %+v", code)
	}
	type link struct {
		name, strategy, settings string
		timeout                  time.Duration
	}
	var chain []link
	for _, p := range code.Chain {
		chain = append(chain, link{p.Name, p.Strategy, string(p.Settings), p.Timeout})
	}
	want := []link{
		{"tidy", "smart", `{"preset":"balanced"}`, 2 * time.Minute},
		{"summary", "native", `{"model":"cheap","preset":"fresh_start"}`, 45 * time.Second},
	}
	if diff := cmp.Diff(want, chain, cmp.AllowUnexported(link{})); diff != "" {
		t.Errorf("chain of code (-want +got):\n%s", diff)
	}
	if got := code.Origin("threshold"); got.Line != 2 || got.Column != 12 || got.Kind != config.FromFile {
		t.Errorf("origin of the threshold: got %s, want line 2, column 12", got)
	}
	if got := code.Origin("window"); got.Kind != config.FromModel {
		t.Errorf("origin of the window: got %s, want the model", got)
	}
	ask := resolve(t, c, "", "ask")
	if ask.Profile != "local" || ask.Window != 32_768 || ask.Threshold != 60 || len(ask.Chain) != 1 {
		t.Errorf("ask: got %+v", ask)
	}
	// An undeclared mode has the default profile; an explicit profile beats the mode's.
	if got := resolve(t, c, "", "architect").Profile; got != "sonnet" {
		t.Errorf("architect: got profile %s, want sonnet", got)
	}
	if got := resolve(t, c, "local", "code").Profile; got != "local" {
		t.Errorf("local with code: got profile %s, want local", got)
	}
	if _, err := c.Resolve("sonet", ""); err == nil || !strings.Contains(err.Error(), `did you mean "sonnet"?`) {
		t.Errorf("unknown profile: got %v, want a suggestion", err)
	}
	ours, err := c.Provider("ours")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(c.Files()[0]), "condense-provider-ours"); ours.Plugin != want {
		t.Errorf("plugin: got %s, want it beside the file: %s", ours.Plugin, want)
	}
	cheap, err := c.Model("cheap")
	if err != nil {
		t.Fatal(err)
	}
	if cheap.ID != "claude-haiku-4-5" || cheap.Window != 200_000 || cheap.APIKeyEnv != "ANTHROPIC_API_KEY" || cheap.Price.Input != 1 {
		t.Errorf("cheap: got %+v", cheap)
	}
}

// The path of a plugin is relative to the file that names it, even if another file adds settings.
func TestPlugin(t *testing.T) {
	home := write(t, "condense/condense.yaml", "providers:\n  ours: {plugin: ./ours/run, folder: ours, env: [OUR_KEY]}\n")
	project := write(t, "condense.yaml", "chain: [ours]\nproviders: {ours: {timeout: 3s}}\n")
	opts := known
	opts.Dir = filepath.Dir(project)
	opts.Env = []string{"XDG_CONFIG_HOME=" + filepath.Dir(filepath.Dir(home))}
	c, err := config.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Provider("ours")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(home)
	want := config.Provider{
		Name: "ours", Plugin: filepath.Join(dir, "ours", "run"), Folder: filepath.Join(dir, "ours"),
		Env: []string{"OUR_KEY"}, Limits: model.Quota{ModelCalls: 64}, Timeout: 3 * time.Second, Settings: []byte("{}"), SettingsDir: opts.Dir, Origin: got.Origin,
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Paths in settings are relative to the file with the settings.
	text := "chain: [ours]\nproviders: {ours: {plugin: /ours, settings: {file: x.txt}}}\n"
	if err := os.WriteFile(home, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = config.Load(opts); err != nil {
		t.Fatal(err)
	}
	if got, err = c.Provider("ours"); err != nil || got.SettingsDir != dir {
		t.Errorf("got settings in %q, %v; want %s", got.SettingsDir, err, dir)
	}

	// Paths in variables are relative to the working directory.
	opts.Env = append(opts.Env, "CONDENSE_PROVIDERS__OURS__PLUGIN=other", "CONDENSE_PROVIDERS__OURS__ENV=A,B")
	if c, err = config.Load(opts); err != nil {
		t.Fatal(err)
	}
	if got, err = c.Provider("ours"); err != nil {
		t.Fatal(err)
	}
	if got.Plugin != filepath.Join(opts.Dir, "other") || got.Folder != "" || !slices.Equal(got.Env, []string{"A", "B"}) {
		t.Errorf("another plugin by a variable: got %+v", *got)
	}
}

// TestSharesFollowTheWindow: a cap that is written as a share of the window holds for the window that is used, not for
// the one of the profile, where it would never apply.
func TestSharesFollowTheWindow(t *testing.T) {
	for _, tt := range []struct {
		text                     string
		window                   int
		most, fresh, least, kept int
	}{
		{"max_context_tokens: 50%\nmin_new_tokens: 10%\nmin_size: 20%\n", 32_000, 16_000, 3_200, 6_400, 6_400},
		{"max_context_tokens: 50%\n", 1_000_000, 500_000, 50_000, 0, 8_192},
		{"max_context_tokens: 20k\nmin_new_tokens: 1k\nmax_output: 4k\n", 32_000, 20_000, 1_000, 0, 4_000},
		{"max_context_tokens: 50%\nmin_size: 20k\n", 32_000, 16_000, 1_600, 16_000, 6_400}, // it fitted the profile
	} {
		c := load(t, tt.text)
		before := resolve(t, c, "", "")
		for name, r := range map[string]*config.Resolved{
			"ForWindow": before.ForWindow(tt.window), "Override": resolve(t, c.Override(config.Override{Window: tt.window}), "", ""),
		} {
			if r.Window != tt.window || r.MaxContextTokens != tt.most || r.MinNewTokens != tt.fresh || r.MinSize != tt.least || r.Reserve != tt.kept {
				t.Errorf("%s: %s: %+v", tt.text, name, r)
			}
			if err := r.Rule().Validate(); err != nil {
				t.Errorf("%s: %s: %v", tt.text, name, err)
			}
		}
		if again := resolve(t, c, "", ""); again.MaxContextTokens != before.MaxContextTokens || before.Window != 200_000 {
			t.Errorf("%s: the profile has changed", tt.text)
		}
	}
}
