package live

import (
	"github.com/condensehq/condense/internal/live/stats"
)

// Stats returns a snapshot of the statistics.
func (g *Gateway) Stats() stats.Stats {
	s := g.stats.Snapshot()
	s.AsOf, s.Observe, s.Windows = g.current.Load().Now(), g.current.Load().Observe, g.windows.known()
	if pending := g.host.ReloadErr(); pending != nil {
		s.Pending = pending.Error()
	}
	return s
}
