package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/wire"
)

// early is a share of the size at which a conversation is due. From there on, a chain that asks a language model
// begins to work.
const early = 0.85

// prepareEarly starts the preparation of the next epoch if the chain asks a language model.
func (x *plan) prepareEarly(d epoch.Decision) {
	due := x.policy.Limit
	if x.policy.Threshold > 0 {
		due = min(due, x.policy.Threshold)
	}
	if float64(x.tokens) < early*float64(due) || d.Wait == epoch.ForTurn || x.tokens < x.claim.TriedAt() || x.resolved.AsksNot.Load() && !x.asksClient() {
		return
	}
	x.prepare(d, job.Probe, false)
}

// Limits of all simultaneous preparations: the bytes of their requests, and their number. Each request is held in
// memory several times, and a chain with a language model mostly waits for the model.
const (
	mostPrepared  = 64 << 20
	mostPreparing = 16
)

// prepare condenses in the background, unless too many preparations are running: then the next request of the lineage
// tries again. A later request uses the result if its messages still begin with the condensed ones. With extent probe,
// it continues only if the chain asks a language model.
func (x *plan) prepare(d epoch.Decision, to job.Extent, overflow bool) {
	if x.asksClient() {
		x.postponed = &postponed{d: d, to: to, overflow: overflow}
		return
	}
	if x.claim.Busy() { // checked first, because making a job is expensive
		return
	}
	j := x.job(d, overflow)
	x.prepareWith(j, func(ctx context.Context) (*job.Prepared, error) { return x.runner.Alongside(ctx, j, to) })
}

// prepareWith runs the condensation of a job in the background, and reports whether it started.
func (x *known) prepareWith(j *job.Job, run func(context.Context) (*job.Prepared, error)) bool {
	if x.claim.Busy() || x.life.Err() != nil {
		return false
	}
	leave, ok := x.preparing.Try(x.payer(), max(int64(len(x.r.Body)), mostPrepared/mostPreparing))
	return ok && x.begin(j, leave, run)
}

// begin runs a condensation in the background, unless the lineage has one, and reports whether it started. leave is
// called when it has ended.
func (x *known) begin(j *job.Job, leave func(), run func(context.Context) (*job.Prepared, error)) bool {
	model := x.r.Model // x.r changes while the preparation runs
	safe := func(ctx context.Context) (p *job.Prepared, err error) {
		if len(j.Body) >= largeBody {
			defer payload.Burst()()
		}
		err = x.safely("preparation", func() (err error) {
			p, err = run(ctx)
			return err
		})
		abandoned := errors.Is(err, context.Canceled) && ctx.Err() != nil
		faulty := err != nil && !errors.Is(err, job.ErrNotDue) && !errors.Is(err, job.ErrNotEarly) && !abandoned
		if faulty && !j.Named {
			x.fault("preparation", err)
		}
		if why := j.Setback(); faulty || why != nil && err != nil && !abandoned {
			x.failed(ctx, model, cmp.Or(why, err), false)
		}
		return p, err
	}
	return x.claim.Prepare(x.life, &x.background, session.Preparation{
		Run: safe, Leave: leave, Retry: j.Retry, Order: j.Order,
	})
}

// awaitPrepared waits for a running preparation, for at most the time that a condensation may take, if a language
// model condenses (rather than writes an account). It cancels any other preparation: the request then condenses in a
// turn of its own, ahead of background work.
func (x *known) awaitPrepared(ctx context.Context) {
	ended, abandon := x.claim.UnderWay()
	if ended == nil {
		return
	}
	if !x.resolved.Asks.Load() || x.s.Account != AccountOff {
		abandon()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, x.s.Bounds.Deadline)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// job returns the condensation that a decision asks for.
func (x *plan) job(d epoch.Decision, overflow bool) *job.Job {
	numbers, block := x.numbers()
	j := &job.Job{
		API: x.r.API, Volatile: x.volatile, Reminders: x.agent.Reminders, Body: x.r.With(x.messages), Tokens: x.tokens, Target: d.Target,
		Turn: condense.Turn{
			Profile: x.profile, Mode: x.mode, Window: x.policy.Window, MaxOutput: x.output, NoRecall: !x.handles,
			API: x.holds(), Dir: x.s.folder(x.r), Numbers: numbers,
		},
		Block: block, Basis: x.claim.State.Basis(x.rolling), Pins: x.protected(), Protected: x.claim.Control().Protected(),
		Tries: x.tries(), Retry: x.policy.RetryAfter(x.tokens),
		Owner: job.Owner{
			Payer: x.payer(), Mode: cmp.Or(x.mode, x.profile), Deadline: x.s.Bounds.Deadline, Chain: &x.resolved.Learned,
			MayAsk: x.mayAsk,
		},
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

// numbers returns the number of the client's message that each message of the view is, shortened or not, 0 for none; and how many messages
// the last epoch made.
func (x *plan) numbers() (numbers []int, block int) {
	own, origin := x.unmarked(0), x.claim.State.Origin(x.r, x.rolling)
	places, answers := library.Places(x.r.API, own), map[string][]int{} // by the ID of a call or result
	for i := range own {
		for _, id := range idsOf(&x.r.Messages[i]) {
			answers[id] = append(answers[id], i)
		}
	}
	view, first := wire.Joined(x.r.API, x.messages)
	numbers = make([]int, len(view))
	at := 0
	for k, i := range first {
		from := origin[i]
		if from < 0 { // the epoch wrote it, or left it
			block = k + 1
			raw := wire.Unmark(x.messages[i])
			from = at + slices.IndexFunc(own[at:], func(o []byte) bool { return bytes.Equal(o, raw) })
			if one, err := wire.ParseMessages(x.r.API, x.messages[i:i+1]); err == nil {
				if ids := idsOf(&one[0]); len(ids) > 0 && len(answers[ids[0]]) == 1 && slices.Equal(ids, idsOf(&x.r.Messages[answers[ids[0]][0]])) {
					from = answers[ids[0]][0]
				}
			}
		}
		if alone := len(view[k]) == len(x.messages[i]); alone && from >= at {
			numbers[k], at = places[from], from+1
		}
	}
	return numbers, block
}

// idsOf returns the IDs of the calls and results of a message.
func idsOf(m *wire.Message) (ids []string) {
	for _, id := range m.Calls {
		ids = append(ids, "call "+id)
	}
	for _, id := range m.Results {
		ids = append(ids, "result "+id)
	}
	return ids
}

// payer identifies the payer of a waiting request: the tenant, or without tokens the credential.
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
