package live

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/live/internal/telemetry"
	"github.com/condensehq/condense/live/internal/upstream"
)

// attempted counts an attempt in a mode. A failure is logged once per cause.
func (g *Gateway) attempted(provider string, outcome core.Outcome, reason, mode string) {
	s := g.current.Load()
	a := Attempt{Provider: provider, Outcome: string(outcome), Mode: mode, Count: 1, Reason: secret.Safe(reason), Last: s.Now()}
	g.measure(&telemetry.Attempts, 1, telemetry.CondenserKey.String(a.Provider), telemetry.OutcomeKey.String(a.Outcome),
		telemetry.ModeKey.String(a.Mode))
	g.stats.Add(func(s *Stats) { s.Attempts = addAttempt(s.Attempts, &a) })
	about := []any{"provider", a.Provider, "outcome", a.Outcome, "mode", a.Mode, "reason", a.Reason}
	switch {
	case !a.Failed():
		s.Reports.Logger.DebugContext(g.life, "a provider was asked to condense", about...)
	case g.causes.First(a.Provider+" "+a.Outcome+" "+a.Mode, a.Reason, a.Last):
		s.Reports.Logger.WarnContext(g.life, "a provider did not condense", about...)
	default:
		s.Reports.Logger.DebugContext(g.life, "a provider did not condense", about...)
	}
}

// unreached counts a request that could not be sent to its upstream.
func (g *Gateway) unreached(s *settings, u *upstream.Upstream, why string) {
	n := Unreachable{Upstream: u.Name, Address: u.Base.Scheme + "://" + u.Base.Host, Count: 1, Reason: secret.Safe(why), Last: s.Now()}
	g.stats.Add(func(s *Stats) { s.Unreachable = addUnreachable(s.Unreachable, &n) })
	if g.causes.First("upstream "+n.Upstream+n.Address, n.Reason, n.Last) {
		s.Reports.Logger.Warn("an upstream cannot be reached", "upstream", n.Upstream, "address", n.Address, "err", n.Reason)
	}
}
