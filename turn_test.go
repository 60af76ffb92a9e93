package condense_test

import (
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
)

// The target of a turn replaces that of the configuration, and is kept within what a rule allows.
func TestTargetOfATurn(t *testing.T) {
	h, err := condense.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, tt := range []struct{ target, want int }{{0, 40_000}, {30_000, 30_000}, {1, 10_000}, {1_000_000, 70_000}} {
		c := condense.NewConversation()
		d, err := h.Check(c, condense.Turn{Window: 100_000, MaxOutput: 8_000, Target: tt.target})
		if err != nil {
			t.Fatal(err)
		}
		if d.Budget.Target != tt.want {
			t.Errorf("target %d: got %d, want %d", tt.target, d.Budget.Target, tt.want)
		}
	}
	if h.Config() == nil || len(h.Config().Profiles()) != len(config.Default().Profiles()) {
		t.Error("the host has another configuration than the default")
	}
}
