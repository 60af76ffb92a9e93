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
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/telemetry"
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
func (x *plan) replaceHurried(ctx context.Context) bool {
	c, was, view := x.claim, x.claim.State, x.view
	if was.Epoch == nil || !was.Epoch.Hurried || x.s.Observe || x.sessions.Outage.Now() || x.order(session.OrderUndo) != nil ||
		x.tokens < c.TriedAt() {
		return false
	}
	next, err := was.Undo(c.Former(), x.r, x.rolling, x.start)
	if err != nil {
		return false // in a turn that needs its thinking: after it
	}
	next.Held = was.Held
	next.Epoch.Over = was.Epoch.Over
	c.State = next
	x.view = x.viewOf(next)
	o := &occasion{decision: epoch.Decide(x.facts(false), x.policy), began: time.Now()}
	o.decision.Reason = epoch.Forced
	retry, done := x.policy.RetryAfter(view.tokens), false
	if p := c.TakePrepared(x.rolling, false); p != nil {
		if done, err = x.adoptInstead(ctx, p, o); !done {
			c.Tried(retry)
		}
	} else if !c.Busy() {
		j := x.job(o.decision, false)
		j.Retry = retry
		x.prepareWith(j, func(ctx context.Context) (*job.Prepared, error) { return x.runner.Alongside(ctx, j, job.Whole) })
	}
	if c.State = was; !done {
		x.view = view
	}
	if err != nil && ctx.Err() == nil {
		x.fault("epoch", err)
	}
	return done
}

// adoptInstead makes a prepared epoch the plan of the request if it is no truncation again and its view is in order and below the
// limit, and reports whether it did.
func (x *plan) adoptInstead(ctx context.Context, p *job.Prepared, o *occasion) (bool, error) {
	if p.Maker.Provider == condense.Truncation {
		return false, nil
	}
	next, err := x.frozenBy(p, o)
	if next == nil || err != nil {
		return false, err
	}
	trial := x.viewOf(next)
	if err := x.check(&trial); err != nil || trial.tokens > x.policy.Limit {
		return false, err
	}
	if x.handles {
		kept, err := x.keep(ctx, next, x.messages)
		if err != nil {
			return false, err
		}
		if kept != nil {
			x.kept = kept
		}
	}
	x.adopt(o, p, next, trial)
	return true, nil
}

// epochIfDue begins an epoch if there is a reason. Only two kinds of requests wait for their condensation: requests
// that the vendor would refuse, and calls of /v1/compress, which ask for it. Every other epoch is prepared in the
// background, and begins with a later request.
func (x *plan) epochIfDue(ctx context.Context, overflow bool) error {
	if !overflow && x.replaceHurried(ctx) {
		return nil
	}
	for {
		o, err := x.occasion(ctx, overflow)
		if o == nil || err != nil {
			return err
		}
		if again, err := x.beginEpoch(ctx, o); !again {
			return err
		}
	}
}

// occasion returns the reason to begin an epoch now; nil if there is none. It may instead undo the last epoch, or
// start preparing the next one.
func (x *plan) occasion(ctx context.Context, overflow bool) (*occasion, error) {
	c := x.claim
	if !overflow {
		if undone, err := x.undoIfAsked(); undone || err != nil {
			return nil, err
		}
	}
	d, order := x.wished(x.due(ctx, overflow), overflow)
	if d.Reason == epoch.None {
		if !x.paused() && !c.State.Held {
			x.prepareEarly(d)
		}
		return nil, nil
	}
	x.must = overflow || c.Overflowed() || x.tokens > x.policy.Window
	if x.sessions.Outage.Now() && !x.must {
		return nil, nil // the epoch could not be stored, and a retry must be sent the same bytes
	}
	if order != nil {
		if why := c.Failure(order); why != "" {
			x.dropped(order, why)
			return nil, nil
		}
		c.Unordered(order)
	}
	return &occasion{decision: d, order: order, overflow: overflow, began: time.Now()}, nil
}

// beginEpoch makes the condensation for an occasion the view of the request. again reports that another attempt should
// follow.
func (x *plan) beginEpoch(ctx context.Context, o *occasion) (again bool, err error) {
	ctx, span := x.telemetry.Tracer.Start(ctx, "condense", trace.WithAttributes(telemetry.ReasonKey.String(string(o.decision.Reason)),
		telemetry.ModeKey.String(cmp.Or(x.mode, x.profile))))
	defer span.End()
	if x.handles {
		n, err := x.store.KeptBytes(ctx)
		x.handles = err == nil && n < x.s.Recall.MaxSize
	}
	if o.forced() && !x.s.Observe {
		x.awaitPrepared(ctx)
	}
	p := x.claim.TakePrepared(x.rolling, o.forced())
	if p != nil && (p.Handles && !x.handles || p == x.refused) { // the vendor has just refused this condensation
		p = nil
	}
	taken := p != nil
	if !taken {
		if p, err = x.condensation(ctx, o); p == nil || err != nil {
			return false, err
		}
	}
	next, err := x.frozenBy(p, o)
	if next == nil || err != nil {
		return false, err
	}
	trial := x.viewOf(next)
	// Try again if the conversation has grown too much since the condensation was made.
	if o.forced() && taken && trial.tokens > x.policy.Limit {
		return true, nil
	}
	if trial.ours >= x.ours {
		x.useless(o, "the condensation is not smaller")
		return false, nil
	}
	if x.handles {
		kept, err := x.keep(ctx, next, x.messages)
		if err != nil { // then go on without handles
			x.fault("recall", err)
			x.handles = false
			return true, nil
		}
		if kept != nil {
			x.kept = kept // including the kept part of the round
		}
	}
	x.adopt(o, p, next, trial)
	return false, nil
}

// condensation makes the condensation that an occasion needs now. It returns nil if it is prepared in the background
// instead, or would be useless.
func (x *plan) condensation(ctx context.Context, o *occasion) (*job.Prepared, error) {
	if x.s.Observe || !o.forced() && !x.calls && o.order == nil {
		x.prepare(o.decision, job.Whole, o.overflow)
		return nil, nil
	}
	if o.order != nil {
		p, err := x.ordered(ctx, o)
		if p != nil || err != nil || !o.forced() {
			return p, err
		}
	}
	j := x.job(o.decision, o.overflow)
	if f := x.claim.Failing(); o.forced() && f.Stuck() {
		return x.runner.Truncate(ctx, j, fmt.Sprintf("epochs failed %d times: %s", f.Count, f.Why))
	}
	p, err := x.runner.InTurn(ctx, j, o.forced())
	switch {
	case errors.Is(err, job.ErrAsks), errors.Is(err, job.ErrQueue):
		x.prepare(o.decision, job.Whole, o.overflow)
		return nil, nil
	case err != nil:
		x.claim.Tried(x.policy.RetryAfter(x.tokens))
		if errors.Is(err, job.ErrNotDue) {
			return nil, nil
		}
		return nil, err
	}
	return p, nil
}

// ordered makes a condensation ordered by the user. It returns nil if that is postponed or impossible.
func (x *plan) ordered(ctx context.Context, o *occasion) (*job.Prepared, error) {
	p, err := x.obey(ctx, x.orderedJob(o.decision, o.order, o.overflow), o.order)
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, job.ErrAsks):
		x.waits(o.order, "a language model works at it")
	case ctx.Err() != nil:
		return nil, err
	default:
		x.dropped(o.order, job.ReasonOf(err))
	}
	return nil, nil
}

// frozenBy returns the state of the epoch that begins with condensation p; nil if it cannot begin with this request.
func (x *plan) frozenBy(p *job.Prepared, o *occasion) (*lineage.State, error) {
	c := lineage.Condensed{Basis: p.Basis, After: p.After, Forced: o.forced(), Decision: o.decision}
	next, err := x.claim.State.Freeze(x.r, x.rolling, c, x.start)
	switch {
	case err == nil:
		next.Held = false
		return next, nil
	case errors.Is(err, lineage.ErrRound): // it can begin after the turn
		x.claim.Tried(x.policy.RetryAfter(x.tokens))
		if o.order != nil {
			x.waits(o.order, "the model thinks in this turn: it can be had when the turn is over")
		}
		return nil, nil
	case o.order != nil:
		x.useless(o, job.ReasonOf(err))
		return nil, nil
	}
	x.claim.Tried(x.policy.RetryAfter(x.tokens))
	return nil, err
}

// useless records that another attempt at this size is pointless, and tells the user if they ordered it.
func (x *plan) useless(o *occasion, why string) {
	x.claim.Tried(x.policy.RetryAfter(x.tokens))
	if o.order != nil {
		x.dropped(o.order, why)
	}
}

// adopt makes a trial the plan of the request.
func (x *plan) adopt(o *occasion, p *job.Prepared, next *lineage.State, trial view) {
	before := x.tokens
	x.view = trial
	if o.order != nil && o.order.Number == p.Order {
		x.obeyed(o.order, "")
		x.obeys.Before, x.obeys.After, x.obeys.Changed, next.Orders = before, x.tokens, true, o.order.Number
	}
	x.passes.Add(p.Passes)
	predicted := *next.Epoch // the chain did its best, so its result is the prediction
	predicted.After, predicted.Lost, predicted.Hurried, next.Epoch = x.tokens, p.Maker.Lost, p.Hurried, &predicted
	x.next, x.made = next, p
	x.epoch = &stats.Epoch{
		Time: x.start, Agent: x.agent.Name, Model: x.r.Model, Lineage: x.claim.Conversation, Reason: string(o.decision.Reason),
		Before: before, After: x.tokens, Turns: o.decision.Turns, Millis: float64(time.Since(o.began).Microseconds()) / 1000,
		Observed: x.s.Observe,
		Provider: p.Maker.Provider, Outcome: p.Maker.Outcome, Fallback: p.Maker.Cause != "", Cause: p.Maker.Cause,
		WordsLost: p.Maker.Lost,
	}
	if o.overflow {
		x.epoch.Reason = string(epoch.Overflow)
	}
}

// facts returns the numbers on which the decision about an epoch rests.
func (x *plan) facts(overflow bool) epoch.Facts {
	f := x.claim.State.Facts(x.r, x.ours, x.start)
	f.Overflow, f.Retry = overflow || x.claim.Overflowed(), x.claim.TriedAt()
	f.Cache.Write, f.Cache.Read = x.caching.Prices(x.r.TTL)
	f.Cache.Usual = x.caching.Lifetime
	return f
}

// due decides whether the request begins an epoch.
func (x *plan) due(ctx context.Context, overflow bool) epoch.Decision {
	f := x.facts(overflow)
	d := epoch.Decide(f, x.policy)
	if d.Wait.ForWork() {
		f.Boundary, f.Failed = x.progress()
		d = epoch.Decide(f, x.policy)
	}
	x.claim.State.Await(&d)
	x.awaits = d.Wait
	x.s.Reports.Logger.DebugContext(ctx, "decision", "facts", f, "policy", x.policy, "decision", d)
	return d
}

// progress says where the newest messages stand in the work. Messages that cannot be read are a boundary: nothing waits
// for them.
func (x *plan) progress() (boundary, failed bool) {
	newest := x.r.Messages[lineage.Newest(x.r.Messages, epoch.Look):]
	doc, err := messages.Read(x.r.API, messages.Raw(newest))
	if err != nil {
		return true, false
	}
	p := epoch.ProgressOf(doc.Journal.View())
	return p.Boundary != epoch.NoBoundary, p.Failed != ""
}

// announce counts an epoch and logs it.
func (x *plan) announce() {
	e := x.epoch
	x.stats.Epoch(*e)
	x.condensed(e)
	x.watch()
	x.s.audit("epoch", x.t.who, "agent", e.Agent, "lineage", e.Lineage, "reason", e.Reason, "before", e.Before, "after", e.After, "observed",
		e.Observed)
	by := []any{"provider", e.Provider, "outcome", e.Outcome, "fallback", e.Fallback}
	if e.Fallback {
		by = append(by, "cause", e.Cause)
	}
	x.s.Reports.Logger.Info("epoch", append([]any{
		"agent", e.Agent, "model", e.Model, "reason", e.Reason, "before", e.Before, "after",
		e.After, "words_lost", e.WordsLost, "ms", e.Millis, "observed", e.Observed,
	}, by...)...)
	x.replaceHurried(x.life) // so that the next request finds it
}
