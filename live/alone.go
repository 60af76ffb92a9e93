package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
)

// alone condenses messages without a known conversation, and stores nothing. It asks no language model.
func (q *question) alone(ctx context.Context, x *plan) (*compressed, error) {
	a := &compressed{messages: x.messages, before: x.tokens, after: x.tokens}
	d := epoch.Decision{Before: x.tokens}
	switch {
	case x.tokens > x.policy.Limit:
		if d.Reason = epoch.Forced; x.guessed {
			x.r.Thinking = ""
		}
	case x.policy.Threshold > 0 && x.tokens >= x.policy.Threshold, q.ratio > 0:
		d.Reason = epoch.Threshold
	}
	if d.Reason == epoch.None || q.ratio == 1 && d.Reason != epoch.Forced {
		return a, nil
	}
	j := x.job(d, false)
	target := int(q.ratio * float64(x.tokens))
	if q.budget > 0 && x.tokens > q.budget {
		target = min(cmp.Or(target, q.budget), q.budget)
	}
	if target > 0 {
		j.Turn.Trigger, j.Target = core.TriggerManual, target
	}
	for again := true; ; again = false {
		changed, err := q.once(ctx, x, j, d)
		if err != nil || !changed {
			return a, err
		}
		if q.budget == 0 || x.tokens <= q.budget || !again {
			break
		}
		// The gateway and the chain count differently.
		j.Target = int(0.95 * float64(q.budget) / float64(x.tokens) * float64(target))
	}
	a.messages, a.changed, a.after, a.applied = x.messages, x.altered, x.tokens, []string{"condense:" + string(d.Reason)}
	return a, nil
}

// once replaces the view by a condensation of the messages, and reports whether that changed anything. Each message
// stays one message if the result then fits, because some callers match messages by position.
func (q *question) once(ctx context.Context, x *plan, j *job.Job, d epoch.Decision) (changed bool, err error) {
	p, err := x.runner.InTurn(ctx, j, d.Reason == epoch.Forced)
	if errors.Is(err, job.ErrAsks) {
		p, err = x.runner.NextTurn(ctx, j, func(ctx context.Context) (*job.Prepared, error) { return x.runner.RunBuiltin(ctx, j) })
	}
	if err == nil && !sameRoles(p.After, x.r.Messages) {
		limit := x.policy.Limit
		if q.budget > 0 {
			limit = q.budget
		}
		own := *j
		own.Turn.Profile, own.Turn.Mode, own.Target = "", "", min(j.Target, limit)
		const tries = 4 // the gateway and the chain count differently
		for range tries {
			instead, failed := x.runner.NextTurn(ctx, j, func(ctx context.Context) (*job.Prepared, error) {
				return own.Run(ctx, x.runner.InPlace, job.Whole)
			})
			if failed != nil || !sameRoles(instead.After, x.r.Messages) {
				break
			}
			trial, changed, failed := q.freeze(x, instead, d)
			if failed != nil || !changed {
				break
			}
			if trial.tokens <= limit {
				x.view = trial
				return true, nil
			}
			own.Target = int(0.95 * float64(limit) / float64(trial.tokens) * float64(own.Target))
		}
		if len(q.added) > 0 {
			return false, nil
		}
	}
	if errors.Is(err, job.ErrNotDue) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	trial, changed, err := q.freeze(x, p, d)
	if changed && err == nil {
		x.view = trial
	}
	return changed, err
}

// sameRoles reports whether messages have the same roles in the same order as others.
func sameRoles(messages, others []wire.Message) bool {
	return slices.EqualFunc(messages, others, func(a, b wire.Message) bool { return a.Role == b.Role })
}

// freeze returns the plan with a condensation, and whether it is smaller than the request.
func (q *question) freeze(x *plan, p *job.Prepared, d epoch.Decision) (trial view, changed bool, err error) {
	next, err := x.claim.State.Freeze(x.r, x.rolling, lineage.Condensed{
		Basis: p.Basis, After: p.After, Decision: d,
		Forced: d.Reason == epoch.Forced,
	}, x.start)
	if errors.Is(err, lineage.ErrNothing) || errors.Is(err, lineage.ErrRound) {
		return view{}, false, nil
	}
	if err != nil {
		return view{}, false, err
	}
	trial = x.viewOf(next)
	// Send frozen messages byte for byte: the chain may have encoded them differently.
	for i := range min(q.frozen, next.Epoch.Cut) {
		if i >= len(p.After) || i >= len(trial.messages) || p.After[i].Hash != x.r.Messages[i].Hash {
			return view{}, false, fmt.Errorf("the chain changed message %d, which is frozen", i)
		}
		trial.messages[i] = x.r.Messages[i].Raw
	}
	return trial, trial.ours < trial.original, x.check(&trial)
}
