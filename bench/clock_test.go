package bench_test

import (
	"testing"
	"time"
)

// A clock reports the fastest of the calls it timed beside the average that every
// benchmark reports. On a machine that does other work too, the average says how busy
// the machine was and the fastest call says how long the work takes.
type clock struct {
	began, least time.Duration
	start        time.Time
}

func newClock() *clock { return &clock{start: time.Now()} }

func (c *clock) begin() { c.began = time.Since(c.start) }

func (c *clock) end() {
	if d := time.Since(c.start) - c.began; c.least == 0 || d < c.least {
		c.least = d
	}
}

// report adds the metric min-ns/op, for calls of n operations each.
func (c *clock) report(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(float64(c.least.Nanoseconds())/float64(n), "min-ns/op")
}
