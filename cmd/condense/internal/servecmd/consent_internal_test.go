package servecmd

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/agents"
)

// The prices shown before an account is turned on are those of the agent's vendor, by whichever name the agent is called.
func TestAccountCostsAreOfTheAgentsVendor(t *testing.T) {
	for name, never := range map[string]string{"claude": "gpt-", "claude-code": "gpt-", "codex": "claude-"} {
		if got := accountCosts(agents.Find(name).Name); got == "" || strings.Contains(got, never) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := accountCosts(""); !strings.Contains(got, "gpt-") || !strings.Contains(got, "claude-") {
		t.Errorf("any: %q", got)
	}
}
