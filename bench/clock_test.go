package bench_test

import (
	"testing"
	"time"
)

// A clock measures the fastest call and the processor time, including that of the garbage collector. On a
// busy machine these say how long the work takes, while the average of a benchmark depends on the load.
type clock struct {
	zero         time.Time
	began, least time.Duration
	cpuBegan     time.Duration
	cpu          time.Duration
	calls        int
}

func newClock() *clock { return &clock{zero: time.Now()} }

func (c *clock) begin() {
	c.cpuBegan = cpuTime()
	c.began = time.Since(c.zero)
}

func (c *clock) end() {
	if d := time.Since(c.zero) - c.began; c.calls == 0 || d < c.least {
		c.least = d
	}
	c.cpu += cpuTime() - c.cpuBegan
	c.calls++
}

// report adds the metrics for calls of n operations each.
func (c *clock) report(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(float64(c.least.Nanoseconds())/float64(n), "min-ns/op")
	if c.cpu > 0 && c.calls > 0 {
		b.ReportMetric(float64(c.cpu.Nanoseconds())/float64(c.calls*n), "cpu-ns/op")
	}
}
