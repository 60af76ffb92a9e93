package live

import (
	"cmp"
	"context"
	"errors"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/stats"
)

func (x *plan) job(d epoch.Decision, overflow bool) *job.Job {
	j := &job.Job{
		API: x.r.API, Volatile: x.volatile, Reminders: x.agent.Reminders, Body: x.r.With(x.messages), Tokens: x.tokens, Target: d.Target,
		Turn:  condense.Turn{Profile: x.profile, Mode: x.mode, Window: x.policy.Window, MaxOutput: x.output, NoRecall: !x.handles, API: x.holds()},
		Basis: x.claim.State.Basis(x.rolling), Pins: x.protected(), Journal: x.s.Reports.Watch != nil, Tries: x.tries(),
		Owner: job.Owner{Payer: x.payer(), Mode: cmp.Or(x.mode, x.profile), Deadline: x.s.Bounds.Deadline, Chain: &x.resolved.Learned, MayAsk: x.mayAsk},
	}
	if e := x.claim.State.Epoch; e != nil {
		j.Block = len(x.messages) - (len(x.r.Messages) - min(e.Cut, len(x.r.Messages)))
	}
	if j.Turn.Trigger = d.Reason.Trigger(); overflow || x.claim.Overflowed() {
		j.Turn.Trigger = core.TriggerOverflow
	} else {
		j.Forced = d.Reason == epoch.Forced
	}
	if j.Target == 0 { // the caller asked for a condensation without a target
		j.Target = epoch.Target(x.facts(false), x.policy)
	}
	return j
}

// payer identifies who pays for a waiting request: the tenant, or without tokens the credential.
func (x *known) payer() string { return cmp.Or(x.t.who.Tenant, x.key.Tenant) }

// tries returns a function that counts the attempts in a report, and logs why one failed. It may be called after x has
// ended.
func (x *known) tries() func(*condense.Report) {
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
