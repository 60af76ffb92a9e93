//go:build unix

package retention_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
)

// processor returns the time that this process has had of it. Unlike the clock's, it does
// not grow while others are busy.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano())
}

// What is read costs time in proportion to its length, whatever it looks like: sixteen times
// the text would take 256 times as long if the cost were quadratic. The test is not
// parallel, so that the time is its own.
func TestLinear(t *testing.T) {
	s := cutAt(t, before, []core.Message{agent(core.Text("now decodeHeader returns"))}, nil)
	for name, unit := range map[string]string{
		"no space":       "x",
		"spaces":         " ",
		"brackets":       "[",
		"braces, quotes": `{"`,
		"escapes":        `\n`,
		"quotes":         `'a b`,
		"slashes":        "a/",
		"dots":           "a.",
		"hyphens":        "-a",
		"capitals":       "A ",
		"short lines":    "{}\n",
		"sentences":      "It is. ",
		"invalid":        "\xff",
	} {
		took := func(n int) time.Duration {
			view := []core.Message{user(strings.Repeat(unit, n/len(unit)) + "}")}
			best := time.Hour
			for range 2 {
				start := processor(t)
				s.Score(view)
				best = min(best, processor(t)-start)
			}
			return best
		}
		const small = 1 << 16
		if a, b := took(small), took(16*small); b > 64*max(a, time.Millisecond) && b > 200*time.Millisecond {
			t.Errorf("%s: %v for %d bytes, %v for 16 times that", name, a, small, b)
		}
	}
}
