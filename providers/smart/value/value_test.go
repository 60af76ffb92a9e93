package value_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/providers/smart/value"
)

// TestLawful shortens random histories, with all the faults that there are, to a random
// share of their size.
func TestLawful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)) //nolint:gosec // no secret
		messages := coretest.Random(r, nil)
		req := coretest.HalfRequest(messages)
		room := req.Tokens() * rapid.IntRange(2, 100).Draw(t, "percent") / 100
		res, err := value.Shorten(t.Context(), messages, value.Options{Room: room, Counter: req.Counter})
		if err != nil {
			t.Fatal(err)
		}
		if err := core.Verify(req, &core.Result{Messages: res.Messages}); err != nil {
			t.Fatal(err)
		}
	})
}
