package live

import (
	"context"
	"errors"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/session"
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
	if float64(x.tokens) < early*float64(due) || d.Wait || x.tokens < x.claim.TriedAt() || x.resolved.AsksNot.Load() && !x.asksClient() {
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
	safe := func(ctx context.Context) (p *job.Prepared, err error) {
		err = x.safely("preparation", func() (err error) {
			p, err = run(ctx)
			return err
		})
		abandoned := errors.Is(err, context.Canceled) && ctx.Err() != nil
		if err != nil && !j.Named && !errors.Is(err, job.ErrNotDue) && !errors.Is(err, job.ErrNotEarly) && !abandoned {
			x.fault("preparation", err)
		}
		return p, err
	}
	return x.claim.Prepare(x.life, &x.background, session.Preparation{Run: safe, Leave: leave, Retry: x.policy.RetryAfter(j.Tokens), Order: j.Order})
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
