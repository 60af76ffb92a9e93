package lab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/tokens"
)

// defaultRepeat is the number of runs of a strategy that asks a language model: the fewest with a meaningful spread.
const defaultRepeat = 3

// A Repetition is one of several runs of a strategy at the same cut and budget. See [Row] for its fields.
type Repetition struct {
	Outcome core.Outcome       `json:"outcome"`
	Error   string             `json:"error,omitempty"`
	Values  map[string]float64 `json:"values"`
}

// A Spread is the variation among the runs of a strategy. The mean of a run is over the same cuts and sessions as the
// mean of all runs. If a run has no value, the row's is used.
type Spread struct {
	Runs int `json:"runs"`
	// Least and Most are the means of two runs, Deviation the standard deviation of the means of all.
	Least     float64 `json:"least"`
	Most      float64 `json:"most"`
	Deviation float64 `json:"deviation"`
}

// repeats reports whether s may give another result than first if it runs again: it asked a model, or should have and
// failed. Everything else is deterministic.
func (s *Strategy) repeats(first *Row) bool {
	return first.Usage.Calls > 0 || s.estimates() && (!first.measured() || first.Setbacks > 0)
}

// repeated returns the row of s, measured as often as the options say if it asks a model.
func (w *sessionWork) repeated(ctx context.Context, b *trial, s *Strategy) (Row, error) {
	var runs []Row
	for run := 1; run <= w.run.opts.Repeat; run++ {
		row, err := w.remember(b, s.Name, s.Key, run, func() (Row, error) {
			if err := w.run.afford(s); err != nil {
				return Row{}, err
			}
			b.scorer = w.scorer(b.task.cut)
			row, err := b.run(ctx, s)
			w.run.pay(s.Name, row.Usage.USD)
			return row, err
		})
		if err != nil {
			return Row{}, err
		}
		if runs = append(runs, row); !s.repeats(&runs[0]) {
			break
		}
	}
	return merged(runs), nil
}

// merged returns one row for several runs, with means over the runs that have a result.
func merged(runs []Row) Row {
	if len(runs) == 1 {
		return runs[0]
	}
	out := runs[max(0, slices.IndexFunc(runs, func(r Row) bool { return r.measured() }))]
	usage := runs[0].Usage
	for _, r := range runs[1:] {
		usage = usage.Add(r.Usage)
	}
	out.Usage, out.Error = usage, ""
	values := map[string][]float64{}
	after, measured := 0, 0
	kinds, savedBy := map[tokens.Kind]int{}, map[string]int{}
	for i := range runs {
		r := &runs[i]
		out.Runs = append(out.Runs, Repetition{r.Outcome, r.Error, r.Values})
		out.passing = out.passing || r.passing
		out.Setbacks = max(out.Setbacks, r.Setbacks)
		out.Error = cmp.Or(out.Error, r.Error)
		for name, v := range r.Values {
			values[name] = append(values[name], v)
		}
		if r.measured() {
			measured++
			after += r.After
			for k, n := range r.KindsAfter {
				kinds[k] += n
			}
			for p, n := range r.SavedBy {
				savedBy[p] += n
			}
		}
	}
	out.Values = map[string]float64{}
	for name, v := range values {
		out.Values[name] = mean(v)
	}
	if measured > 0 {
		average := func(n int) int { return int(math.Round(float64(n) / float64(measured))) }
		out.After = average(after)
		for k := range kinds {
			kinds[k] = average(kinds[k])
		}
		for p := range savedBy {
			savedBy[p] = average(savedBy[p])
		}
		out.KindsAfter, out.SavedBy = kinds, savedBy
	}
	return out
}

// times is the number of runs of r.
func (r *Row) times() int { return max(1, len(r.Runs)) }

// spread returns the spread of a measure over the runs of a strategy, or nil if it ran once.
func spread(rows []*Row, measure string) *Spread {
	runs := 0
	for _, r := range rows {
		runs = max(runs, len(r.Runs))
	}
	if runs < 2 {
		return nil
	}
	means := make([]float64, runs)
	for k := range means {
		bySession, _ := meansBySession(rows, func(r *Row) (float64, bool) {
			if k < len(r.Runs) {
				if v, ok := r.Runs[k].Values[measure]; ok {
					return v, true
				}
			}
			v, ok := r.Values[measure]
			return v, ok
		})
		means[k] = mean(bySession)
	}
	return spreadOf(means)
}

func spreadOf(means []float64) *Spread {
	return &Spread{Runs: len(means), Least: slices.Min(means), Most: slices.Max(means), Deviation: deviation(means, mean(means))}
}

// A lap is the result of one round, or of one type of canary, for a session.
type lap interface {
	lap() (u core.Usage, failed bool)
}

// laps runs s through a session, for several rounds, as often as the options say if it asks a model. Runs that are in
// the cache are not repeated. Label completes a result with the number of its run, which is 0 for the first.
func laps[T lap](
	w *sessionWork, s *Strategy, key func(run int) string, play func() ([]T, error), label func(one *T, run int),
) (out []T, _ error) {
	for run := 1; run <= w.run.opts.Repeat; run++ {
		var v []T
		found := w.run.cache != nil && s.Key != "" && w.run.cache.get(key(run), &v)
		if !found {
			err := w.run.afford(s)
			if err != nil {
				return nil, err
			}
			if v, err = play(); err != nil {
				return nil, err
			}
		}
		asks, failed := asked(s, v)
		if !found {
			for i := range v {
				u, _ := v[i].lap()
				w.run.pay(s.Name, u.USD)
			}
			if w.run.cache != nil && s.Key != "" && !failed {
				if err := w.run.cache.put(key(run), v); err != nil {
					return nil, err
				}
			}
		}
		for i := range v {
			label(&v[i], run*min(1, run-1))
		}
		if out = append(out, v...); !asks {
			break
		}
	}
	return out, nil
}

// once warns about measurements of a strategy that asks a model if they come from a single run.
func (a *analysis) once(strategy string) []Warning {
	var out []Warning
	asked := slices.ContainsFunc(a.Rows, func(r Row) bool { return r.Strategy == strategy && r.Usage.Calls > 0 }) ||
		slices.ContainsFunc(a.Rounds, func(r Round) bool { return r.Strategy == strategy && r.Usage.Calls > 0 }) ||
		slices.ContainsFunc(a.Canaries, func(c Canary) bool { return c.Strategy == strategy && c.Usage.Calls > 0 }) ||
		slices.ContainsFunc(a.Evidence, func(e Evidence) bool { return e.Strategy == strategy && e.Usage.Calls > 0 })
	if a.Repeat <= 1 && asked {
		out = append(out, Warning{Strategy: strategy, Text: fmt.Sprintf("it asks a language model and ran once, which proves nothing: the next run may differ; %d runs show the spread", defaultRepeat)})
	}
	return out
}

// asked reports whether another run of s may differ from this one, as [Strategy.repeats] does, and whether a round of
// it failed.
func asked[T lap](s *Strategy, run []T) (asks, failed bool) {
	for i := range run {
		u, f := run[i].lap()
		asks, failed = asks || u.Calls > 0, failed || f
	}
	return asks || failed && s.estimates(), failed
}

// priceLaps adds the cost of [laps] to p; price adds one run.
func priceLaps[T lap](w *sessionWork, s *Strategy, p *Plan, key func(run int) string, price func() error) error {
	more := false // whether it is known to run more than once
	for run := 1; run == 1 || more && run <= w.run.opts.Repeat; run++ {
		var v []T
		if w.run.cache != nil && s.Key != "" && w.run.cache.get(key(run), &v) {
			asks, _ := asked(s, v)
			more = more || asks
			continue
		}
		calls := p.Usage.Calls
		if err := price(); err != nil {
			return err
		}
		more = more || p.Usage.Calls > calls
	}
	return nil
}

// A repeatedly has the values of sessions, each of one run or of several.
type repeatedly struct {
	runs []map[int]float64 // by session
	last string            // the last session added
	most int               // runs of a session
}

// add adds the value of a run; 0 and 1 are the first. Values of a session must be consecutive.
func (r *repeatedly) add(session string, run int, v float64) {
	if len(r.runs) == 0 || r.last != session {
		r.last, r.runs = session, append(r.runs, map[int]float64{})
	}
	r.runs[len(r.runs)-1][max(1, run)] = v
	r.most = max(r.most, run)
}

// estimate returns the mean over sessions, each the mean of its runs, and the variation among the runs. If a session
// has no value of a run, its mean is used.
func (r *repeatedly) estimate(s *sampler) (Estimate, bool) {
	means := make([]float64, len(r.runs))
	for i, runs := range r.runs {
		for _, k := range slices.Sorted(maps.Keys(runs)) {
			means[i] += runs[k] / float64(len(runs))
		}
	}
	e, ok := s.estimate(means)
	if ok && r.most > 1 {
		ofRuns := make([]float64, r.most)
		for k := range ofRuns {
			for i, runs := range r.runs {
				v, has := runs[k+1]
				if !has {
					v = means[i]
				}
				ofRuns[k] += v / float64(len(r.runs))
			}
		}
		e.Runs = spreadOf(ofRuns)
	}
	return e, ok
}
