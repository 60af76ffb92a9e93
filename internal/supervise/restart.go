package supervise

import (
	"math/rand/v2"
	"time"
)

// restarts remembers when a program failed and says when it may be started again. It is a
// function of the times it is told, and not safe for concurrent use.
type restarts struct {
	rule   Restart
	failed []time.Time // within the window, oldest first
	last   error       // why it failed last
	until  time.Time   // no start before
	broken bool        // until ends a cooldown
}

// failure records that the program failed at now, for the reason err.
func (r *restarts) failure(now time.Time, err error) {
	r.forget(now)
	r.failed = append(r.failed, now)
	r.last = err
	n := len(r.failed)
	if r.broken = n >= r.rule.Crashes; r.broken {
		r.until = now.Add(r.rule.Cooldown)
		// More than Crashes need not be remembered; a plugin that is asked for years must
		// not fill the memory.
		r.failed = r.failed[n-r.rule.Crashes:]
		return
	}
	wait := r.rule.Max
	if shift := n - 1; shift < 32 && r.rule.Min<<shift < r.rule.Max {
		wait = r.rule.Min << shift
	}
	// Jitter, so that several plugins that died of one cause do not come back at once.
	r.until = now.Add(wait - rand.N(wait/2+1)) //nolint:gosec // G404: nobody gains by guessing it
}

// wait returns how long after now the next start must wait.
func (r *restarts) wait(now time.Time) time.Duration { return max(0, r.until.Sub(now)) }

func (r *restarts) forget(now time.Time) {
	for len(r.failed) > 0 && now.Sub(r.failed[0]) > r.rule.Window {
		r.failed = r.failed[1:]
	}
}
