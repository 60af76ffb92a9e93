package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/live/internal/telemetry"
)

// An occasion is a reason to begin an epoch with a request.
type occasion struct {
	decision epoch.Decision
	order    *session.Order // nil unless the user has ordered the epoch
	overflow bool           // the vendor has just refused the request
	began    time.Time
}

func (o *occasion) forced() bool { return o.decision.Reason == epoch.Forced }

// replaceHurried replaces a truncation for want of time by an epoch of the chain, made of the messages before it, and reports
// whether it did. No request waits for that: it is prepared in the background, and begins with the next request that finds it.
func (p *plan) replaceHurried(ctx context.Context) bool {
	c, was, instead := p.req.lease, p.state, *p
	if was.Epoch == nil || !was.Epoch.Hurried || p.req.s.Observe || p.req.g.sessions.Outage.Now() || p.order(session.OrderUndo) != nil ||
		p.tokens < c.TriedAt() {
		return false
	}
	next, err := was.Undo(c.Former(), p.req.parsed, p.req.rolling, p.req.in.start)
	if err != nil {
		return false // in a turn that needs its thinking: after it
	}
	next.Held = was.Held
	next.Epoch.Over = was.Epoch.Over
	instead.state, instead.view = next, p.req.viewOf(next)
	o := &occasion{decision: epoch.Decide(instead.facts(false), p.req.limits.policy), began: time.Now()}
	o.decision.Reason = epoch.Forced
	retry, done := p.req.limits.policy.RetryAfter(p.tokens), false
	if made := c.TakePrepared(next, p.req.rolling, false); made != nil {
		if done, err = instead.adoptInstead(ctx, made, o); done {
			*p = instead
			p.state = was
		} else {
			c.Tried(retry)
		}
	} else if !c.Busy() {
		j := instead.job(o.decision, false)
		j.Retry = retry
		p.req.prepareWith(j, func(ctx context.Context) (*job.Prepared, error) { return p.req.g.runner.Alongside(ctx, j, job.Whole) })
	}
	if err != nil && ctx.Err() == nil {
		p.req.g.fault("epoch", err)
	}
	return done
}

// adoptInstead makes a prepared epoch the plan of the request if it is no truncation again and its view is in order and below the
// limit, and reports whether it did.
func (p *plan) adoptInstead(ctx context.Context, made *job.Prepared, o *occasion) (bool, error) {
	if made.Maker.Provider == condense.Truncation {
		return false, nil
	}
	next, err := p.frozenBy(made, o)
	if next == nil || err != nil {
		return false, err
	}
	trial := p.req.viewOf(next)
	if err := p.req.check(&trial); err != nil || trial.tokens > p.req.limits.policy.Limit {
		return false, err
	}
	if p.handles {
		kept, err := p.keep(ctx, next, p.messages)
		if err != nil {
			return false, err
		}
		p.kept = cmp.Or(kept, p.kept)
	}
	p.adopt(o, made, next, trial)
	return true, nil
}

// epochIfDue begins an epoch if there is a reason. Only two kinds of requests wait for their condensation: requests
// that the vendor would refuse, and calls of /v1/compress, which ask for it. Every other epoch is prepared in the
// background, and begins with a later request.
func (p *plan) epochIfDue(ctx context.Context, overflow bool) error {
	if !overflow && p.replaceHurried(ctx) {
		return nil
	}
	for {
		o, err := p.occasion(ctx, overflow)
		if o == nil || err != nil {
			return err
		}
		if again, err := p.beginEpoch(ctx, o); !again {
			return err
		}
	}
}

// occasion returns the reason to begin an epoch now; nil if there is none. It may instead undo the last epoch, or
// start preparing the next one.
func (p *plan) occasion(ctx context.Context, overflow bool) (*occasion, error) {
	c := p.req.lease
	if !overflow {
		if undone, err := p.undoIfAsked(); undone || err != nil {
			return nil, err
		}
	}
	d, order := p.applyUserOrders(p.due(ctx, overflow), overflow)
	if d.Reason == epoch.None {
		if !p.req.paused() && !p.state.Held {
			p.prepareEarly(d)
		}
		return nil, nil
	}
	p.must = overflow || c.Overflowed() || p.tokens > p.req.limits.policy.Window
	if p.req.g.sessions.Outage.Now() && !p.must {
		return nil, nil // the epoch could not be stored, and a retry must be sent the same bytes
	}
	if order != nil {
		if why := c.Failure(order); why != "" {
			p.rejectOrder(order, why)
			return nil, nil
		}
		c.Unordered(order)
	}
	return &occasion{decision: d, order: order, overflow: overflow, began: time.Now()}, nil
}

// beginEpoch makes the condensation for an occasion the view of the request. again reports that another attempt should
// follow.
func (p *plan) beginEpoch(ctx context.Context, o *occasion) (again bool, err error) {
	ctx, span := p.req.g.telemetry.Tracer.Start(ctx, "condense", trace.WithAttributes(telemetry.ReasonKey.String(string(o.decision.Reason)),
		telemetry.ModeKey.String(cmp.Or(p.req.limits.mode, p.req.limits.profile))))
	defer span.End()
	if p.handles {
		n, err := p.req.g.store.KeptBytes(ctx)
		p.handles = err == nil && n < p.req.s.Recall.MaxSize
	}
	if o.forced() && !p.req.s.Observe {
		p.req.awaitPrepared(ctx)
	}
	made := p.req.lease.TakePrepared(p.state, p.req.rolling, o.forced())
	if made != nil && (made.Handles && !p.handles || made == p.refused) { // the vendor has just refused this condensation
		made = nil
	}
	taken := made != nil
	if !taken {
		if made, err = p.condensation(ctx, o); made == nil || err != nil {
			return false, err
		}
	}
	next, err := p.frozenBy(made, o)
	if next == nil || err != nil {
		return false, err
	}
	trial := p.req.viewOf(next)
	// Try again if the conversation has grown too much since the condensation was made.
	if o.forced() && taken && trial.tokens > p.req.limits.policy.Limit {
		return true, nil
	}
	if trial.ours >= p.ours {
		p.useless(o, "the condensation is not smaller")
		return false, nil
	}
	if p.handles {
		kept, err := p.keep(ctx, next, p.messages)
		if err != nil { // then go on without handles
			p.req.g.fault("recall", err)
			p.handles = false
			return true, nil
		}
		p.kept = cmp.Or(kept, p.kept) // including the kept part of the round
	}
	p.adopt(o, made, next, trial)
	return false, nil
}

// condensation makes the condensation that an occasion needs now. It returns nil if it is prepared in the background
// instead, or would be useless.
func (p *plan) condensation(ctx context.Context, o *occasion) (*job.Prepared, error) {
	if p.req.s.Observe || !o.forced() && !p.req.calls && o.order == nil {
		p.prepare(o.decision, job.Whole, o.overflow)
		return nil, nil
	}
	if o.order != nil {
		made, err := p.ordered(ctx, o)
		if made != nil || err != nil || !o.forced() {
			return made, err
		}
	}
	j := p.job(o.decision, o.overflow)
	if f := p.req.lease.Failing(); o.forced() && f.Stuck() {
		return p.req.g.runner.Truncate(ctx, j, job.Cause{Why: fmt.Sprintf("epochs failed %d times: %s", f.Count, f.Why), Status: f.Status})
	}
	made, err := p.req.g.runner.InTurn(ctx, j, o.forced())
	switch {
	case errors.Is(err, job.ErrAsks), errors.Is(err, job.ErrQueue):
		p.prepare(o.decision, job.Whole, o.overflow)
		return nil, nil
	case err != nil:
		until := p.req.limits.policy.RetryAfter(p.tokens)
		if errors.Is(err, job.ErrLater) {
			until = p.req.limits.policy.LaterAfter(p.tokens)
		}
		p.req.lease.Tried(until)
		if errors.Is(err, job.ErrNotDue) {
			return nil, nil
		}
		return nil, err
	}
	return made, nil
}

// ordered makes a condensation ordered by the user. It returns nil if that is postponed or impossible.
func (p *plan) ordered(ctx context.Context, o *occasion) (*job.Prepared, error) {
	j := p.job(o.decision, o.overflow)
	if j.Order = o.order.Number; o.order.Profile != "" {
		j.Turn.Profile, j.Turn.Mode = o.order.Profile, ""
	}
	made, err := p.obey(ctx, j, o.order)
	switch {
	case err == nil:
		return made, nil
	case errors.Is(err, job.ErrAsks):
		p.deferOrder(o.order, "a language model works at it")
	case ctx.Err() != nil:
		return nil, err
	default:
		p.rejectOrder(o.order, job.ReasonOf(err))
	}
	return nil, nil
}

// frozenBy returns the state of the epoch that begins with condensation p; nil if it cannot begin with this request.
func (p *plan) frozenBy(made *job.Prepared, o *occasion) (*lineage.State, error) {
	c := lineage.Condensed{Basis: made.Basis, After: made.After, States: made.States, Forced: o.forced(), Decision: o.decision}
	next, err := p.state.Freeze(p.req.parsed, p.req.rolling, c, p.req.in.start)
	switch {
	case err == nil:
		next.Held = false
		return next, nil
	case errors.Is(err, lineage.ErrRound): // it can begin after the turn
		p.req.lease.Tried(p.req.limits.policy.RetryAfter(p.tokens))
		if o.order != nil {
			p.deferOrder(o.order, "the model thinks in this turn: it can be had when the turn is over")
		}
		return nil, nil
	case o.order != nil:
		p.useless(o, job.ReasonOf(err))
		return nil, nil
	}
	p.req.lease.Tried(p.req.limits.policy.RetryAfter(p.tokens))
	return nil, err
}

// useless records that another attempt at this size is pointless, and tells the user if they ordered it.
func (p *plan) useless(o *occasion, why string) {
	p.req.lease.Tried(p.req.limits.policy.RetryAfter(p.tokens))
	if o.order != nil {
		p.rejectOrder(o.order, why)
	}
}

// adopt makes a trial the plan of the request.
func (p *plan) adopt(o *occasion, made *job.Prepared, next *lineage.State, trial view) {
	r := p.req
	before := p.tokens
	p.view = trial
	if o.order != nil && o.order.Number == made.Order {
		p.completeOrder(o.order, "")
		p.obeys.Before, p.obeys.After, p.obeys.Changed, next.Orders = before, p.tokens, true, o.order.Number
	}
	r.g.passes.Add(made.Passes)
	predicted := *next.Epoch // the chain did its best, so its result is the prediction
	predicted.After, predicted.Lost, predicted.Hurried, next.Epoch = p.tokens, made.Maker.Lost, made.Hurried, &predicted
	p.next, p.made = next, made
	p.epoch = &Epoch{
		Time: r.in.start, Agent: r.from.agent.Name, Model: r.parsed.Model, Lineage: r.lease.Conversation, Reason: string(o.decision.Reason),
		Before: before, After: p.tokens, Turns: o.decision.Turns, Millis: float64(time.Since(o.began).Microseconds()) / 1000,
		Observed: r.s.Observe, Provider: made.Maker.Provider, Outcome: made.Maker.Outcome, Fallback: made.Maker.Cause.Why != "",
		Cause: made.Maker.Cause.Why, WordsLost: made.Maker.Lost,
	}
	if o.overflow {
		p.epoch.Reason = string(epoch.Overflow)
	}
}

// facts returns the numbers on which the decision about an epoch rests.
func (p *plan) facts(overflow bool) epoch.Facts {
	f := p.state.Facts(p.req.parsed, p.ours, p.req.in.start)
	f.Overflow, f.Retry = overflow || p.req.lease.Overflowed(), p.req.lease.TriedAt()
	f.Cache.Write, f.Cache.Read = p.req.tariff.caching.Prices(p.req.parsed.TTL)
	f.Cache.Usual = p.req.tariff.caching.Lifetime
	return f
}

// due decides whether the request begins an epoch.
func (p *plan) due(ctx context.Context, overflow bool) epoch.Decision {
	f := p.facts(overflow)
	d := epoch.Decide(f, p.req.limits.policy)
	p.awaits = d.Wait
	p.req.s.Reports.Logger.DebugContext(ctx, "decision", "facts", f, "policy", p.req.limits.policy, "decision", d)
	return d
}

// announce counts an epoch and logs it.
func (p *plan) announce() {
	r := p.req
	e := p.epoch
	r.g.stats.Epoch(*e)
	r.condensed(e)
	p.watch()
	r.s.audit("epoch", r.t.who, "agent", e.Agent, "lineage", e.Lineage, "reason", e.Reason, "before", e.Before, "after", e.After, "observed",
		e.Observed)
	by := []any{"provider", e.Provider, "outcome", e.Outcome, "fallback", e.Fallback}
	if e.Fallback {
		by = append(by, "cause", e.Cause)
	}
	r.s.Reports.Logger.Info("epoch", append([]any{
		"agent", e.Agent, "model", e.Model, "profile", r.limits.profile, "mode", r.limits.mode, "reason", e.Reason, "before", e.Before, "after",
		e.After, "words_lost", e.WordsLost, "ms", e.Millis, "observed", e.Observed,
	}, by...)...)
	begun := *p
	p.replaceHurried(r.g.life) // so that the next request finds it
	begun.judge()
}
