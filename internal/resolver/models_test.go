package resolver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/model/extractive"
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
	if _, err := m.Model("", ""); err == nil || errors.Is(err, core.ErrUnavailable) {
		t.Errorf("got error %v", err)
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
