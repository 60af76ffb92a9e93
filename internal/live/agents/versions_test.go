package agents_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/condensehq/condense/internal/live/agents"
)

// TestVersions holds the versions that the profiles say are tested against those that are.
func TestVersions(t *testing.T) {
	text, err := os.ReadFile("../../../test/agents/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct{ Dependencies, OptionalDependencies map[string]string }
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string]string{
		"claude": lock.Dependencies["@anthropic-ai/claude-code"], "codex": lock.Dependencies["@openai/codex"],
		"opencode": lock.OptionalDependencies["opencode-linux-x64-baseline"], "pi": lock.Dependencies["@earendil-works/pi-coding-agent"],
	} {
		if a := agents.Find(name); a == nil || a.Tested != version {
			t.Errorf("%s: test/agents has version %q, its profile another: %+v", name, version, a)
		}
	}
}
