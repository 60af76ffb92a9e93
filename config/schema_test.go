package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// strategies are those that a program would pass for a schema.
var strategies = []registry.Strategy{
	strategy("smart", "Passes.", struct {
		Preset string `json:"preset" doc:"A set of passes." enum:"lossless|balanced"`
		Keep   int    `json:"keep" doc:"Messages to keep."`
	}{Preset: "lossless"}),
	strategy("native", "A model writes a summary.", struct {
		Preset string `json:"preset" doc:"The form of the summary."`
		Model  string `json:"model" doc:"The model."`
	}{}),
	strategy("slidingwindow", "Truncation.", struct {
		Mode string `json:"mode" doc:"What is hidden."`
	}{}),
}

// strategy describes a strategy that is never opened.
func strategy[C any](name, doc string, defaults C) registry.Strategy {
	return registry.Define(name, doc, func() C { return defaults },
		func(context.Context, C, registry.Env) (core.CondensationProvider, error) {
			return nil, errors.ErrUnsupported
		})
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

// The schema accepts whatever Load accepts.
func TestSchemaAccepts(t *testing.T) {
	s := resolvedSchema(t)
	for _, text := range []string{
		"{}", example, config.Init("", known),
		"threshold: -1\nbuffer: 0.1\nmax_context_tokens: 50%\nmin_new_tokens: 4k\nmax_output: 8_192\n",
		"threshold: 70%\nprofiles:\n  a: {window: 32Ki, preset: roo, threshold: 120, max_output: -5000}\n",
		"profiles:\n  a/b.c: {window: 1M}\nmodes:\n  x: a/b.c\n  y:\nproviders:\n",
		serving,
		"x-base: &b {threshold: 60}\nprofiles: {p: {<<: *b, window: 1000}}\nserve: {drain_delay: off}\n",
		"chain: [native, mine]\nproviders:\n  mine: {plugin: ./x, settings: {anything: [1]}}\n",
	} {
		load(t, text) // or the test proves nothing
		if err := s.Validate(decodeYAML(t, text)); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
}

// The schema of one configuration knows its names, and the settings of its plugins.
func TestSchemaOfConfiguration(t *testing.T) {
	const text = "providers:\n  ours: {plugin: ./x, settings: {recent: 2}}\n  half: {strategy: slidingwindow}\n" +
		"profiles: {code: {window: 1000, chain: [ours]}}\ndefault_profile: code\nmodes: {ask: code}\n"
	schemaText, err := load(t, text).Schema(strategies, map[string][]registry.Setting{"ours": {
		{Name: "recent", Type: "integer"}, {Name: "mark", Type: "object", Fields: []registry.Setting{{Name: "style", Type: "string", Enum: []string{"dots"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schemaText, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		fine     bool
	}{
		{"", "", true},
		{"recent: 2", "mark: {style: dots}", true},
		{"[ours]", "[half, smart, truncation]", true},
		{"{plugin: ./x, settings: {recent: 2}}", "{strategy: slidingwindow, settings: {mode: half}}", true},
		{"recent: 2", "recnt: 2", false},
		{"recent: 2", "recent: two", false},
		{"recent: 2", "mark: {stile: dots}", false},
		{"recent: 2", "mark: {style: lines}", false},
		{"[ours]", "[our]", false},
		{"default_profile: code", "default_profile: cod", false},
		{"ask: code", "ask: cod", false},
		{"ask: code", "ask: {profile: cod}", false},
		{"window: 1000", "window: 1000, extends: cod", false},
	} {
		if err := r.Validate(decodeYAML(t, strings.Replace(text, c.from, c.to, 1))); (err == nil) != c.fine {
			t.Errorf("%s: got %v", c.to, err)
		}
	}
}

// TestHoverHasOneTitle: an editor that shows a value whose alternatives have no titles of their own repeats the title of the whole for
// each.
func TestHoverHasOneTitle(t *testing.T) {
	text, err := config.Schema(nil, known)
	if err != nil {
		t.Fatal(err)
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	seen := 0
	var walk func(v any, where string)
	walk = func(v any, where string) {
		switch v := v.(type) {
		case map[string]any:
			// A condition is not shown, and the alternatives of store are patterns of the same text.
			if alternatives, ok := v["anyOf"].([]any); ok && !strings.HasSuffix(where, "/not") && !strings.HasSuffix(where, "/store") {
				titles := map[any]bool{nil: true}
				for _, a := range alternatives {
					of, _ := a.(map[string]any)
					title := of["title"]
					if titles[title] {
						t.Errorf("%s: an alternative has the title %v", where, title)
					}
					titles[title] = true
					seen++
				}
			}
			for key, inner := range v {
				walk(inner, where+"/"+key)
			}
		case []any:
			for _, inner := range v {
				walk(inner, where)
			}
		}
	}
	walk(root, "")
	if seen == 0 {
		t.Error("no alternatives were seen")
	}
}

// The schema refuses whatever Load refuses, except for what no schema can know: what names refer
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
		"serve-off-the-loopback": true, "serve-token-twice": true, "serve-unencrypted": true,
		// Not valid documents:
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
