package pluginsdk

import (
	"context"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire"
)

// Whole returns the messages that keep reports true for, and with them those that must
// stay: protected messages, those of the system, calls whose results are still to come, and whatever calls a
// tool that a message which stays has the result of, or the other way round. The index is
// that in messages. The answer breaks no rule of core's on protection, the system and tools.
func Whole(messages []core.Message, keep func(i int) bool) []core.Message {
	var out []core.Message
	pending := core.Pending(messages)
	for _, g := range core.Groups(messages) {
		for i := g.Start; i < g.End; i++ {
			_, waits := slices.BinarySearch(pending, i)
			if waits || messages[i].Protected || messages[i].Role == core.RoleSystem || keep(i) {
				out = append(out, messages[g.Start:g.End]...)
				break
			}
		}
	}
	return out
}

// CountEach counts every list of parts for itself. In a plugin it is one question to the
// host, where counting one after the other would be many: some 0.2 ms each.
func CountEach(c core.Counter, contents ...[]core.Part) []int {
	if c, ok := c.(interface{ CountEach(...[]core.Part) []int }); ok {
		return c.CountEach(contents...)
	}
	counts := make([]int, len(contents))
	for i, parts := range contents {
		counts[i] = c.Count(parts...)
	}
	return counts
}

// Progress tells whoever waits for the call of ctx how far it is: fraction goes from 0
// to 1 and is negative if unknown. It does nothing outside of a plugin.
func Progress(ctx context.Context, fraction float64, text string) {
	wire.SendProgress(ctx, fraction, text)
}
