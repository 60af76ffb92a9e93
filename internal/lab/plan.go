package lab

import (
	"context"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/canary"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
)

// A Plan predicts the work and the spending of a run.
type Plan struct {
	Sessions int `json:"sessions"` // that can be read and cut
	Skipped  int `json:"skipped"`
	Rows     int `json:"rows"`   // of all strategies but the bounds; each run counts
	Cached   int `json:"cached"` // rows that are in the cache
	// Usage is the providers' estimate for the rows that are not cached, in sum and by strategy.
	Usage      core.Usage            `json:"usage"`
	ByStrategy map[string]core.Usage `json:"by_strategy"`
	// Silent are the strategies with a provider that gives no estimate. Most of these call no model.
	Silent []string `json:"silent,omitempty"`
}

// NewPlan returns the plan of [Run] with the same arguments. It reads every session and calls no model.
func NewPlan(ctx context.Context, items []Item, strategies []Strategy, opts *Options) (Plan, error) {
	p := Plan{ByStrategy: map[string]core.Usage{}}
	r, err := newRunner(items, strategies, opts)
	if err != nil {
		return p, err
	}
	silent := map[string]bool{}
	for _, it := range items {
		if ctx.Err() != nil {
			return p, ctx.Err()
		}
		n, err := r.plan(ctx, it, &p, silent)
		if err != nil {
			return p, err
		}
		if n > 0 {
			p.Sessions++
		} else {
			p.Skipped++
		}
	}
	p.Silent = append(p.Silent, plain.Each(plain.Only(strategies, func(x Strategy) bool { return silent[x.Name] }),
		func(x Strategy) string { return x.Name })...)
	return p, nil
}

// plan adds the work for a session to p, and returns the number of its tasks.
func (r *runner) plan(ctx context.Context, it Item, p *Plan, silent map[string]bool) (int, error) {
	if it.Evidence {
		return r.priceGold(ctx, it, p, silent)
	}
	s, counter, err := r.read(it)
	if err != nil || r.opts.unwanted(s.Mode) != "" {
		return 0, ctx.Err()
	}
	w := &sessionWork{run: r, session: s, counter: counter, hash: sessionHash(s)}
	if w.set = canary.Set(it.Canaries); w.set != "" {
		return w.priceCanaries(ctx, it.Name, p, silent)
	}
	cuts := score.Cuts(s, counter)
	n := 0
	for _, budget := range r.opts.Budgets {
		for _, t := range budget.tasks(s, cuts, counter) {
			n++
			b := w.trial(it.Name, t)
			for i := range r.strategies {
				if err := w.price(ctx, b, &r.strategies[i], p, silent); err != nil {
					return n, err
				}
			}
		}
	}
	if n > 0 && r.opts.Rounds > 0 {
		return n, w.priceRounds(ctx, it.Name, p, silent)
	}
	return n, nil
}

// priceRounds adds the cost of the session's rounds to p: each condenses the view, which has the same size every
// time, and the whole session so far.
func (w *sessionWork) priceRounds(ctx context.Context, name string, p *Plan, silent map[string]bool) error {
	total := core.TotalTokens(w.session.Messages)
	if total < shortestLong {
		return nil
	}
	for k := range w.run.strategies {
		s := &w.run.strategies[k]
		key := func(run int) string { return w.roundsKey(s.Key, run) }
		err := priceLaps[Round](w, s, p, key, func() error { return w.priceAlong(ctx, name, s, total, p, silent) })
		if err != nil {
			return err
		}
	}
	return nil
}

// priceAlong adds the cost of one run of [sessionWork.along] to p.
func (w *sessionWork) priceAlong(ctx context.Context, name string, s *Strategy, total int, p *Plan, silent map[string]bool) error {
	tokens, round, first := 0, 0, task{}
	size := w.run.opts.roundSize(total)
	for i := range w.session.Messages {
		if m := &w.session.Messages[i]; m.Role == core.RoleAssistant && round < w.run.opts.Rounds && tokens >= size+round*size/2 {
			cut, ok := score.CutAt(w.session, "round", i)
			if !ok {
				break
			}
			t := task{budget: "rounds", cut: cut, room: total / 6}
			if round == 0 {
				first = t
			}
			round++
			for _, t := range []task{first, t} {
				if err := w.spend(ctx, w.trial(name, t), s, p, silent); err != nil {
					return err
				}
			}
		}
		tokens += w.session.Messages[i].Tokens
	}
	return nil
}

// price adds the runs of one row to p.
func (w *sessionWork) price(ctx context.Context, b *trial, s *Strategy, p *Plan, silent map[string]bool) error {
	more := false // whether it is known to run more than once
	for run := 1; run == 1 || more && run <= w.run.opts.Repeat; run++ {
		p.Rows++
		if w.run.cache != nil && s.Key != "" {
			var row Row
			if w.run.cache.get(cacheKey(w.hash+" "+w.session.Source, s.Key, w.run.opts.Encoding, w.run.opts.Seed, b.task, run), &row) {
				p.Cached++
				more = more || s.repeats(&row)
				continue
			}
		}
		calls := p.Usage.Calls
		if err := w.spend(ctx, b, s, p, silent); err != nil {
			return err
		}
		more = more || p.Usage.Calls > calls
	}
	return nil
}

// spend adds the cost of one condensation to p.
func (w *sessionWork) spend(ctx context.Context, b *trial, s *Strategy, p *Plan, silent map[string]bool) error {
	for _, c := range s.providers() {
		u, err := core.EstimateCost(ctx, c.Provider, b.request(b.task.cut.Prefix()).Clone())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			// Either there is no estimate, or the call will fail too and the report shows it.
			silent[s.Name] = true
		default:
			p.Usage = p.Usage.Add(u)
			p.ByStrategy[s.Name] = p.ByStrategy[s.Name].Add(u)
		}
	}
	return nil
}
