package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/canary"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// Run cuts the sessions of items, lets every strategy condense every prefix under every budget, and
// measures the results against what follows the cut. A session that cannot be read, or is too short to
// be cut, is listed in the report and skipped.
//
// If ctx ends or [Options.MaxUSD] is spent, Run returns the report on the finished sessions together
// with the error. With a cache, the next run continues from there.
func Run(ctx context.Context, items []Item, strategies []Strategy, opts *Options) (*Report, error) {
	r, err := newRunner(items, strategies, opts)
	if err != nil {
		return nil, err
	}
	r.outputs = newOutputs(r.opts.Outputs)
	err = r.each(ctx, r.session)
	if r.outputs != nil {
		err = errors.Join(err, r.outputs.err)
	}
	return r.report(err != nil), err
}

// A runner is one call of Run.
type runner struct {
	opts       Options
	encoding   *tokens.Encoding
	strategies []Strategy
	items      []Item
	cache      *cache
	start      time.Time

	mu       sync.Mutex
	sessions []outcomeOf
	progress Progress
	paid     map[string]bool // strategies that have spent money
	outputs  *outputs
}

// newRunner checks the strategies and the options.
func newRunner(items []Item, strategies []Strategy, opts *Options) (*runner, error) {
	if err := checkStrategies(strategies); err != nil {
		return nil, err
	}
	return openRunner(items, strategies, opts)
}

// openRunner is newRunner for strategies that are checked elsewhere.
func openRunner(items []Item, strategies []Strategy, opts *Options) (*runner, error) {
	o, encoding, err := opts.settled()
	r := &runner{opts: o, items: items, encoding: encoding, strategies: strategies}
	if err != nil {
		return nil, err
	}
	if r.start = o.Now(); o.Cache != "" {
		r.cache, err = openCache(o.Cache)
	}
	return r, err
}

// An outcomeOf is the result of one session.
type outcomeOf struct {
	info    SessionInfo
	skipped string // the reason; empty if it was compared
	unread  bool   // skipped because it could not be read
	rows    []Row
	planted []Canary
	rounds  []Round
	// evidence is the result for a conversation with gold evidence.
	evidence []Evidence
	spent    *spent
	cached   int
}

// each calls work for all sessions, Options.Jobs at a time, and adds the results to r.sessions. After an error
// r.sessions has the finished ones.
func (r *runner) each(ctx context.Context, work func(context.Context, Item) (outcomeOf, error)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.progress.Total = len(r.items)
	next := make(chan Item)
	spent := make(chan struct{})
	enough := sync.OnceFunc(func() { close(spent) }) // running sessions are paid for and may finish
	var wg sync.WaitGroup
	for range min(r.opts.Jobs, max(1, len(r.items))) {
		wg.Go(func() {
			for it := range next {
				out, err := work(ctx, it)
				switch {
				case errors.Is(err, ErrMaxCost):
					enough()
				case err != nil:
					stop(err)
				case r.add(out):
					enough()
				}
			}
		})
	}
feed:
	for _, it := range r.items {
		select {
		case next <- it:
		case <-spent:
			break feed
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(r.sessions) < len(r.items):
		return ErrMaxCost
	}
	return nil
}

// add adds the result of a session and reports whether the run has reached its cost limit.
func (r *runner) add(out outcomeOf) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions = append(r.sessions, out)
	p := &r.progress
	p.Done++
	p.Session = out.info.Name
	p.Rows += plain.Sum(out.rows, func(x Row) int { return x.times() })
	p.Cached += out.cached
	p.Elapsed = r.opts.Now().Sub(r.start)
	p.Left = p.Elapsed / time.Duration(p.Done) * time.Duration(p.Total-p.Done)
	r.opts.Progress(*p)
	return r.opts.MaxUSD > 0 && p.USD >= r.opts.MaxUSD && p.Done < p.Total
}

// pay records spending by a strategy.
func (r *runner) pay(strategy string, usd float64) {
	if usd <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress.USD += usd
	if r.paid == nil {
		r.paid = map[string]bool{}
	}
	r.paid[strategy] = true
}

// afford returns ErrMaxCost if the cost limit is reached and s may spend more. Strategies that cost nothing continue,
// so that a session that is paid for is finished.
func (r *runner) afford(s *Strategy) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opts.MaxUSD > 0 && r.progress.USD >= r.opts.MaxUSD && (r.paid[s.Name] || s.estimates()) {
		return ErrMaxCost
	}
	return nil
}

// session compares the strategies on one session. It fails if ctx is done, the cost limit is reached, or the cache
// fails.
func (r *runner) session(ctx context.Context, it Item) (outcomeOf, error) {
	if it.Evidence {
		return r.goldSession(ctx, it)
	}
	out := outcomeOf{info: SessionInfo{Name: it.Name}}
	s, counter, err := r.read(it)
	if err != nil {
		out.skipped, out.unread = strings.TrimPrefix(err.Error(), it.Name+": "), true
		return out, ctx.Err()
	}
	out.info = describe(it.Name, s)
	if out.skipped = r.opts.unwanted(s.Mode); out.skipped != "" {
		return out, ctx.Err()
	}
	if r.opts.Spending {
		out.spent = spentBy(s, counter)
	}
	w := &sessionWork{run: r, session: s, counter: counter, hash: out.info.Hash}
	if w.set = canary.Set(it.Canaries); w.set != "" {
		out.info.Hash, out.info.Said = string(w.set)+":"+out.info.Hash, string(w.set)+":"+out.info.Said
		if out.planted, err = w.canaries(ctx, it.Name); err == nil && len(out.planted) == 0 {
			out.skipped = fmt.Sprintf("too short for canaries: it needs more than %d tokens", canaryWindow)
		}
		return out, err
	}
	cuts := score.Cuts(s, counter)
	for _, budget := range r.opts.Budgets {
		for _, t := range budget.tasks(s, cuts, counter) {
			rows, err := w.task(ctx, it.Name, t)
			if err != nil {
				return out, err
			}
			out.rows = append(out.rows, rows...)
		}
	}
	if r.opts.Rounds > 0 {
		if out.rounds, err = w.rounds(ctx, it.Name); err != nil {
			return out, err
		}
	}
	out.cached = w.cached
	for i := range out.rows {
		if !slices.Contains(out.info.Cuts, out.rows[i].Cut) {
			out.info.Cuts = append(out.info.Cuts, out.rows[i].Cut)
		}
	}
	if len(out.rows) == 0 {
		out.skipped = whyUncut(s, cuts, r.opts.Budgets)
	}
	return out, nil
}

// read reads a session and measures it with a counter of its own, whose cache is released with the session.
func (r *runner) read(it Item) (*score.Session, *tokens.Counter, error) {
	counter := tokens.NewCounter(r.encoding)
	s, err := it.Read(counter)
	if err == nil {
		if r.opts.InUse {
			rename(s.Messages, it.Name)
		}
		s.Mode = modeBy(r.opts.ModeOf, it.Name, s)
		if len(r.opts.Peers) > 0 {
			dropReasoning(s, counter)
		}
	}
	return s, counter, err
}

// sessionWork is the state of comparing the strategies on one session.
type sessionWork struct {
	run     *runner
	session *score.Session
	counter *tokens.Counter
	hash    string
	set     canary.Set // of canaries
	scorers map[scorerKey]*score.Scorer
	cached  int
}

type scorerKey struct {
	session *score.Session
	at, end int
}

// scorer returns the scorer of a cut. Budgets share it.
func (w *sessionWork) scorer(cut score.Cut) *score.Scorer {
	k := scorerKey{cut.Session, cut.At, cut.End}
	if s, ok := w.scorers[k]; ok {
		return s
	}
	s := score.NewScorer(cut, score.Common())
	if w.scorers == nil {
		w.scorers = map[scorerKey]*score.Scorer{}
	}
	w.scorers[k] = s
	return s
}

func (w *sessionWork) trial(name string, t task) *trial {
	o := &w.run.opts
	b := &trial{session: w.session, name: name, counter: w.counter, task: t, seed: o.Seed, now: o.Now, outputs: w.run.outputs}
	if w.session.System != "" {
		b.system = w.counter.Count(core.Text(w.session.System))
	}
	return b
}

// task returns the rows of all strategies and bounds for one cut and budget.
func (w *sessionWork) task(ctx context.Context, name string, t task) ([]Row, error) {
	b := w.trial(name, t)
	var out []Row
	for i := range bounds {
		row, err := w.remember(b, bounds[i].Name, "bound "+bounds[i].Name, 1, func() (Row, error) {
			b.scorer = w.scorer(t.cut)
			return b.bounded(bounds[i].Name), ctx.Err()
		})
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	for i := range w.run.strategies {
		s := &w.run.strategies[i]
		b, ok := b.sizedAs(s.SizeOf, out)
		if !ok {
			continue
		}
		row, err := w.repeated(ctx, b, s)
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

// sizedAs returns a trial whose budget is the size of another strategy's result; b itself if other is empty. It
// returns false if there is no such result.
func (b *trial) sizedAs(other string, rows []Row) (*trial, bool) {
	if other == "" {
		return b, true
	}
	for i := range rows {
		if r := &rows[i]; r.Strategy == other && r.measured() && r.After > 0 {
			sized := *b
			sized.task.room = r.After
			return &sized, true
		}
	}
	return nil, false
}

// remember returns the row from the cache, or measures it and adds it to the cache. A row is not cached if a provider
// failed or could not work, even if another provider replaced it: the next run may succeed.
func (w *sessionWork) remember(b *trial, strategy, key string, run int, measure func() (Row, error)) (Row, error) {
	if w.run.cache == nil || key == "" {
		return measure()
	}
	k := cacheKey(w.hash+" "+w.session.Source, key, w.run.opts.Encoding, w.run.opts.Seed, b.task, run)
	var row Row
	if w.run.cache.get(k, &row) && row.Values != nil {
		w.cached++
		fresh := b.row(strategy)
		row.Strategy, row.Session, row.Source, row.Mode = strategy, fresh.Session, fresh.Source, fresh.Mode
		return row, nil
	}
	row, err := measure()
	if err != nil || row.Outcome == core.OutcomeFailed || row.passing {
		return row, err
	}
	return row, w.run.cache.put(k, row)
}
