package runtime_test

import (
	"context"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// TestAbilitiesOfCompiledIn: a strategy of this program is held to its declaration, as a plugin is.
func TestAbilitiesOfCompiledIn(t *testing.T) {
	type settings struct{}
	keeps := func(context.Context, settings, registry.Env) (core.CondensationProvider, error) {
		return keepNewest(10), nil
	}
	define := func(name string) registry.Strategy {
		return registry.Define(name, "Keeps ten messages.", func() settings { return settings{} }, keeps)
	}
	h, err := condense.Open(t.Context(), &condense.Options{
		Strategies: []registry.Strategy{define("liar").Only(core.Rewrites), define("honest").Only(core.Hides)},
		Values:     &config.Values{Tuning: config.Tuning{Chain: []string{"liar", "honest"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	r, err := h.Manage(t.Context(), talk(100), condense.Turn{Trigger: core.TriggerManual})
	if err != nil {
		t.Fatal(err)
	}
	if liar := r.Attempts[0]; liar.Outcome != core.OutcomeRejected || !strings.HasPrefix(liar.Reason, "declared-abilities: ") {
		t.Errorf("liar: got %s: %s; want rejected for what it did not declare", liar.Outcome, liar.Reason)
	}
	if honest := r.Attempts[1]; honest.Outcome != core.OutcomeApplied {
		t.Errorf("honest: got %s: %s; want applied", honest.Outcome, honest.Reason)
	}
}

// keepNewest hides all messages but the newest ones.
type keepNewest int

func (n keepNewest) Condense(_ context.Context, req *core.Request) (*core.Result, error) {
	return &core.Result{Messages: req.Messages[max(0, len(req.Messages)-int(n)):]}, nil
}
