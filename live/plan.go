package live

import (
	"context"
	"errors"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
)

// A plan is the view to send for a request, with the changes to store.
type plan struct {
	*known
	view
	handles  bool // the view may have handles
	must     bool // without the epoch, the vendor refuses the request
	repairs  bool // the vendor has refused the view that was sent before
	durable  bool // the view has new content, so the state must be stored before it is sent
	ingested int
	kept     *store.Kept // originals to store with the state; nil for none

	epoch   *stats.Epoch
	next    *lineage.State // the state after the epoch
	made    *job.Prepared  // the prepared condensation that next is made of
	refused *job.Prepared  // one that must not be made the view again
	undone  bool           // next undoes the last epoch
	awaits  epoch.Wait     // for what an epoch waits that is due

	obeys     *session.Order // the user's order with its outcome, still to be stored; nil if there is none
	postponed *postponed     // preparation that starts after the answer; nil for none
}

// planned returns the plan to send the view of a state.
func (x *known) planned(s *lineage.State) *plan {
	return &plan{known: x, view: x.viewOf(s), handles: x.handles, durable: x.calls}
}

// plan decides what to send for the request.
func (in *incoming) plan(ctx context.Context) *plan {
	x := &known{incoming: *in}
	p := &plan{known: x}
	var err error
	if x.weight == nil {
		err = x.safely("request", func() error {
			decided, err := x.read(ctx)
			if decided != nil {
				p = decided
			}
			return err
		})
		if err != nil {
			x.fault("request", err)
			p = x.frozen()
		}
	}
	if x.claim == nil && x.seen == nil && x.weight == nil { // every request's cost is counted
		x.weight = &payload.Weight{}
		if x.r == nil || x.unread {
			x.weight = payload.Weigh(x.received)
		}
		if !x.unread && (err == nil || x.r != nil) { // what cannot be read is not read again
			x.weight.Counted = count.Tokens(x.received)
		}
	}
	if x.r == nil {
		x.r = &wire.Request{API: wire.API(x.t.api)}
	}
	if p.epoch == nil { // otherwise the epoch has called it
		p.watch()
	}
	p.postpone()
	if x.claim != nil {
		x.claim.Release()
	}
	return p
}

// frozen returns the plan to send the view that the vendor saw last or, without one, the client's own messages.
func (x *known) frozen() *plan {
	p := &plan{known: x, handles: x.handles}
	if x.claim == nil || x.claim.State == nil {
		return p
	}
	_ = x.safely("view", func() error {
		if x.claim.Frozen() {
			p.view = x.viewOf(x.claim.State)
		}
		return nil
	})
	return p
}

// decide plans the view of a turn, and begins an epoch if one is due. If another gateway has stored a decision about
// the lineage in the meantime, it starts over from the stored state.
func (x *known) decide(ctx context.Context) (*plan, error) {
	for lost := 0; ; lost++ {
		if !x.claim.Mine { // another request of the lineage decides
			return x.planned(x.claim.State), nil
		}
		mark := x.claim.Mark()
		p, err := x.conclude(ctx, x.trial(ctx, mark), mark, lost < session.MostLost)
		if !errors.Is(err, store.ErrConflict) {
			return p, err
		}
		x.claim.Release()
		if err := x.claim.Session.Load(ctx, x.store); err != nil {
			x.fault("store", err)
		}
		if err := x.take(ctx, x.claim.Session); err != nil {
			return nil, err
		}
	}
}

// trial plans a turn: new results are shortened, and an epoch begins if one is due.
func (x *known) trial(ctx context.Context, mark session.Mark) *plan {
	p := &plan{known: x, handles: x.handles, durable: x.calls}
	if err := x.safely("ingest", func() error { return p.ingest(ctx) }); err != nil {
		x.fault("ingest", err)
		x.claim.Back(mark)
		p.ingested, p.kept = 0, nil
	}
	p.view = x.viewOf(x.claim.State)
	if err := x.safely("epoch", func() error { return p.epochIfDue(ctx, false) }); err != nil {
		x.fault("epoch", err)
		p.failed(ctx, p.r.Model, err, p.tokens > p.policy.Limit)
	}
	return p
}

// withoutHandles plans the turn again, with views that need no originals.
func (x *plan) withoutHandles(ctx context.Context, mark session.Mark) *plan {
	x.stats.Fault("recall_full")
	x.claim.Back(mark)
	p := &plan{
		known: x.known, view: x.viewOf(x.claim.State), must: x.must, repairs: x.repairs, durable: x.durable, refused: x.made,
		postponed: x.postponed,
	}
	overflow := x.epoch != nil && x.epoch.Reason == string(epoch.Overflow)
	if err := x.safely("epoch", func() error { return p.epochIfDue(ctx, overflow) }); err != nil {
		x.fault("epoch", err)
	}
	return p
}

// conclude stores a plan for the lineage as it was at mark, and returns the plan that can be sent. The error wraps
// [store.ErrConflict] if the request should be decided again, which happens only if again is set.
func (x *known) conclude(ctx context.Context, p *plan, mark session.Mark, again bool) (*plan, error) {
	err := p.commit(ctx)
	if p.crowded(err) && p.handles {
		p = p.withoutHandles(ctx, mark)
		err = p.commit(ctx)
	}
	forced := p.repairs || p.epoch != nil && p.must
	switch {
	case err == nil:
		return p, nil
	case forced && (errors.Is(err, store.ErrAway) || session.Unstored(err) && x.claim.Unread):
		x.fault("commit", err)
		return p.guess(mark), nil
	case forced && errors.Is(err, store.ErrFile) && p.kept == nil:
		return p, p.hold(ctx, err)
	}
	x.claim.Back(mark)
	if errors.Is(err, store.ErrConflict) && again {
		return nil, err
	}
	// If r.Thinking was only assumed, the change waits until the turn is over, and no fault is logged.
	if f := (*wire.RuleError)(nil); !x.guessed || !errors.As(err, &f) {
		x.fault("commit", err)
		if p.epoch != nil {
			p.failed(ctx, p.r.Model, err, p.made != nil && p.next != nil && p.next.Epoch.Before > p.policy.Limit)
		}
	}
	return p.unchanged(ctx, err)
}

// unchanged returns the plan to send the view before a change that could not be stored.
func (x *plan) unchanged(ctx context.Context, why error) (*plan, error) {
	c := x.claim
	p := &plan{known: x.known, view: x.viewOf(c.State), must: x.must, repairs: x.repairs, postponed: x.postponed}
	if x.check(&p.view) != nil {
		p.messages, p.altered = nil, false
	}
	if errors.Is(why, store.ErrAway) && c.Entry.State == nil && session.Answered(x.r) {
		return p, nil // the store, which cannot be reached, may have a state
	}
	c.State.Sent(x.r, x.rolling, x.start)
	c.Late(why)
	p.describe()
	return p, c.Save(ctx, x.store, !session.Unstored(why) && !errors.Is(why, store.ErrConflict) && c.Failing() != nil, x.start)
}

// crowded reports whether a plan could not be stored because the store is full, and could be without originals.
func (x *plan) crowded(err error) bool {
	forced := x.repairs || x.epoch != nil && x.must
	if forced && session.Unstored(err) && x.claim.Unread {
		return false
	}
	return errors.Is(err, store.ErrFull) || forced && errors.Is(err, store.ErrFile) && x.kept != nil
}

// commit stores the state before the view is sent. New content in the view must be on disk first. The end of a view
// that differs from the client's messages must be stored too, because the next request may come to another gateway.
func (x *plan) commit(ctx context.Context) error {
	c := x.claim
	c.Keep = x.kept
	if x.next != nil { // the old record stays, so that a client that goes back to before the epoch finds it
		c.Begin(x.next, !x.undone)
	}
	if err := x.check(&x.view); err != nil {
		return err
	}
	if c.Unread {
		if err := c.Session.Failure(); err != nil {
			return err
		}
	}
	c.State.Sent(x.r, x.rolling, x.start)
	x.describe()
	x.durable = x.durable || x.ingested > 0 || x.next != nil || !x.s.Observe &&
		(c.State.Epoch != nil || len(c.State.Ingest) > 0 || c.State.Tool)
	if err := c.Save(ctx, x.store, x.durable, x.start); err != nil {
		return err
	}
	c.Begun()
	if x.epoch != nil {
		x.announce()
	}
	if x.undone {
		x.stats.Add(func(s *stats.Stats) { s.Undone++ })
	}
	x.reportOrder(ctx)
	return nil
}

// guess returns the plan to send the view although it cannot be stored, because the vendor refuses every other one. The
// state is not remembered: the next request builds the same view again from the prepared condensation, and stores it if
// it can.
func (x *plan) guess(mark session.Mark) *plan {
	x.claim.Back(mark)
	x.claim.Guess(x.made, x.rolling[len(x.rolling)-1])
	return &plan{
		known: x.known, view: x.view, handles: x.handles, must: x.must, repairs: x.repairs, durable: x.durable, made: x.made,
		postponed: x.postponed,
	}
}

// hold keeps a change that the vendor forced, such as an epoch after an overflow, in memory although the store cannot
// be written: recall does not work for it, and it is lost with the process unless a later request can store it.
func (x *plan) hold(ctx context.Context, why error) error {
	c := x.claim
	x.fault("commit", why)
	c.Late(why)
	if err := c.Save(ctx, x.store, false, x.start); err != nil {
		return err
	}
	if x.epoch != nil {
		c.Begun()
		x.announce()
	}
	return nil
}
