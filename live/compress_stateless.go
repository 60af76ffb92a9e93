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
func (q *question) alone(ctx context.Context, p *plan) (*compressed, error) {
	a := &compressed{messages: p.messages, before: p.tokens, after: p.tokens}
	d := epoch.Decision{Before: p.tokens}
	switch {
	case p.tokens > p.req.limits.policy.Limit:
		if d.Reason = epoch.Forced; p.req.guessed {
			p.req.parsed.Thinking = ""
		}
	case p.req.limits.policy.Threshold > 0 && p.tokens >= p.req.limits.policy.Threshold, q.ratio > 0:
		d.Reason = epoch.Threshold
	}
	if d.Reason == epoch.None || q.ratio == 1 && d.Reason != epoch.Forced {
		return a, nil
	}
	j := p.job(d, false)
	target := int(q.ratio * float64(p.tokens))
	if q.budget > 0 && p.tokens > q.budget {
		target = min(cmp.Or(target, q.budget), q.budget)
	}
	if target > 0 {
		j.Turn.Trigger, j.Target = core.TriggerManual, target
	}
	for again := true; ; again = false {
		changed, err := q.once(ctx, p, j, d)
		if err != nil || !changed {
			return a, err
		}
		if q.budget == 0 || p.tokens <= q.budget || !again {
			break
		}
		// The gateway and the chain count differently.
		j.Target = int(0.95 * float64(q.budget) / float64(p.tokens) * float64(target))
	}
	a.messages, a.changed, a.after, a.applied = p.messages, p.altered, p.tokens, []string{"condense:" + string(d.Reason)}
	return a, nil
}

// once replaces the view by a condensation of the messages, and reports whether that changed anything. Each message
// stays one message if the result then fits, because some callers match messages by position.
func (q *question) once(ctx context.Context, p *plan, j *job.Job, d epoch.Decision) (changed bool, err error) {
	made, err := p.req.g.runner.InTurn(ctx, j, d.Reason == epoch.Forced)
	if errors.Is(err, job.ErrAsks) {
		made, err = p.req.g.runner.NextTurn(ctx, j, func(ctx context.Context) (*job.Prepared, error) { return p.req.g.runner.RunBuiltin(ctx, j) })
	}
	if err == nil && !sameRoles(made.After, p.req.parsed.Messages) {
		limit := p.req.limits.policy.Limit
		if q.budget > 0 {
			limit = q.budget
		}
		own := *j
		own.Turn.Profile, own.Turn.Mode, own.Target = "", "", min(j.Target, limit)
		const tries = 4 // the gateway and the chain count differently
		for range tries {
			instead, failed := p.req.g.runner.NextTurn(ctx, j, func(ctx context.Context) (*job.Prepared, error) {
				return own.Run(ctx, p.req.g.runner.InPlace, job.Whole)
			})
			if failed != nil || !sameRoles(instead.After, p.req.parsed.Messages) {
				break
			}
			trial, changed, failed := q.freeze(p, instead, d)
			if failed != nil || !changed {
				break
			}
			if trial.tokens <= limit {
				p.view = trial
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
	trial, changed, err := q.freeze(p, made, d)
	if changed && err == nil {
		p.view = trial
	}
	return changed, err
}

// sameRoles reports whether messages have the same roles in the same order as others.
func sameRoles(messages, others []wire.Message) bool {
	return slices.EqualFunc(messages, others, func(a, b wire.Message) bool { return a.Role == b.Role })
}

// freeze returns the plan with a condensation, and whether it is smaller than the request.
func (q *question) freeze(p *plan, made *job.Prepared, d epoch.Decision) (trial view, changed bool, err error) {
	next, err := p.state.Freeze(p.req.parsed, p.req.rolling, lineage.Condensed{
		Basis: made.Basis, After: made.After, Decision: d, Forced: d.Reason == epoch.Forced,
	}, p.req.in.start)
	if errors.Is(err, lineage.ErrNothing) || errors.Is(err, lineage.ErrRound) {
		return view{}, false, nil
	}
	if err != nil {
		return view{}, false, err
	}
	trial = p.req.viewOf(next)
	// Send frozen messages byte for byte: the chain may have encoded them differently.
	for i := range min(q.frozen, next.Epoch.Cut) {
		if i >= len(made.After) || i >= len(trial.messages) || made.After[i].Hash != p.req.parsed.Messages[i].Hash {
			return view{}, false, fmt.Errorf("the chain changed message %d, which is frozen", i)
		}
		trial.messages[i] = p.req.parsed.Messages[i].Raw
	}
	return trial, trial.ours < trial.original, p.req.check(&trial)
}
