package live

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/live/internal/payload"
)

// A plan is the view to send for a request, with the changes to store.
type plan struct {
	req   *request
	state *lineage.State // of the lineage, from which the view follows; only commit makes it the lease's. Nil without a lease
	view
	handles  bool // the view may have handles
	must     bool // without the epoch, the vendor refuses the request
	repairs  bool // the vendor has refused the view that was sent before
	durable  bool // the view has new content, so the state must be stored before it is sent
	ingested int
	kept     *store.Kept // originals to store with the state; nil for none

	epoch   *Epoch
	next    *lineage.State // the state after the epoch
	made    *job.Prepared  // the prepared condensation that next is made of
	refused *job.Prepared  // one that must not be made the view again
	undone  bool           // next undoes the last epoch
	awaits  epoch.Wait     // for what an epoch waits that is due

	obeys     *session.Order // the user's order with its outcome, still to be stored; nil if there is none
	postponed *postponed     // preparation that starts after the answer; nil for none
}

// planned returns the plan to send the view of a state.
func (r *request) planned(s *lineage.State) *plan {
	return &plan{req: r, state: s, view: r.viewOf(s), handles: r.handles, durable: r.calls}
}

// plan decides what to send for the request.
func (r *request) plan(ctx context.Context) *plan {
	p := &plan{req: r}
	var err error
	if r.in.weight == nil {
		err = r.g.guarded("request", func() error {
			decided, err := r.read(ctx)
			if decided != nil {
				p = decided
			}
			return err
		})
		if err != nil {
			p = r.frozen()
		}
	}
	if r.lease == nil && r.seen == nil && r.in.weight == nil { // every request's cost is counted
		r.in.weight = &payload.Weight{}
		if r.parsed == nil || r.in.unread {
			r.in.weight = payload.Weigh(r.in.received)
		}
		if !r.in.unread && (err == nil || r.parsed != nil) { // what cannot be read is not read again
			r.in.weight.Counted = count.Tokens(r.in.received)
		}
	}
	if r.parsed == nil {
		r.parsed = &wire.Request{API: wire.API(r.t.api)}
	}
	if p.epoch == nil { // otherwise the epoch has called it
		p.watch()
	}
	p.postpone()
	if r.lease != nil {
		r.lease.Release()
	}
	return p
}

// frozen returns the plan to send the view that the vendor saw last or, without one, the client's own messages.
func (r *request) frozen() *plan {
	p := &plan{req: r, handles: r.handles}
	if r.lease == nil || r.lease.State == nil {
		return p
	}
	p.state = r.lease.State
	_ = r.g.safely("view", func() error {
		if s := r.lease.Frozen(); s != nil {
			p.state, p.view = s, r.viewOf(s)
		}
		return nil
	})
	return p
}

// decide plans the view of a turn, and begins an epoch if one is due. If another gateway has stored a decision about
// the lineage in the meantime, it starts over from the stored state.
func (r *request) decide(ctx context.Context) (*plan, error) {
	for lost := 0; ; lost++ {
		if !r.lease.Mine { // another request of the lineage decides
			return r.planned(r.lease.State), nil
		}
		p, err := r.conclude(ctx, r.trial(ctx), lost < session.MostLost)
		if !errors.Is(err, store.ErrConflict) {
			return p, err
		}
		r.lease.Release()
		if err := r.lease.Session.Load(ctx, r.g.store); err != nil {
			r.g.fault("store", err)
		}
		if err := r.take(ctx, r.lease.Session); err != nil {
			return nil, err
		}
	}
}

// trial plans a turn: new results are shortened, and an epoch begins if one is due.
func (r *request) trial(ctx context.Context) *plan {
	p := &plan{req: r, state: r.current(), handles: r.handles, durable: r.calls}
	if r.g.guarded("ingest", func() error { return p.ingest(ctx) }) != nil {
		p.state, p.ingested, p.kept = r.current(), 0, nil
	}
	p.view = r.viewOf(p.state)
	if err := r.g.guarded("epoch", func() error { return p.epochIfDue(ctx, false) }); err != nil {
		p.req.failed(ctx, p.req.parsed.Model, err, p.tokens > p.req.limits.policy.Limit)
	}
	return p
}

// withoutHandles plans the turn again, with views that need no originals.
func (p *plan) withoutHandles(ctx context.Context) *plan {
	p.req.g.stats.Fault("recall_full")
	next := p.req.planned(p.req.current())
	next.handles, next.must, next.repairs, next.durable, next.refused, next.postponed = false, p.must, p.repairs, p.durable, p.made, p.postponed
	overflow := p.epoch != nil && p.epoch.Reason == string(epoch.Overflow)
	_ = p.req.g.guarded("epoch", func() error { return next.epochIfDue(ctx, overflow) })
	return next
}

// conclude stores a plan, and returns the plan that can be sent. The error wraps [store.ErrConflict] if the request should be decided
// again, which happens only if again is set.
func (r *request) conclude(ctx context.Context, p *plan, again bool) (*plan, error) {
	err := p.commit(ctx)
	if p.storeIsFull(err) && p.handles {
		p = p.withoutHandles(ctx)
		err = p.commit(ctx)
	}
	forced := p.repairs || p.epoch != nil && p.must
	switch {
	case err == nil:
		return p, nil
	case forced && (errors.Is(err, store.ErrUnavailable) || session.Unstored(err) && r.lease.Unread):
		r.g.fault("commit", err)
		return p.guess(), nil
	case forced && errors.Is(err, store.ErrFile) && p.kept == nil:
		return p, p.hold(ctx, err)
	}
	if errors.Is(err, store.ErrConflict) && again {
		return nil, err
	}
	// If r.Thinking was only assumed, the change waits until the turn is over, and no fault is logged.
	if f := (*wire.RuleError)(nil); !r.guessed || !errors.As(err, &f) {
		r.g.fault("commit", err)
		if p.epoch != nil {
			p.req.failed(ctx, p.req.parsed.Model, err, p.made != nil && p.next != nil && p.next.Epoch.Before > p.req.limits.policy.Limit)
		}
	}
	return p.unchanged(ctx, err)
}

// unchanged returns the plan to send the view before a change that could not be stored.
func (p *plan) unchanged(ctx context.Context, why error) (*plan, error) {
	c := p.req.lease
	next := p.req.planned(p.req.current())
	next.handles, next.must, next.repairs, next.durable, next.postponed = false, p.must, p.repairs, false, p.postponed
	if p.req.check(&next.view) != nil {
		next.messages, next.altered = nil, false
	}
	if errors.Is(why, store.ErrUnavailable) && c.Entry.State == nil && p.req.parsed.Answered() {
		return next, nil // the store, which cannot be reached, may have a state
	}
	c.Late(why)
	return next, next.write(ctx, !session.Unstored(why) && !errors.Is(why, store.ErrConflict) && c.Failing() != nil)
}

// storeIsFull reports whether a plan could not be stored because the store is full, and could be without originals.
func (p *plan) storeIsFull(err error) bool {
	forced := p.repairs || p.epoch != nil && p.must
	if forced && session.Unstored(err) && p.req.lease.Unread {
		return false
	}
	return errors.Is(err, store.ErrFull) || forced && errors.Is(err, store.ErrFile) && p.kept != nil
}

// commit stores the state before the view is sent, or leaves everything as it was. New content in the view must be on disk first. The
// end of a view that differs from the client's messages must be stored too, because the next request may come to another gateway.
func (p *plan) commit(ctx context.Context) error {
	c, s := p.req.lease, cmp.Or(p.next, p.state)
	if err := p.req.check(&p.view); err != nil {
		return err
	}
	if c.Unread {
		if err := c.Session.Failure(); err != nil {
			return err
		}
	}
	p.durable = p.durable || p.ingested > 0 || p.next != nil || !p.req.s.Observe && (s.Epoch != nil || len(s.Ingest) > 0 || s.Tool)
	lease, state := *c, p.state
	if err := p.write(ctx, p.durable); err != nil {
		*c, p.state = lease, state
		return err
	}
	p.begun()
	if p.undone {
		p.req.g.stats.Add(func(s *Stats) { s.Undone++ })
	}
	p.reportOrder(ctx)
	return nil
}

// write makes the plan's state, with the view as sent, the lease's and the session's, and if durable is set the store's. Nothing else
// changes the state of a conversation before the answer.
func (p *plan) write(ctx context.Context, durable bool) error {
	r, c := p.req, p.req.lease
	s := *cmp.Or(p.next, p.state)
	c.Keep = p.kept
	if p.next != nil { // the old record stays, so that a client that goes back to before the epoch finds it
		c.Begin(&s, !p.undone)
	}
	s.Sent(r.parsed, r.rolling, r.in.start)
	p.state = &s
	p.describe()
	return r.save(ctx, &s, durable, r.in.start)
}

// save makes a state the lease's, and if the store takes it the session's.
func (r *request) save(ctx context.Context, s *lineage.State, durable bool, now time.Time) error {
	r.lease.State = s
	return r.lease.Save(ctx, r.g.store, durable, now)
}

// current returns a copy of the state that the lease has.
func (r *request) current() *lineage.State {
	return new(*r.lease.State)
}

// begun lets other requests decide about the conversation after an epoch, and reports the epoch.
func (p *plan) begun() {
	p.req.lease.Begun()
	if p.epoch != nil {
		p.announce()
	}
}

// guess returns the plan to send the view although it cannot be stored, because the vendor refuses every other one. The
// state is not remembered: the next request builds the same view again from the prepared condensation, and stores it if
// it can.
func (p *plan) guess() *plan {
	p.req.lease.Guess(p.made, p.req.rolling[len(p.req.rolling)-1])
	return &plan{
		req: p.req, state: p.req.lease.State, view: p.view, handles: p.handles, must: p.must, repairs: p.repairs, durable: p.durable, made: p.made,
		postponed: p.postponed,
	}
}

// hold keeps a change that the vendor forced, such as an epoch after an overflow, in memory although the store cannot
// be written: recall does not work for it, and it is lost with the process unless a later request can store it.
func (p *plan) hold(ctx context.Context, why error) error {
	p.req.g.fault("commit", why)
	if err := p.write(ctx, false); err != nil {
		return err
	}
	p.req.lease.Late(why)
	p.begun()
	return nil
}
