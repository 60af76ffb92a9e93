// Package testkit has helpers for tests of several packages: tests that -short skips, recorded sessions, and bounds
// that hold on a busy machine. It is for tests only.
package testkit

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Process skips the test under go test -short: it starts a process, or builds a program.
func Process(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("starts a process: not with -short")
	}
}

// Slow skips the test under go test -short: it takes more than about a second, or waits.
func Slow(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("takes long: not with -short")
	}
}

// Night reports whether a test is to try every pair of what it otherwise tries each of: `make night` does, for hours.
func Night() bool { return os.Getenv("CONDENSE_NIGHT") != "" }

// Patience is how long a test may wait for an event whose time does not matter: until shortly before
// the deadline of the test binary, and at most ten minutes. So a test that waits in vain fails with
// its own message, not with a dump of all goroutines.
func Patience(tb testing.TB) time.Duration {
	tb.Helper()
	const most, spare = 10 * time.Minute, 15 * time.Second
	if d, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := d.Deadline(); ok {
			return min(most, max(time.Until(end)-spare, spare))
		}
	}
	return most
}

// Linear fails the test if the cost of work grows faster than its size. Prepare returns the work of
// size n; preparing is not measured. Eight times the size costs about eight times as much if the cost
// is linear and 64 times as much if it is quadratic; the bound is 24 times. Linear measures the
// processor time of the thread, where the system reports it, without goroutines that the work starts.
// Other programs still slow a thread down (caches, shared cores, garbage collection), so work that
// exceeds the bound is measured again at twice and four times the size: quadratic work exceeds it
// each time.
func Linear(tb testing.TB, n int, prepare func(n int) (work func())) {
	tb.Helper()
	const factor, bound, rounds, tries = 8, 3 * 8, 3, 4
	var a, b time.Duration
	for range rounds {
		small, large := prepare(max(1, n/factor)), prepare(n)
		a, b = math.MaxInt64, math.MaxInt64
		for range tries { // the least of several: a garbage collection may fall into one
			a, b = min(a, processor(small)), min(b, processor(large))
			if b <= bound*max(a, time.Millisecond) {
				return
			}
		}
		n *= 2
	}
	n /= 2
	tb.Errorf("%v of processor time for size %d, %v for %d times the size: more than in proportion", a, max(1, n/factor), b, factor)
}

// Covered is for the TestMain of a package whose tests start their own binary. A binary that is built to measure
// coverage (go test -cover) prints a warning on standard error unless GOCOVERDIR is set. Covered sets it to the
// folder of the binary, which go test removes.
func Covered() {
	if testing.CoverMode() == "" || os.Getenv("GOCOVERDIR") != "" {
		return
	}
	program, err := os.Executable()
	if err == nil {
		err = os.Setenv("GOCOVERDIR", filepath.Dir(program))
	}
	if err != nil {
		panic(err)
	}
}
