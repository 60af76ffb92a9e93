package live

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/store"
)

// epochIfDue begins an epoch if there is a reason for one. Only a request that the vendor would refuse waits for its condensation, and a caller of
// /v1/compress, who asks for it. Every other epoch is prepared next to the request, and begins with the next one.
func (x *exchange) epochIfDue(ctx context.Context, overflow bool) error {
	c := x.claim
	if !overflow {
		if undone, err := x.undoIfAsked(); undone || err != nil {
			return err
		}
	}
	d, o := x.wished(x.due(ctx, overflow), overflow)
	if d.Reason == epoch.None {
		if !x.paused() && !c.state.Held {
			x.prepareEarly(d) //nolint:contextcheck // it outlives the request
		}
		return nil
	}
	ctx, span := x.telemetry.tracer.Start(ctx, "condense", trace.WithAttributes(aReason.String(string(d.Reason)), aMode.String(cmp.Or(x.mode, x.profile))))
	defer span.End()
	forced := d.Reason == epoch.Forced
	x.must = overflow || c.overflowed() || x.tokens > x.policy.Window
	if x.away.now() && !x.must {
		return nil // what must be sent again could not be stored
	}
	if o != nil {
		if why := c.failure(o); why != "" {
			x.dropped(o, why)
			return nil
		}
		c.unordered(o)
	}
	began := time.Now()
	if x.recalls {
		n, err := x.store.KeptBytes(ctx)
		x.recalls = err == nil && n < x.s.Recall.MaxSize
	}
	if forced && !x.s.Observe {
		x.awaitPrepared(ctx)
	}
	p := c.takePrepared(x.rolling, forced)
	if p != nil && (p.handles && !x.recalls || p == x.made) { // what was sent of this one the vendor has refused
		p = nil
	}
	taken := p != nil
	if !taken && (x.s.Observe || !forced && !x.calls && o == nil) {
		x.prepare(d, whole, overflow) //nolint:contextcheck // it outlives the request
		return nil
	}
	x.shadowed = nil
	if x.s.Watch != nil && len(x.s.Shadow) > 0 {
		x.shadowed = x.job(d, overflow)
	}
	if p == nil && o != nil {
		j := x.orderedJob(d, o, overflow)
		x.shadowed = nil
		var err error
		switch p, err = x.obey(ctx, j, o); {
		case err == nil:
		case errors.Is(err, errAsks):
			x.waits(o, "a language model works at it")
		case ctx.Err() != nil:
			return err
		default:
			x.dropped(o, reasonOf(err))
		}
		if p == nil && !forced {
			return nil
		}
	}
	if p == nil {
		job := x.shadowed
		if job == nil {
			job = x.job(d, overflow)
		}
		var err error
		p, err = x.inTurn(ctx, job, forced)
		switch {
		case errors.Is(err, errAsks), errors.Is(err, errQueue):
			x.prepare(d, whole, overflow) //nolint:contextcheck // it outlives the request
			return nil
		case err != nil:
			c.tried(x.policy.RetryAfter(x.tokens))
			if errors.Is(err, errNotDue) {
				return nil
			}
			return err
		}
	}
	next, err := c.state.Freeze(x.r, x.rolling, lineage.Condensed{Basis: p.basis, After: p.after, Forced: forced, Decision: d}, x.start)
	if err != nil {
		c.tried(x.policy.RetryAfter(x.tokens))
		if errors.Is(err, lineage.ErrRound) { // until the turn is over
			if o != nil {
				x.waits(o, "the model thinks in this turn: it can be had when the turn is over")
			}
			return nil
		}
		if o != nil {
			x.dropped(o, reasonOf(err))
			return nil
		}
		return err
	}
	next.Held = false
	before := x.tokens
	ours := x.ours
	was := *x
	x.look(next)
	smaller := x.ours < ours
	if forced && taken && x.tokens > x.policy.Limit { // too much has come since it was made
		x.view, x.altered, x.ours, x.tokens, x.original = was.view, was.altered, was.ours, was.tokens, was.original
		return x.epochIfDue(ctx, overflow)
	}
	if smaller && x.recalls {
		var kept *store.Kept
		if kept, err = x.keep(ctx, next, was.view); kept != nil {
			x.kept = kept // with what is kept of the round
		}
	}
	if !smaller || err != nil {
		x.view, x.altered, x.ours, x.tokens, x.original = was.view, was.altered, was.ours, was.tokens, was.original
		if err != nil { // no handles, then
			x.fault("recall", err)
			x.recalls = false
			return x.epochIfDue(ctx, overflow)
		}
		c.tried(x.policy.RetryAfter(x.tokens))
		if o != nil {
			x.dropped(o, "the condensation is not smaller")
		}
		return nil
	}
	if o != nil && o.Number == p.order {
		x.obeyed(o, "")
		x.obeys.Before, x.obeys.After, x.obeys.Changed, next.Orders = before, x.tokens, true, o.Number
	}
	x.passes.add(p.passes)
	predicted := *next.Epoch // the chain did what it could: that is the prediction
	predicted.After, next.Epoch = x.tokens, &predicted
	x.next, x.journal, x.made = next, p.journal, p
	x.epoch = &Epoch{
		Time: x.start, Agent: x.agent.Name, Model: x.r.Model, Lineage: c.conversation, Reason: string(d.Reason),
		Before: before, After: x.tokens, Turns: d.Turns, Millis: float64(time.Since(began).Microseconds()) / 1000, Observed: x.s.Observe,
		Provider: p.maker.provider, Outcome: p.maker.outcome, Fallback: p.maker.cause != "", Cause: p.maker.cause,
	}
	if overflow {
		x.epoch.Reason = overflowed
	}
	return nil
}

// facts returns the numbers that the decision about an epoch rests on.
func (x *exchange) facts(overflow bool) epoch.Facts {
	f := x.claim.state.Facts(x.r, x.ours, x.start)
	f.Overflow, f.Retry = overflow || x.claim.overflowed(), x.claim.triedAt()
	f.Cache.Write, f.Cache.Read = x.caching.Prices(x.r.TTL)
	f.Cache.Usual = x.caching.Lifetime
	return f
}

// due decides whether the request begins an epoch.
func (x *exchange) due(ctx context.Context, overflow bool) epoch.Decision {
	f := x.facts(overflow)
	d := epoch.Decide(f, x.policy)
	x.s.Logger.DebugContext(ctx, "decision", "facts", f, "policy", x.policy, "decision", d)
	return d
}

// tried notes that there is no use in another attempt below a size.
func (c *claim) tried(until int) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.retry = until
}

func (c *claim) triedAt() int {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.retry
}

// overflowed reports whether the vendor has refused the last request of the lineage as too long, after
// the answer had begun.
func (c *claim) overflowed() bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.refused
}

// overflowed is the reason of an epoch after the vendor has refused the request as too long.
const overflowed = "overflow"

// announce counts an epoch and says so in the log.
func (x *exchange) announce() {
	e := x.epoch
	x.stats.epoch(*e)
	x.condensed(e)
	x.watch()
	x.s.audit("epoch", x.t.who, "agent", e.Agent, "lineage", e.Lineage, "reason", e.Reason, "before", e.Before, "after", e.After, "observed", e.Observed)
	by := []any{"provider", e.Provider, "outcome", e.Outcome, "fallback", e.Fallback}
	if e.Fallback {
		by = append(by, "cause", e.Cause)
	}
	x.s.Logger.Info("epoch", append([]any{"agent", e.Agent, "model", e.Model, "reason", e.Reason, "before", e.Before, "after", e.After, "ms", e.Millis, "observed", e.Observed}, by...)...)
}
