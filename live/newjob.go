package live

import (
	"cmp"
	"context"
	"errors"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/stats"
)

func (x *exchange) job(d epoch.Decision, overflow bool) *job {
	j := &job{
		api: x.r.API, volatile: x.volatile, body: x.r.With(x.view), tokens: x.tokens, target: d.Target,
		turn:  condense.Turn{Profile: x.profile, Mode: x.mode, Window: x.policy.Window, MaxOutput: x.output, NoRecall: !x.recalls, API: x.holds()},
		basis: x.claim.state.Basis(x.rolling), pins: x.protected(), journal: x.s.Watch != nil, tries: x.tries(),
		owner: jobOwner{payer: x.payer(), mode: cmp.Or(x.mode, x.profile), deadline: x.s.Deadline, chain: &x.resolved.chain, mayAsk: x.mayAsk},
	}
	if e := x.claim.state.Epoch; e != nil {
		j.block = len(x.view) - (len(x.r.Messages) - min(e.Cut, len(x.r.Messages)))
	}
	if j.turn.Trigger = d.Reason.Trigger(); overflow || x.claim.overflowed() {
		j.turn.Trigger = core.TriggerOverflow
	} else {
		j.forced = d.Reason == epoch.Forced
	}
	if j.target == 0 { // the caller asked for a condensation without a target
		j.target = epoch.Target(x.facts(false), x.policy)
	}
	return j
}

// payer identifies who pays for a waiting request: the tenant, or without tokens the credential.
func (x *exchange) payer() string { return cmp.Or(x.t.who.Tenant, x.key.Tenant) }

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
