package score_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
)

// What is read costs time in proportion to its length, whatever it looks like.
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
		t.Run(name, func(t *testing.T) {
			testkit.Linear(t, 1<<18, func(n int) func() {
				view := []core.Message{user(strings.Repeat(unit, n/len(unit)) + "}")}
				return func() { s.Score(view) }
			})
		})
	}
}
