package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"github.com/condensehq/condense/config"
)

// strategies are what a host would hand in for a schema.
var strategies = []config.StrategyDoc{
	{Name: "smart", Doc: "Passes.", Settings: []config.SettingDoc{
		{Name: "preset", Type: "string", Doc: "A set of passes.", Enum: []string{"lossless", "balanced"}, Default: json.RawMessage(`"lossless"`)},
		{Name: "keep", Type: "integer", Doc: "Messages that stay."},
	}},
	{Name: "native", Doc: "A model writes a summary.", Settings: []config.SettingDoc{
		{Name: "preset", Type: "string", Doc: "The form of the summary."}, {Name: "model", Type: "string", Doc: "The model."},
	}},
	{Name: "slidingwindow", Doc: "Truncation.", Settings: []config.SettingDoc{{Name: "mode", Type: "string", Doc: "What is hidden."}}},
}

func resolvedSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := config.Schema(strategies, known)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Schema != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("dialect: got %s", s.Schema)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decodeYAML(t *testing.T, text string) any {
	t.Helper()
	v := any(map[string]any{})
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// What Load accepts, the schema accepts.
func TestSchemaAccepts(t *testing.T) {
	s := resolvedSchema(t)
	for _, text := range []string{
		"{}", example, config.Init("", known),
		"threshold: -1\nbuffer: 0.1\nmax_context_tokens: 50%\nmin_new_tokens: 4k\nmax_output: 8_192\n",
		"threshold: 70%\nprofiles:\n  a: {window: 32Ki, preset: roo, threshold: 120, max_output: -5000}\n",
		"profiles:\n  a/b.c: {window: 1M}\nmodes:\n  x: a/b.c\n  y:\nproviders:\n",
		"chain: [native, mine]\nproviders:\n  mine: {plugin: ./x, settings: {anything: [1]}}\n",
	} {
		load(t, text) // or the test proves nothing
		if err := s.Validate(decodeYAML(t, text)); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// What Load refuses, the schema refuses, but for what no schema can know: what names refer
// to, sums, duplicates, and secrets in free settings.
func TestSchemaRefuses(t *testing.T) {
	beyond := map[string]bool{
		"target-not-below-trigger": true, "target-inherited": true, "target-only-in-mode": true,
		"window-too-small": true, "min-size-above-cap": true,
		"model-unknown": true, "model-unknown-bare": true, "model-declared-without-window": true,
		"neither-window-nor-model": true, "chain-unknown-provider": true, "mode-unknown-profile": true,
		"default-profile-unknown": true, "default-profile-missing": true,
		"extends-unknown": true, "extends-circle": true, "extends-itself": true,
		"provider-without-strategy": true, // another layer may have it
		"secret-in-model":           true, "api-key-twice": true,
		// No documents at all:
		"duplicate-key": true, "two-documents": true,
		"alias-circle": true, "not-a-number": true,
	}
	s := resolvedSchema(t)
	archive, err := txtar.ParseFile("testdata/faults.txtar")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range archive.Files {
		name, ok := strings.CutSuffix(f.Name, ".yaml")
		if !ok || beyond[name] || strings.HasPrefix(name, "syntax-") {
			continue
		}
		n++
		if s.Validate(decodeYAML(t, string(f.Data))) == nil {
			t.Errorf("%s is accepted:\n%s", f.Name, f.Data)
		}
	}
	if n < 40 {
		t.Errorf("only %d files were tried", n)
	}
}
