package rooimport_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/cmd/condense/internal/rooimport"
	"github.com/condensehq/condense/config"
)

var update = flag.Bool("update", false, "write what the golden files should be")

// known are the names that the program would pass.
var known = config.Options{
	Env:        []string{},
	Builtin:    []string{"native", "slidingwindow", "smart"},
	Strategies: []string{"native", "slidingwindow", "smart"},
	Tokenizers: []string{"o200k_base"},
}

// load reads a YAML text as the only file.
func load(t *testing.T, text string) *config.Config {
	t.Helper()
	opts := known
	opts.Path = filepath.Join(t.TempDir(), "condense.yaml")
	if err := os.WriteFile(opts.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opts.Trust = func(config.Claims) bool { return true }
	c, err := config.Load(opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
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

func TestRead(t *testing.T) {
	text, err := os.ReadFile("testdata/roo-settings.json")
	if err != nil {
		t.Fatal(err)
	}
	imported, err := rooimport.Read(text, true)
	if err != nil {
		t.Fatal(err)
	}
	yaml, err := imported.YAML("./condense.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(yaml)
	report(&b, "took", imported.Took)
	report(&b, "ignored", imported.Ignored)
	report(&b, "check", imported.Check)
	b.WriteString("# variables: " + strings.Join(imported.Variables, ", ") + "\n")
	b.WriteString("# secrets: " + strings.Join(imported.Secrets, ", ") + "\n")
	const golden = "testdata/roo-settings.golden.yaml"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wanted, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(wanted), b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(b.String(), "hunter2") || strings.Contains(b.String(), "sk-ant") {
		t.Error("a secret was copied")
	}

	// The file condenses when Roo did.
	c := load(t, yaml)
	want := []struct {
		mode, profile  string
		window, output int
		threshold      float64
		most           int
	}{
		{"code", "default", 200_000, 16_384, 60, 0},
		{"ask", "local llama", 32_768, 0, 75, 0},
		{"architect", "router/4.5", 0, 0, 100, 90_000},
		{"debug", "default", 200_000, 16_384, 60, 0},
	}
	for _, w := range want {
		r := resolve(t, c, "", w.mode)
		if r.Profile != w.profile || w.window != 0 && r.Window != w.window || r.MaxOutput != w.output ||
			r.Threshold != w.threshold || r.MaxContextTokens != w.most || !r.RooRule || len(r.Chain) != 2 || r.Chain[0].Name != "summary" || r.Chain[1].Name != "roo_half" {
			t.Errorf("%s: got %+v", w.mode, r)
		}
	}
	if m, err := c.Model("router/4.5"); err == nil {
		t.Errorf("a model was named after a profile: %+v", m)
	}
	r := resolve(t, c, "router/4.5", "")
	if r.Model.BaseURL != "https://openrouter.ai/api/v1" || r.Model.APIKeyEnv != "OPENROUTER_API_KEY" || r.Model.API != "openai" {
		t.Errorf("got %+v", r.Model)
	}
	// Roo-Code's own prompt replaces its built-in one; ours is replaced, too, and not added to.
	if r.Prompt != "" || !strings.Contains(yaml, `prompt_text: "Keep file names.\nAnd decisions."`) {
		t.Errorf("got prompt %q and\n%s", r.Prompt, yaml)
	}
	if !slices.IsSorted(imported.Variables) {
		t.Errorf("variables: %v", imported.Variables)
	}
}

func report(b *strings.Builder, title string, notes []rooimport.Note) {
	b.WriteString("# " + title + ":\n")
	for _, n := range notes {
		b.WriteString("#   " + n.String() + "\n")
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "neither providerProfiles nor globalSettings",
		"{}":                    "neither providerProfiles nor globalSettings",
		"[]":                    "not a settings export",
		`{"globalSettings": 3}`: "not a settings export",
		"{\n\"a\": }":           "line 2: not valid JSON",
		`{"providerProfiles": {"apiConfigs": {"a": 1}}}`: "not a settings export",
	} {
		if _, err := rooimport.Read([]byte(text), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
	// The least there can be: the defaults of Roo.
	imported, err := rooimport.Read([]byte(`{"globalSettings": {}}`), true)
	if err != nil {
		t.Fatal(err)
	}
	if imported.Values.Threshold == nil || *imported.Values.Threshold != 100 {
		t.Errorf("threshold: got %v, want Roo's default of 100", imported.Values.Threshold)
	}
	// Roo takes any percentage; ours are the nearest valid ones.
	for text, want := range map[string]float64{"-3": 5, "0": 5, "150": 100, "42.5": 42.5} {
		imported, err := rooimport.Read([]byte(`{"globalSettings": {"autoCondenseContextPercent": `+text+`}}`), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := *imported.Values.Threshold; got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestKeyForPlainHTTPIsSaid: a key is not sent unencrypted to another machine, so that an imported model there would
// never be used; the import says so, and says nothing of this machine or of https.
func TestKeyForPlainHTTPIsSaid(t *testing.T) {
	for address, want := range map[string]bool{"http://llm.corp:4000": true, "https://llm.corp:4000": false, "http://localhost:4000/v1": false, "http://127.0.0.1:1": false} {
		imported, err := rooimport.Read([]byte(`{"providerProfiles": {"currentApiConfigName": "a", "apiConfigs": {"a": {"apiProvider": "openai", "openAiModelId": "m", "openAiBaseUrl": "`+address+`"}}}}`), true)
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(imported.Check, func(n rooimport.Note) bool {
			return strings.Contains(n.String(), "the key is not sent there") && strings.Contains(n.String(), "base_url")
		})
		if said != want {
			t.Errorf("%s: %v", address, imported.Check)
		}
	}
}

// An import never panics, never copies a secret, and gives a file that loads.
func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/roo-settings.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"globalSettings": {"profileThresholds": [], "modeApiConfigs": {"a": 1}, "condensingApiConfigId": "x"}}`)
	f.Add(`{"providerProfiles": {"apiConfigs": {"a": {"apiProvider": "anthropic", "apiModelId": "sk-ant-api03-aaaaaaaaaaaaaaaaaaaa"}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		imported, err := rooimport.Read([]byte(text), true)
		if err != nil {
			return
		}
		yaml, err := imported.YAML("")
		if err != nil {
			t.Fatal(err)
		}
		load(t, yaml)
	})
}

// Roo's first profile is called default, as the built-in one is, whose window is not its.
func TestReadDefaultProfile(t *testing.T) {
	imported, err := rooimport.Read([]byte(`{"providerProfiles": {"apiConfigs": {
		"default": {"id": "a", "apiProvider": "openai-native", "apiModelId": "gpt-4.1"}}}}`), true)
	if err != nil {
		t.Fatal(err)
	}
	yaml, err := imported.YAML("")
	if err != nil {
		t.Fatal(err)
	}
	if got := resolve(t, load(t, yaml), "default", "").Window; got != 1_000_000 {
		t.Errorf("got a window of %d, want the model's\n%s", got, yaml)
	}
}

// Without a strategy that writes summaries, the result names none.
func TestReadWithoutSummaries(t *testing.T) {
	text, err := os.ReadFile("testdata/roo-settings.json")
	if err != nil {
		t.Fatal(err)
	}
	imported, err := rooimport.Read(text, false)
	if err != nil {
		t.Fatal(err)
	}
	yaml, err := imported.YAML("")
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, yaml)
	for _, p := range c.Profiles() {
		if got := resolve(t, c, p, "").Chain; len(got) != 1 || got[0].Name != "roo_half" {
			t.Errorf("profile %s: got chain %v", p, got)
		}
	}
	if !slices.ContainsFunc(imported.Check, func(n rooimport.Note) bool { return strings.Contains(n.Note, "no strategy native") }) {
		t.Errorf("nothing says that there are no summaries: %v", imported.Check)
	}
}
