package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/config"
)

// The same configuration in both formats, and as values of a program.
func TestFormatsAgree(t *testing.T) {
	texts := map[string]string{
		"condense.yaml": `
# A comment.
threshold: 70%
chain: [conservative, balanced]
profiles:
  gpt-4.1: &base
    window: 1_000_000
    max_context_tokens: 90%
  "architect/mode": {<<: *base, threshold: 60, prompt: "a\nb"}
default_profile: gpt-4.1
modes: {code: architect/mode, ask: {profile: gpt-4.1, auto: false}}
providers:
  conservative: {strategy: smart, timeout: 1m30s, settings: {level: 1, deep: {a: [1, 2.5, x, null, true]}}}
  balanced:
    strategy: smart
    settings: {level: 2}
models:
  cheap: {api: openai, base_url: "http://localhost:11434/v1", price: {input: 1, output: 2.5}, window: 32Ki}
`,
		"condense.json": `{
  "threshold": 70, "chain": ["conservative", "balanced"], "default_profile": "gpt-4.1",
  "profiles": {
    "gpt-4.1": {"window": 1e6, "max_context_tokens": "90%"},
    "architect/mode": {"window": 1000000, "max_context_tokens": "90 %", "threshold": 60.0, "prompt": "a\nb"}
  },
  "modes": {"code": "architect/mode", "ask": {"profile": "gpt-4.1", "auto": false}},
  "providers": {
    "conservative": {"strategy": "smart", "timeout": "1m30s", "settings": {"level": 1, "deep": {"a": [1, 2.5, "x", null, true]}}},
    "balanced": {"strategy": "smart", "settings": {"level": 2}}
  },
  "models": {"cheap": {"api": "openai", "base_url": "http://localhost:11434/v1", "price": {"input": 1, "output": 2.5}, "window": 32768}}
}`,
	}
	var first config.Values
	for _, name := range []string{"condense.yaml", "condense.json"} {
		values := loadFrom(t, write(t, name, texts[name])).Values()
		if name == "condense.yaml" {
			first = values
			continue
		}
		if diff := cmp.Diff(first, values); diff != "" {
			t.Errorf("%s differs (-yaml +%s):\n%s", name, name, diff)
		}
	}
	c, err := config.New(first, known)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, c.Values()); diff != "" {
		t.Errorf("the program's values differ:\n%s", diff)
	}
	r := resolve(t, c, "", "code")
	// Two instances of one strategy with different settings are two providers.
	if len(r.Chain) != 2 || r.Chain[0].Strategy != "smart" || r.Chain[1].Strategy != "smart" ||
		string(r.Chain[0].Settings) == string(r.Chain[1].Settings) {
		t.Errorf("chain: got %+v", r.Chain)
	}
	if got := r.Origin("threshold"); got.Kind != config.FromProgram {
		t.Errorf("origin: got %s, want the program", got)
	}
	text, err := json.Marshal(r.Chain[0])
	if err != nil || !strings.Contains(string(text), `"timeout":"1m30s"`) {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestNewRefuses(t *testing.T) {
	_, err := config.New(config.Values{
		Tuning:   config.Tuning{Threshold: new(3.0), Chain: []string{"absent"}},
		Profiles: map[string]config.ProfileValues{"p": {Window: new(0)}},
	}, known)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"program: threshold: is 3", "program: profiles.p.window: is 0", `program: chain[0]: there is no provider "absent"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// A configuration shares no memory with what its methods return.
func TestConfigIsImmutable(t *testing.T) {
	c := load(t, example)
	before := c.Values()
	values := c.Values()
	values.Profiles["sonnet"] = config.ProfileValues{}
	values.Profiles["local"].Chain[0] = "x"
	*values.Threshold = 1
	values.Providers["tidy"].Settings[0] = 'x'
	r := resolve(t, c, "", "code")
	r.Chain[0].Settings[0] = 'x'
	steps := r.Steps("threshold")
	steps[0].Level = "x"
	c.Files()[0] = "x"
	if diff := cmp.Diff(before, c.Values()); diff != "" {
		t.Errorf("changed from outside:\n%s", diff)
	}
	if again := resolve(t, c, "", "code"); string(again.Chain[0].Settings) != `{"preset":"balanced"}` {
		t.Errorf("changed from outside: %s", again.Chain[0].Settings)
	}
}
