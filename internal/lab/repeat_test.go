package lab_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
)

// A moody provider asks a model for a summary, which is longer or shorter every time and costs a dollar.
type moody struct {
	calls *atomic.Int64
	fails int64 // the call that fails; 0: none
}

func (m moody) Condense(_ context.Context, req *core.Request) (*core.Result, error) {
	n := m.calls.Add(1)
	if n == m.fails {
		return nil, errors.New("overloaded")
	}
	summary := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(strings.Repeat("It went well. ", int(n%3)*40+1))}}
	return &core.Result{Messages: core.KeepRequest(req, []core.Message{summary}), Usage: core.Usage{Calls: 1, InputTokens: 1000, USD: 1}}, nil
}

func (m moody) EstimateCost(context.Context, *core.Request) (core.Usage, error) {
	return core.Usage{Calls: 1, InputTokens: 1000, USD: 1}, nil
}

func moodily(fails int64) (lab.Strategy, *atomic.Int64) {
	calls := new(atomic.Int64)
	return lab.Strategy{Name: "moody", Key: "moody", Provider: moody{calls, fails}}, calls
}

func rowsOf(r *lab.Report, strategy string) []lab.Row {
	var out []lab.Row
	for _, row := range r.Rows {
		if row.Strategy == strategy {
			out = append(out, row)
		}
	}
	return out
}

// What asks a model runs three times; a row has the means, and a table how far apart the runs are. What asks none
// runs once.
func TestRepeat(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s, calls := moodily(0)
	opts := lab.Options{Budgets: budgets(t, "25%"), Cache: t.TempDir(), Now: still}
	items := small()[:3]
	plan, err := lab.NewPlan(t.Context(), items, []lab.Strategy{s, window("window", "budget")}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	var last lab.Progress
	opts.Progress = func(p lab.Progress) { last = p }
	r := run(t, items, opts, s, window("window", "budget"))
	rows := rowsOf(r, "moody")
	if int(calls.Load()) != 3*len(rows) || plan.Usage.Calls != 3*len(rows) || plan.Usage.USD != float64(3*len(rows)) || plan.Rows != 4*len(rows) || last.USD != plan.Usage.USD {
		t.Errorf("%d calls and %v USD for %d rows; planned %+v", calls.Load(), last.USD, len(rows), plan)
	}
	for _, row := range rows {
		if len(row.Runs) != 3 || row.Usage.Calls != 3 || row.Values["calls"] != 1 {
			t.Fatalf("%d runs, usage %+v, calls %v: %+v", len(row.Runs), row.Usage, row.Values["calls"], row)
		}
		sum := 0.0
		for _, run := range row.Runs {
			sum += run.Values[lab.MeasureSize]
		}
		if got := row.Values[lab.MeasureSize]; math.Abs(got-sum/3) > 1e-12 {
			t.Errorf("size %v is not the mean of the runs, %v", got, sum/3)
		}
	}
	e := line(t, r, "25%", "moody").Values[lab.MeasureSize]
	means := [3]float64{} // over the cuts of a session, then over sessions
	bySession := map[string][]lab.Row{}
	for _, row := range rows {
		bySession[row.Session] = append(bySession[row.Session], row)
	}
	for _, own := range bySession {
		for k := range means {
			for _, row := range own {
				means[k] += row.Runs[k].Values[lab.MeasureSize] / float64(len(own)) / float64(len(bySession))
			}
		}
	}
	mean, least, most := (means[0]+means[1]+means[2])/3, min(means[0], means[1], means[2]), max(means[0], means[1], means[2])
	squares := 0.0
	for _, m := range means {
		squares += (m - mean) * (m - mean)
	}
	deviation := math.Sqrt(squares / 2)
	if sp := e.Runs; sp == nil || sp.Runs != 3 || !near(sp.Least, least) || !near(sp.Most, most) || !near(sp.Deviation, deviation) || !near(e.Mean, mean) || sp.Least >= sp.Most {
		t.Errorf("spread %+v around %v, want %v to %v around %v, deviation %v", e.Runs, e.Mean, least, most, mean, deviation)
	}
	for _, row := range rowsOf(r, "window") {
		if row.Runs != nil {
			t.Error("truncation ran several times")
		}
	}
	if e := line(t, r, "25%", "window").Values[lab.MeasureSize]; e.Runs != nil {
		t.Error("truncation has a spread")
	}

	// Every run is in the cache by itself: more of them cost only the difference, and fewer nothing.
	asked := calls.Load()
	if again := run(t, items, opts, s, window("window", "budget")); encode(t, again) != encode(t, r) {
		t.Error("from the cache comes another report")
	}
	opts.Repeat = 5
	plan, err = lab.NewPlan(t.Context(), items, []lab.Strategy{s}, &opts)
	if err != nil || plan.Cached != 3*len(rows) || plan.Usage.Calls != 2*len(rows) {
		t.Errorf("planned for two more runs: %+v (%v)", plan, err)
	}
	run(t, items, opts, s)
	opts.Repeat = 1
	one := run(t, items, opts, s)
	if got := calls.Load() - asked; got != int64(2*len(rows)) {
		t.Errorf("%d more calls for five runs in place of three, want %d", got, 2*len(rows))
	}
	warned := false
	for _, x := range one.Warnings {
		warned = warned || x.Strategy == "moody" && strings.Contains(x.Text, "ran once")
	}
	if !warned || rowsOf(one, "moody")[0].Runs != nil {
		t.Errorf("a single run of what asks a model has no warning: %v", one.Warnings)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// A run that fails is counted, not hidden by the others, and is tried again by the next comparison.
func TestRepeatWithAFailure(t *testing.T) {
	t.Parallel()
	for _, fails := range []int64{1, 2} {
		s, calls := moodily(fails)
		opts := lab.Options{Budgets: budgets(t, "25%"), Cache: t.TempDir()}
		r := run(t, small()[:1], opts, s)
		row := rowsOf(r, "moody")[0]
		if len(row.Runs) != 3 || row.Runs[fails-1].Outcome != core.OutcomeFailed || row.Outcome == core.OutcomeFailed || row.Values[lab.MeasureSize] == 0 {
			t.Fatalf("run %d fails: %+v", fails, row)
		}
		warned := false
		for _, w := range r.Warnings {
			warned = warned || strings.Contains(w.Text, "no result at 1 of") && strings.Contains(w.Text, "runs") && strings.Contains(w.Text, "overloaded")
		}
		if !warned {
			t.Errorf("no warning of the run that failed: %v", r.Warnings)
		}
		before := calls.Load()
		if run(t, small()[:1], opts, s); calls.Load() != before+1 {
			t.Errorf("%d calls for the run that failed", calls.Load()-before)
		}
	}
}

// At the cost limit no further run begins.
func TestRepeatLimit(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s, calls := moodily(0)
	if _, err := lab.Run(t.Context(), small()[:1], []lab.Strategy{s}, &lab.Options{Budgets: budgets(t, "25%"), MaxUSD: 2}); !errors.Is(err, lab.ErrMaxCost) || calls.Load() != 2 {
		t.Errorf("got %v after %d calls for a dollar each", err, calls.Load())
	}
	if _, err := lab.Run(t.Context(), nil, []lab.Strategy{s}, &lab.Options{Repeat: -1}); err == nil || !strings.Contains(err.Error(), "repeat -1") {
		t.Errorf("-1 runs: %v", err)
	}
}

// Rounds and canaries of what asks a model are repeated, too: every run is in the cache by itself, the means are over
// all runs, and the lines say how far apart they are.
func TestRepeatRoundsAndCanaries(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	for what, path := range map[string]string{"rounds": "demo:context-evaluator", "canaries": "canaries:demo:context-evaluator"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, calls := moodily(0)
			opts := lab.Options{Budgets: budgets(t, "20%"), Rounds: 2, Cache: t.TempDir(), Now: still}
			items, err := lab.Find(path)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := lab.NewPlan(t.Context(), items, []lab.Strategy{s}, &opts)
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, items, opts, s, window("window", "budget"))
			asked := calls.Load()
			if n := plan.Usage.Calls; n < int(asked) || n%3 != 0 || what == "rounds" && n != int(asked) { // how many rounds there will be with canaries is an estimate
				t.Errorf("%d calls were planned, %d made", plan.Usage.Calls, asked)
			}
			// values by strategy and run, of what is left after the first round
			values, apart := map[string]map[int]float64{}, map[string]*lab.Estimate{}
			put := func(strategy string, run int, v float64) {
				if values[strategy] == nil {
					values[strategy] = map[int]float64{}
				}
				values[strategy][run] = v
			}
			for _, x := range r.Rounds {
				if x.Round == 1 {
					put(x.Strategy, x.Run, *x.Once)
				}
			}
			for _, l := range r.RoundLines {
				if e := l.Values["once"]; l.Round == 1 {
					apart[l.Strategy] = &e
				}
			}
			for _, x := range r.Canaries {
				if x.Type == "rule" {
					put(x.Strategy, x.Run, float64(x.Kept[0])/float64(x.Planted[0]))
				}
			}
			for _, l := range r.CanaryLines {
				if l.Type == "rule" {
					apart[l.Strategy] = &l.Kept[0]
				}
			}
			if len(values["moody"]) != 3 || len(values["window"]) != 1 {
				t.Fatalf("runs of the first round: %v", values)
			}
			first, second, third := values["moody"][0], values["moody"][2], values["moody"][3]
			if e := apart["moody"]; e.Runs == nil || e.Runs.Runs != 3 || !near(e.Mean, (first+second+third)/3) || !near(e.Runs.Least, min(first, second, third)) || !near(e.Runs.Most, max(first, second, third)) {
				t.Errorf("%+v with %+v, of runs that left %v", e, e.Runs, values["moody"])
			}
			if e := apart["window"]; e.Runs != nil {
				t.Errorf("truncation has a spread: %+v", e.Runs)
			}
			if again := run(t, items, opts, s, window("window", "budget")); encode(t, again) != encode(t, r) || calls.Load() != asked {
				t.Errorf("from the cache comes another report, or %d more calls", calls.Load()-asked)
			}
			if encode(t, lab.Concluded(r)) != encode(t, r) {
				t.Error("concluded again it is another report")
			}
			opts.Repeat = 1
			warned := false
			for _, w := range run(t, items, opts, s).Warnings {
				warned = warned || w.Strategy == "moody" && strings.Contains(w.Text, "ran once")
			}
			if !warned || calls.Load() != asked {
				t.Errorf("a single run has no warning, or cost %d calls", calls.Load()-asked)
			}
		})
	}
}
