package live

import (
	"context"
	"errors"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/wire"
)

// early is a share of the size at which a conversation is due. From there on, a chain that asks a language model
// begins to work.
const early = 0.85

// prepareEarly starts the preparation of the next epoch if the chain asks a language model.
func (x *exchange) prepareEarly(d epoch.Decision) {
	due := x.policy.Limit
	if x.policy.Threshold > 0 {
		due = min(due, x.policy.Threshold)
	}
	if float64(x.tokens) < early*float64(due) || d.Wait || x.tokens < x.claim.triedAt() || x.resolved.asksNot.Load() && !x.asksClient() {
		return
	}
	x.prepare(d, probe, false)
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
func (x *exchange) prepare(d epoch.Decision, to extent, overflow bool) {
	if x.asksClient() {
		x.postponed = &postponed{d: d, to: to, overflow: overflow}
		return
	}
	if x.claim.busy() { // checked first, because making a job is expensive
		return
	}
	j := x.job(d, overflow)
	x.prepareWith(j, func(ctx context.Context) (*prepared, error) { return x.runner.alongside(ctx, j, to) })
}

// prepareWith runs the condensation of a job in the background, and reports whether it started.
func (x *exchange) prepareWith(j *job, run func(context.Context) (*prepared, error)) bool {
	if x.claim.busy() || x.life.Err() != nil {
		return false
	}
	leave, ok := x.preparing.Try(x.payer(), max(int64(len(x.r.Body)), mostPrepared/mostPreparing))
	return ok && x.begin(j, leave, run)
}

// begin runs a condensation in the background, unless the lineage has one, and reports whether it started. leave is
// called when it has ended.
func (x *exchange) begin(j *job, leave func(), run func(context.Context) (*prepared, error)) bool {
	e, s, ended := x.claim.entry, x.claim.session, make(chan struct{})
	ctx, cancel := context.WithTimeout(x.life, backgroundDeadline)
	s.mu.Lock()
	if e.preparing != nil || e.prepared != nil || x.life.Err() != nil {
		s.mu.Unlock()
		cancel()
		leave()
		return false
	}
	e.preparing, e.abandon = ended, cancel
	s.mu.Unlock()
	x.background.Go(func() {
		defer leave()
		defer cancel()
		var p *prepared
		err := x.safely("preparation", func() (err error) {
			p, err = run(ctx)
			return err
		})
		abandoned := errors.Is(err, context.Canceled) && ctx.Err() != nil
		if err != nil && !j.named && !errors.Is(err, errNotDue) && !errors.Is(err, errNotEarly) && !abandoned {
			x.fault("preparation", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		close(ended)
		e.preparing, e.abandon, e.prepared = nil, nil, p
		if p == nil && !abandoned && !errors.Is(err, errNotEarly) {
			e.retry = x.policy.RetryAfter(j.tokens)
		}
		if p == nil && err != nil && j.order > 0 {
			e.failed = failure{j.order, reasonOf(err)}
		}
	})
	return true
}

// busy reports whether the next epoch is being prepared, or is ready.
func (c *claim) busy() bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.preparing != nil || c.prepared != nil
}

// awaitPrepared waits for a running preparation, for at most the time that a condensation may take, if a language
// model condenses (rather than writes an account). It cancels any other preparation: the request then condenses in a
// turn of its own, ahead of background work.
func (x *exchange) awaitPrepared(ctx context.Context) {
	x.claim.session.mu.Lock()
	ended, abandon := x.claim.preparing, x.claim.abandon
	x.claim.session.mu.Unlock()
	if ended == nil {
		return
	}
	if !x.resolved.asks.Load() || x.s.Account != AccountOff {
		abandon()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, x.s.Deadline)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// takePrepared returns the condensation prepared for the beginning of these messages; nil if there is none. A repeated
// request must be sent the same bytes as before, so it leaves the condensation to the next request, unless an epoch is
// forced.
func (c *claim) takePrepared(rolling []wire.Hash, forced bool) *prepared {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	p := c.prepared
	if p != nil && !forced && p.basis.Fits(c.state, rolling) && !p.basis.Before(rolling) {
		return nil
	}
	c.prepared = nil
	if p == nil || !p.basis.Fits(c.state, rolling) {
		return nil
	}
	return p
}
