package lab

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/tokens"
)

// defaultRepeat is the number of runs of a strategy that asks a language model: the fewest of which a spread says
// something.
const defaultRepeat = 3

// A Repetition is one of several runs of a strategy at the same cut and budget. Its fields are those of [Row].
type Repetition struct {
	Outcome core.Outcome       `json:"outcome"`
	Error   string             `json:"error,omitempty"`
	Values  map[string]float64 `json:"values"`
}

// A Spread says how far apart the runs of a strategy are. The mean of a run is over the same cuts and sessions as that of
// all runs. Where a run has no value, that of the row is used.
type Spread struct {
	Runs int `json:"runs"`
	// Least and Most are the means of two runs, Deviation the standard deviation of the means of all.
	Least     float64 `json:"least"`
	Most      float64 `json:"most"`
	Deviation float64 `json:"deviation"`
}

// repeats reports whether s may give another result than first if it runs again: it asked a model, or was to ask one and
// failed. Everything else is deterministic.
func (s *Strategy) repeats(first *Row) bool {
	return first.Usage.Calls > 0 || s.estimates() && (!first.measured() || first.Setbacks > 0)
}

// repeated returns the row of s, measured as often as the options say if it asks a model.
func (w *sessionWork) repeated(ctx context.Context, b *trial, s *Strategy) (Row, error) {
	var runs []Row
	for run := 1; run <= w.opts.Repeat; run++ {
		row, err := w.remember(b, s.Name, s.Key, run, func() (Row, error) {
			if err := w.afford(s); err != nil {
				return Row{}, err
			}
			b.scorer = w.scorer(b.task.cut)
			row, err := b.run(ctx, s)
			w.pay(s.Name, row.Usage.USD)
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

// merged returns one row for several runs: means over those with a result.
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
	kinds := map[tokens.Kind]int{}
	for i := range runs {
		r := &runs[i]
		out.Runs = append(out.Runs, Repetition{r.Outcome, r.Error, r.Values})
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
		out.KindsAfter = kinds
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
		means[k] = mean(sessionMeans(rows, func(r *Row) (float64, bool) {
			if k < len(r.Runs) {
				if v, ok := r.Runs[k].Values[measure]; ok {
					return v, true
				}
			}
			v, ok := r.Values[measure]
			return v, ok
		}))
	}
	return &Spread{Runs: runs, Least: slices.Min(means), Most: slices.Max(means), Deviation: deviation(means, mean(means))}
}

// once warns about what a strategy that asks a model was measured with in a single run.
func (a *analysis) once(strategy string) []Warning {
	var out []Warning
	if a.Repeat <= 1 && slices.ContainsFunc(a.Rows, func(r Row) bool { return r.Strategy == strategy && r.Usage.Calls > 0 }) {
		out = append(out, Warning{Strategy: strategy, Text: fmt.Sprintf("it asks a language model and ran once, which proves nothing: the next run may differ; %d runs show the spread", defaultRepeat)})
	}
	if slices.ContainsFunc(a.Rounds, func(r Round) bool { return r.Strategy == strategy && r.Usage.Calls > 0 }) ||
		slices.ContainsFunc(a.Canaries, func(c Canary) bool { return c.Strategy == strategy && c.Usage.Calls > 0 }) {
		out = append(out, Warning{Strategy: strategy, Text: "it asks a language model, and its rounds and canaries are from one run: the next run may differ"})
	}
	return out
}
