package providers_test

import (
	"math/rand/v2"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/registry"
)

// TestAbilities: the built-in strategies do what they declare and nothing else, on random conversations.
func TestAbilities(t *testing.T) {
	env := registry.Env{Model: func(string) (model.Generator, error) { return extractive.New(), nil }}
	for _, s := range providers.Builtin() {
		if s.Abilities == 0 {
			t.Errorf("%s declares nothing", s.Name)
		}
		if s.Name == "vendor" {
			continue // it needs a vendor
		}
		p, err := s.Open(t.Context(), nil, env)
		if err != nil {
			t.Fatal(err)
		}
		seeds := uint64(100)
		if testing.Short() {
			seeds = 20
		}
		for seed := range seeds {
			messages := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
			if len(messages) == 0 {
				continue
			}
			req := coretest.HalfRequest(messages)
			res, err := p.Condense(t.Context(), req.Clone())
			if err != nil {
				continue
			}
			req.Abilities = s.Abilities
			if err := core.Verify(req, res); err != nil {
				t.Errorf("%s, seed %d: %v", s.Name, seed, err)
			}
		}
	}
}
