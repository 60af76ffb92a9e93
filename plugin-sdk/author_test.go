package pluginsdk_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	pluginsdk "github.com/condensehq/condense/plugin-sdk"
)

// TestWhole: whatever is kept, no call is parted from its result, protected messages stay,
// and nothing that was to be kept is missing.
func TestWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		messages := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
		r := rand.New(rand.NewPCG(seed, 1))
		keep := map[string]bool{}
		for _, m := range messages {
			keep[m.ID] = r.IntN(4) == 0
		}
		got := pluginsdk.Whole(messages, func(i int) bool { return keep[messages[i].ID] })
		there := map[string]bool{}
		for _, m := range got {
			there[m.ID] = true
		}
		for _, m := range messages {
			if (keep[m.ID] || m.Protected) && !there[m.ID] {
				rt.Errorf("message %s is missing", m.ID)
			}
		}
		if len(got) == 0 {
			return
		}
		err := core.Verify(coretest.HalfRequest(messages), &core.Result{Messages: got})
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range joined.Unwrap() {
				if v, ok := err.(*core.ViolationError); ok && v.Rule != "first-role" { //nolint:errorlint // as Verify documents
					rt.Error(err)
				}
			}
		}
	})
}

func TestCountEach(t *testing.T) {
	got := pluginsdk.CountEach(coretest.Counter{}, []core.Part{core.Text("12345")}, nil, []core.Part{core.Text("1"), core.Text("2")})
	if want := []int{2, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}
