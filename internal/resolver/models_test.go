package resolver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/model"
)

// Without any declaration there is the extractive model, and an error for the rest.
func TestModelsWithoutAnything(t *testing.T) {
	m := resolver.NewModels(config.Default(), resolver.ModelOptions{})
	g, err := m.Model("", extractive.Name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := g.Generate(t.Context(), &model.Prompt{Messages: []core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text("We chose tea. It rained all day.")}}}})
	if err != nil || !strings.HasPrefix(a.Text, extractive.Label) {
		t.Errorf("got %+v, %v", a, err)
	}
	if err := m.Check("", ""); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "names no model, and its profile has none") {
		t.Errorf("got error %v", err)
	}
}

// A provider that names no model never gets one of another vendor than the profile's, however few are declared: it is skipped, and
// the text names the model of the profile. Readers are named with their vendors.
func TestNoModelOfAnotherVendor(t *testing.T) {
	c, err := config.New(config.Values{Models: map[string]config.ModelValues{
		"other": {API: "openai", Model: "gpt-5.1"}, "router": {API: "openai", Model: "x/y", BaseURL: "https://openrouter.ai/api/v1"},
	}}, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := resolver.NewModels(c, resolver.ModelOptions{})
	for _, agent := range []string{"aws/anthropic.claude-sonnet-4-20250514-v1:0", "claude-code/claude-sonnet-4-5", "no-such-model", ""} {
		g, err := m.Model(agent, "")
		if err != nil {
			t.Fatal(agent, err)
		}
		if _, err := g.Generate(t.Context(), &model.Prompt{}); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), agent) {
			t.Errorf("%s: got %v", agent, err)
		}
		if r := m.Reader(agent, ""); r.Model != "" || !strings.Contains(r.String(), "skipped: it names no model") {
			t.Errorf("%s: is read by %s", agent, r)
		}
	}
	for name, want := range map[string]string{
		"other": "asks gpt-5.1 at OpenAI", "router": "asks x/y at openrouter.ai", "extractive": "asks extractive at this machine",
		"anthropic/claude-haiku-4-5": "asks claude-haiku-4-5 at Anthropic",
	} {
		if got := m.Reader("", name).String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// A missing key is found without asking the model, and a key that is set later counts.
func TestCheckKey(t *testing.T) {
	t.Setenv("TEST_CONDENSE_KEY", "")
	c, err := config.New(config.Values{Models: map[string]config.ModelValues{
		"m": {API: "openai", BaseURL: "http://localhost:1/v1", APIKeyEnv: "TEST_CONDENSE_KEY"},
	}}, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := resolver.NewModels(c, resolver.ModelOptions{})
	if err := m.Check("", "m"); err == nil || !strings.Contains(err.Error(), "TEST_CONDENSE_KEY is not set") {
		t.Errorf("got %v", err)
	}
	t.Setenv("TEST_CONDENSE_KEY", "sesame")
	if err := m.Check("", "m"); err != nil {
		t.Errorf("got %v", err)
	}
}
