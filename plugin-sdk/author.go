package pluginsdk

import (
	"context"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire"
)

// Whole returns the messages that keep reports true for, and with them those that must
// not be parted from them: protected messages stay, and a tool call stays with its
// result. The index is that in messages. An answer made of them breaks no rule on pairs.
func Whole(messages []core.Message, keep func(i int) bool) []core.Message {
	var out []core.Message
	for _, g := range core.Groups(messages) {
		for i := g.Start; i < g.End; i++ {
			if messages[i].Protected || keep(i) {
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
