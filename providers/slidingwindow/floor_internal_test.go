package slidingwindow

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestFloorIsThatOfAWindow holds, too, where nothing must stay and no window is made.
func TestFloorIsThatOfAWindow(t *testing.T) {
	counter := coretest.Counter{}
	short := 0 // how often nothing had to stay
	rapid.Check(t, func(t *rapid.T) {
		messages := coretest.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), nil)
		if rapid.Bool().Draw(t, "free") {
			for i := range messages {
				messages[i].Protected = false
				if messages[i].Role == core.RoleSystem {
					messages[i].Role = core.RoleUser
				}
			}
		}
		core.Measure(counter, messages)
		if !mustKeep(messages) {
			short++
		}
		want := newWindow(&core.Request{Messages: messages, Counter: counter}).floor()
		if got := Floor(counter, messages); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
	if short == 0 {
		t.Error("in no conversation everything could go")
	}
}
