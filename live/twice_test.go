package live_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// TestWindowIsNotHalvedByCountsTwice: some servers report the whole prompt as input, and its cached part again. Epochs begin
// at the same sizes and the cost is nearly the same as with an honest vendor, and the log says it once.
func TestWindowIsNotHalvedByCountsTwice(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const window = 60_000
	script := upstream.Loop(60, 6000, nil)
	var honest live.Stats
	for _, twice := range []string{"", "read", "all"} {
		for _, unmarked := range []bool{false, true} { // of an unmarked conversation nothing is cached
			var log lockedBuffer
			c := claude("s")
			c.Unmarked = unmarked
			p := playIn(t, window, upstream.Options{Window: window, Script: script, CountsTwice: twice}, c, func(o *live.Options) {
				o.Reports.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
				o.Epoch.IgnorePayback = true
			})
			p.steps(t, 30)
			p.client.Session, p.client.History = "s2", nil // a second conversation
			p.steps(t, 30)
			if !unmarked {
				p.check(t, 2)
			}
			for _, e := range p.Stats().Epochs {
				if e.Before < 45_000 {
					t.Errorf("twice %q: an epoch at %d tokens: %+v", twice, e.Before, e)
				}
			}
			if n := strings.Count(log.String(), "from its cache twice"); n > 1 || (n == 1) != (twice != "" && !unmarked) {
				t.Errorf("twice %q, unmarked %v: said %d times", twice, unmarked, n)
			}
			if s := p.Stats(); twice == "" && !unmarked {
				honest = s
			} else if !unmarked && (s.EpochCount != honest.EpochCount || s.Cost > 1.15*honest.Cost) {
				t.Errorf("twice %q: %d epochs and $%.2f, with an honest vendor %d and $%.2f", twice, s.EpochCount, s.Cost, honest.EpochCount, honest.Cost)
			}
		}
	}
}
