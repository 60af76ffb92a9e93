package main

import (
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
)

// TestPrintSteps: whatever a step says is shown; one of a plugin need not say all.
func TestPrintSteps(t *testing.T) {
	var b strings.Builder
	printSteps(&b, []core.Step{
		{Name: "idle", Duration: time.Second},
		{Name: "cut", Looked: 1200, Changed: 3, Saved: map[string]int{"tool_result": 80, "user": 0}, TokensBefore: 1000, TokensAfter: 900, Duration: 1500 * time.Microsecond},
		{Name: "looked", Looked: 2},
		{Name: "plugged", Saved: map[string]int{"tool_result": 1200, "user": 300}},
		{Name: "changed", Changed: 3},
		{Name: "noted", Note: "as said"},
		{Name: "both", Note: "as said", Saved: map[string]int{"user": 7}},
	})
	const want = `    cut              3 of 1,200 changed, 100 tokens saved of tool_result (1.5 ms)
    looked           0 of 2 changed, 0 tokens saved
    plugged          1,500 tokens saved of tool_result, user
    changed          3 changed, 0 tokens saved
    noted            as said
    both             7 tokens saved of user as said
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
