package live

import (
	"context"
	"errors"
	"time"

	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
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
}

// early is the share of the size at which a conversation is due from which on a chain that asks a
// language model begins to work.
const early = 0.85

// prepareEarly starts the preparation of the next epoch if the chain asks a language model.
func (x *exchange) prepareEarly(ctx context.Context, d lineage.Decision) error {
	due := x.limit
	if x.threshold > 0 {
		due = min(due, x.threshold)
	}
	if float64(x.tokens) < early*float64(due) || d.Wait || x.tokens < x.claim.triedAt() || x.resolved.asksNot.Load() || x.claim.busy() {
		return nil
	}
	if len(x.preparing) == cap(x.preparing) {
		return nil // the next request tries again
	}
	j := x.job(d, false)
	if !x.resolved.asks.Load() {
		select {
		case x.epochs <- struct{}{}:
		default:
			return nil
		}
		_, err := j.attempt(ctx, x.host, probe, len(x.r.Messages))
		<-x.epochs
		if !errors.Is(err, errAsks) {
			x.resolved.asksNot.Store(err == nil)
			return err
		}
		x.resolved.asks.Store(true)
	}
	if x.mayAsk() {
		x.prepare(j) //nolint:contextcheck // it outlives the request
	}
	return nil
}

// mostPreparing is how many condensations for later requests run at a time. They wait for language models most of the time, but each holds its
// conversation several times.
const mostPreparing = 16

// prepare runs a job next to the requests, unless too many others run. A later request of the lineage uses the result, if what
// it condensed is still the beginning.
func (x *exchange) prepare(j *job) {
	c := x.claim
	if c.busy() || x.life.Err() != nil {
		return
	}
	select {
	case x.preparing <- struct{}{}:
	default:
		return
	}
	e, s, ended := c.entry, c.session, make(chan struct{})
	s.mu.Lock()
	e.preparing = ended
	s.mu.Unlock()
	x.background.Go(func() {
		defer func() { <-x.preparing }()
		ctx, cancel := context.WithTimeout(x.life, backgroundDeadline)
		defer cancel()
		var p *prepared
		err := x.safely("preparation", func() (err error) {
			p, err = j.run(ctx, x.host, whole)
			return err
		})
		if err != nil && !errors.Is(err, errNotDue) {
			x.fault("preparation", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		close(ended)
		e.preparing, e.prepared = nil, p
		if p == nil {
			e.retry = j.tokens + x.minNew()
		}
	})
}

// busy reports whether the next epoch is being prepared, or is ready.
func (c *claim) busy() bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.preparing != nil || c.prepared != nil
}

// awaitPrepared waits for what is being prepared, as long as a condensation may take.
func (x *exchange) awaitPrepared(ctx context.Context) {
	x.claim.session.mu.Lock()
	ended := x.claim.preparing
	x.claim.session.mu.Unlock()
	if ended == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, x.s.Deadline)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// takePrepared returns what was prepared for the beginning of these messages; nil if nothing was.
func (c *claim) takePrepared(rolling []wire.Hash) *prepared {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	p := c.prepared
	c.prepared = nil
	if p == nil || !p.basis.Fits(c.state, rolling) {
		return nil
	}
	return p
}
