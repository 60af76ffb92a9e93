package core_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestFixedTokens compares FixedTokens, which takes a shorter way if nothing is fixed, with
// the sum over the groups.
func TestFixedTokens(t *testing.T) {
	counter := coretest.Counter{}
	free := 0 // conversations in which nothing is fixed
	check := func(t rapid.TB, seed uint64, unfixed bool) {
		t.Helper()
		messages := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
		if unfixed {
			for i := range messages {
				messages[i].Protected = false
				if messages[i].Role == core.RoleSystem {
					messages[i].Role = core.RoleUser
				}
			}
		}
		core.Measure(counter, messages)
		const note = 64
		all, fixed := 0, 0
		for _, g := range core.FixedGroups(&core.Request{Messages: messages, Counter: counter}) {
			all += g.Tokens
			if g.Pinned {
				fixed += g.Tokens
			}
			fixed += g.Least
		}
		if fixed == 0 {
			free++
		}
		if got, want := core.FixedTokens(&core.Request{Messages: messages, Counter: counter}), min(all, fixed+note); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	for seed := range uint64(50) { // the same each time, so that both ways are taken however few cases are drawn
		check(t, seed, seed%2 == 0)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Uint64().Draw(t, "seed"), rapid.Bool().Draw(t, "free")) })
	if free == 0 {
		t.Error("something was fixed in every conversation")
	}
}
