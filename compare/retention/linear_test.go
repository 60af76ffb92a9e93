package retention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
)

// What is read costs time in proportion to its length, whatever it looks like. Sixteen
// times the text would take 256 times as long if the cost were quadratic; a busy machine
// makes 16 of it 60 at worst.
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
			for range 4 {
				start := time.Now()
				s.Score(view)
				best = min(best, time.Since(start))
			}
			return best
		}
		const small = 1 << 14
		if a, b := took(small), took(16*small); b > 100*a && b > 100*time.Millisecond {
			t.Errorf("%s: %v for %d bytes, %v for 16 times that", name, a, small, b)
		}
	}
}
