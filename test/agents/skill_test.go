package agents_test

import (
	"bytes"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestSkill: each agent offers its model the skill that condense agent install writes.
func TestSkill(t *testing.T) {
	t.Parallel()
	for _, a := range some("codex") {
		if a.name == "pi" { // it has no server of MCP, and so no recall
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, upstream.Options{Script: upstream.Loop(2, 300, nil), Window: 900_000, ByCredential: true})
			d.at(t, &a, d.url)
			if got := d.run(t, nil, d.condense(t), "agent", "install", a.name, "--yes", "--recall", "--skill", "--url", "http://127.0.0.1:1"); got.code != 0 {
				t.Fatalf("exit code %d\n%s", got.code, got.out)
			}
			d.direct(t, &a, d.url, task) // with the settings that it had, the vendor's address in them
			for _, r := range d.vendor.Records() {
				if bytes.Contains(r.Body, []byte("How to read shortened text in this conversation")) {
					return
				}
			}
			t.Errorf("none of %d requests has the skill", len(d.vendor.Records()))
		})
	}
}
