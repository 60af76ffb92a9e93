package live

import (
	"cmp"
	"context"
	"errors"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/telemetry"
	"github.com/condensehq/condense/internal/live/upstream"
)

// A maker is the provider that made a view, and the reason if another one should have made it.
type maker struct {
	provider, outcome string
	setback           string // the first failure of a provider
	cause             string // empty unless the provider stood in for another one
}

// makerOf returns the provider that condensed, according to a report.
func makerOf(r *condense.Report) maker {
	var m maker
	for i := range r.Attempts {
		a := &r.Attempts[i]
		switch {
		case a.Err != nil:
			m.setback = cmp.Or(m.setback, a.Provider+" "+string(a.Outcome)+": "+stats.Shown(a.Reason))
		case a.Outcome == core.OutcomeApplied, a.Outcome == core.OutcomeInsufficient:
			m.provider, m.outcome = a.Provider, string(a.Outcome)
			if m.cause = m.setback; m.cause == "" && i > 0 && a.Provider == condense.Truncation {
				last := &r.Attempts[i-1]
				m.cause = last.Provider + " " + string(last.Outcome) + ": " + stats.Shown(last.Reason)
			}
		}
	}
	return m
}

// tries returns a function that counts the attempts in a report, and logs why one failed. It may be called after x has
// ended.
func (x *exchange) tries() func(*condense.Report) {
	g, mode := x.Gateway, cmp.Or(x.mode, x.profile)
	return func(r *condense.Report) {
		for i := range r.Attempts {
			a := &r.Attempts[i]
			needed := a.Outcome != core.OutcomeSkipped || a.Err != nil
			if !needed || errors.Is(a.Err, context.Canceled) { // the client has gone
				continue
			}
			g.attempted(stats.Attempt{Provider: a.Provider, Outcome: string(a.Outcome), Mode: mode, Reason: stats.Shown(a.Reason)})
		}
	}
}

// tried counts the attempts of a job's providers, and records the reason if its chain failed.
func (j *job) tried(r *condense.Report, err error) {
	if r != nil && j.tries != nil {
		j.tries(r)
	}
	switch {
	case r != nil && r.Acted:
		return
	case r != nil && makerOf(r).setback != "":
		j.instead, j.named = makerOf(r).setback, j.tries != nil
	case err != nil:
		j.instead = stats.Shown(err.Error())
	default:
		j.instead = stats.Shown(r.Reason)
	}
	j.asker = ""
}

// asks records the provider that would ask a language model.
func (j *job) asks(asked []condense.Estimate, err error) {
	if err != nil {
		j.asker, j.instead = "", stats.Shown(err.Error())
		return
	}
	j.asker = asked[0].Provider
	j.instead = j.asker + " " + stats.Replaced + ": it asks a language model, and nothing was prepared"
}

// replaced counts that the built-in chain stands in for the chain of the job.
func (x *exchange) replaced(j *job) {
	if j.asker != "" {
		x.attempted(stats.Attempt{Provider: j.asker, Outcome: stats.Replaced, Mode: cmp.Or(x.mode, x.profile), Reason: "it asks a language model, and nothing was prepared: the built-in chain condensed in its place"})
	}
}

// attempted counts an attempt. A failure is logged once per cause.
func (g *Gateway) attempted(a stats.Attempt) {
	s := g.current.Load()
	a.Count, a.Last = 1, s.Now()
	g.measure(&telemetry.Attempts, 1, telemetry.CondenserKey.String(a.Provider), telemetry.OutcomeKey.String(a.Outcome), telemetry.ModeKey.String(a.Mode))
	g.stats.Add(func(s *stats.Stats) { s.Attempts = stats.AddAttempt(s.Attempts, &a) })
	about := []any{"provider", a.Provider, "outcome", a.Outcome, "mode", a.Mode, "reason", a.Reason}
	switch {
	case !a.Failed():
		s.Logger.DebugContext(g.life, "a provider was asked to condense", about...)
	case g.causes.First(a.Provider+" "+a.Outcome+" "+a.Mode, a.Reason, a.Last):
		s.Logger.WarnContext(g.life, "a provider did not condense", about...)
	default:
		s.Logger.DebugContext(g.life, "a provider did not condense", about...)
	}
}

// unreached counts a request that could not be sent to its upstream.
func (g *Gateway) unreached(s *settings, u *upstream.Upstream, why string) {
	n := stats.Unreachable{Upstream: u.Name, Address: u.Base.Scheme + "://" + u.Base.Host, Count: 1, Reason: stats.Shown(why), Last: s.Now()}
	g.stats.Add(func(s *stats.Stats) { s.Unreachable = stats.AddUnreachable(s.Unreachable, &n) })
	if g.causes.First("upstream "+n.Upstream+n.Address, n.Reason, n.Last) {
		s.Logger.Warn("an upstream cannot be reached", "upstream", n.Upstream, "address", n.Address, "err", n.Reason)
	}
}
