//go:build linux

package supervise_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// TestSoak: eight goroutines halve conversations with one plugin
// that crashes in 5 % of its calls. It is small by default; with CONDENSE_SOAK=1 each
// goroutine has 1,000 conversations, and there is a second round with the default
// breakers, which refuse most calls.
func TestSoak(t *testing.T) {
	rounds := map[string]supervise.Restart{
		"patient": {Min: time.Millisecond, Max: 50 * time.Millisecond, Crashes: 10, Window: 2 * time.Second, Cooldown: 200 * time.Millisecond},
	}
	conversations := 25
	if os.Getenv("CONDENSE_SOAK") != "" {
		rounds["default"], conversations = supervise.Restart{}, 1000
	}
	for _, name := range slices.Sorted(maps.Keys(rounds)) {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			b := newBench(t, "exits-at-random")
			b.opts.Restart = rounds[name]
			soak(t, b.open(t), conversations)
		})
	}
}

// A tally counts the outcomes of the calls of a soak.
type tally struct {
	sync.Mutex

	outcomes map[core.Outcome]int // of the plugin
	broken   int                  // skipped: the crash-loop breaker
	pause    int                  // skipped: between two starts
	crashed  int                  // failed: the process ended
	by       map[string]int       // the provider whose result was used
}

func soak(t *testing.T, p *supervise.Process, conversations int) {
	t.Helper()
	c := chain(t, p, time.Minute)
	sum := tally{outcomes: map[core.Outcome]int{}, by: map[string]int{}}
	begun := time.Now()
	var workers sync.WaitGroup
	for w := range 8 {
		r := rand.New(rand.NewPCG(uint64(w), 1))
		workers.Go(func() {
			for range conversations {
				condenseRandom(t, c, r, &sum)
			}
		})
	}
	workers.Wait()
	s := p.Seen()
	t.Logf("%d conversations in %s: %d processes, %d crashes; plugin %v (of the failed, %d crashed; of the skipped, %d between starts and %d while broken); last word %v",
		8*conversations, time.Since(begun).Round(time.Millisecond), s.Starts, s.Crashes, sum.outcomes, sum.crashed, sum.pause, sum.broken, sum.by)
	if sum.outcomes[core.OutcomeRejected] > 0 {
		t.Error("answers were rejected")
	}
	if sum.outcomes[core.OutcomeFailed] != sum.crashed {
		t.Error("calls failed in other ways than by a crash")
	}
	if s.Crashes == 0 || sum.outcomes[core.OutcomeApplied] == 0 {
		t.Error("nothing was tested")
	}
}

func condenseRandom(t *testing.T, c *core.Chain, r *rand.Rand, sum *tally) {
	t.Helper()
	req := conversation(r)
	out, err := c.Run(t.Context(), req)
	if err != nil {
		t.Error(err)
		return
	}
	if out.TokensAfter > req.Budget.Limit {
		t.Errorf("got %d tokens; want at most %d", out.TokensAfter, req.Budget.Limit)
	}
	if err := verify(req, out); err != nil {
		t.Error(err)
	}
	a := out.Attempts[0]
	sum.Lock()
	defer sum.Unlock()
	sum.outcomes[a.Outcome]++
	sum.by[out.Provider]++
	if a.Outcome == core.OutcomeFailed && errors.As(a.Err, new(*supervise.CrashError)) {
		sum.crashed++
	}
	if a.Outcome == core.OutcomeSkipped {
		if errors.Is(a.Err, core.ErrUnavailable) && strings.Contains(a.Reason, " times within ") {
			sum.broken++
		} else {
			sum.pause++
		}
	}
}

// conversation returns the request to halve one that can be halved.
func conversation(r *rand.Rand) *core.Request {
	window := slidingwindow.New(slidingwindow.DefaultConfig())
	for {
		req := coretest.HalfRequest(coretest.Random(r, &coretest.RandomOptions{Tidy: true}))
		res, err := window.Condense(context.Background(), req)
		if err != nil || len(req.Messages) < 4 {
			continue
		}
		core.Measure(req.Counter, res.Messages)
		if tokens := (&core.Request{Messages: res.Messages}).Tokens(); tokens <= req.Budget.Limit {
			return req
		}
	}
}

// verify checks the outcome of a chain by the rules for the result of one provider.
func verify(req *core.Request, out *core.ChainResult) error {
	known := map[string]bool{}
	for _, m := range req.Messages {
		known[m.ID] = true
	}
	res := &core.Result{Messages: slices.Clone(out.Messages)}
	for i := range res.Messages {
		if !known[res.Messages[i].ID] {
			res.Messages[i].ID = "" // the chain named it
		}
	}
	return core.Verify(req, res)
}
