package live

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/prefix"
)

// backgroundDeadline limits a condensation that no request waits for.
const backgroundDeadline = 10 * time.Minute

// A prepared view is the result of a condensation, and what it is of.
type prepared struct {
	basis   *lineage.Basis
	after   []wire.Message
	handles bool // it may have some
	passes  map[string]string
	journal []byte // of the condensed conversation; nil without a watcher
	maker   maker
	order   int // number of that which asked for it; 0 for none
}

// early is the share of the size at which a conversation is due from which on a chain that asks a
// language model begins to work.
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

// What is prepared at a time: so many bytes of requests, and so many of them. Each is held several times, and those that wait for a language
// model wait for most of the time.
const (
	mostPrepared  = 64 << 20
	mostPreparing = 16
)

// alongsideAtOnce is how many condensations of those run at a time: requests find the other processors free.
func alongsideAtOnce() int64 { return int64(max(1, runtime.GOMAXPROCS(0)/2)) }

// prepare condenses next to the requests, unless too much else is prepared: then the next request of the lineage tries again. A later request uses
// the result, if what it condensed is still the beginning. With probe as the extent it does so only if the chain asks a language model.
func (x *exchange) prepare(d epoch.Decision, to extent, overflow bool) {
	if x.asksClient() {
		x.postponed = &postponed{d: d, to: to, overflow: overflow}
		return
	}
	if x.claim.busy() { // before the work of a job
		return
	}
	j := x.job(d, overflow)
	x.prepareWith(j, func(ctx context.Context) (*prepared, error) { return x.alongside(ctx, j, to) })
}

// prepareWith runs the condensation of a job next to the requests, and reports whether it began.
func (x *exchange) prepareWith(j *job, run func(context.Context) (*prepared, error)) bool {
	if x.claim.busy() || x.life.Err() != nil {
		return false
	}
	leave, ok := x.preparing.try(x.payer(), max(int64(len(x.r.Body)), mostPrepared/mostPreparing))
	return ok && x.begin(j, leave, run)
}

// begin runs a condensation next to the requests, unless the lineage has one, and reports whether it began. Leave is called when it has ended.
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

// errNotEarly means that a chain asks no language model, so that nothing is prepared before it is due.
var errNotEarly = errors.New("not early")

// alongside condenses next to the requests. What needs a processor takes its turn; what asks a language model waits for that.
func (x *exchange) alongside(ctx context.Context, j *job, to extent) (*prepared, error) {
	inTurn := func(run func() (*prepared, error)) (*prepared, error) {
		leave, err := x.idle.enter(ctx, x.payer(), 1)
		if err != nil {
			return nil, err
		}
		defer leave()
		return run()
	}
	if j.client != nil {
		defer j.client.forget()
		if x.mayAsk() {
			return j.run(prefix.WithAsker(ctx, j.client.ask), x.host, whole)
		}
		if to == probe {
			return nil, errNotEarly
		}
	}
	if !x.resolved.asks.Load() {
		try := inline
		if to == probe {
			try = probe
		}
		p, err := inTurn(func() (*prepared, error) { return j.run(ctx, x.host, try) })
		switch {
		case errors.Is(err, errAsks):
			x.resolved.asks.Store(true)
		case to == probe && err == nil:
			x.resolved.asksNot.Store(true)
			return nil, errNotEarly
		default:
			return p, err
		}
	}
	switch {
	case x.mayAsk():
		return j.run(ctx, x.host, whole)
	case to == probe:
		return nil, errNotEarly
	}
	return inTurn(func() (*prepared, error) {
		limited, cancel := context.WithTimeout(ctx, backgroundDeadline)
		defer cancel()
		return x.runBuiltin(limited, j)
	})
}

// busy reports whether the next epoch is being prepared, or is ready.
func (c *claim) busy() bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.preparing != nil || c.prepared != nil
}

// awaitPrepared waits for what is being prepared, as long as a condensation may take, if a language model works at it and not at an account. Anything else it ends:
// the request has a turn of its own, before what no request waits for.
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

// takePrepared returns what was prepared for the beginning of these messages; nil if nothing was. A request that is sent again has the same bytes
// as before, unless an epoch is forced: it waits for the next one.
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
