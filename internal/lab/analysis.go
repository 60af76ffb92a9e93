package lab

import (
	"slices"

	"github.com/condensehq/condense/tokens"
)

// An analysis derives tables, differences and verdicts from the rows of a report.
type analysis struct {
	*Report
	sampler *sampler
	groups  map[group][]*Row // in the order of Rows
	unfit   map[fitness]bool // what no verdict may call better
}

type (
	group   struct{ budget, mode, strategy string }
	fitness struct{ budget, strategy string }
)

func newAnalysis(r *Report) *analysis {
	a := &analysis{Report: r, sampler: newSampler(r.Seed), groups: map[group][]*Row{}, unfit: map[fitness]bool{}}
	for i := range r.Rows {
		row := &r.Rows[i]
		g := group{row.Budget, "", row.Strategy}
		a.groups[g] = append(a.groups[g], row)
		if row.Mode != "" {
			g.mode = row.Mode
			a.groups[g] = append(a.groups[g], row)
		}
	}
	return a
}

// scopes calls f with every budget and mode that has rows; all modes together come first.
func (a *analysis) scopes(f func(budget, mode string)) {
	for _, b := range a.Budgets {
		for _, m := range slices.Concat([]string{""}, a.Modes) {
			if m == "" || len(a.groups[group{b, m, Oracle}]) > 0 {
				f(b, m)
			}
		}
	}
}

// tables returns the means of every budget and mode.
func (a *analysis) tables() []Table {
	a.Modes = slices.DeleteFunc(a.Modes, func(m string) bool { return m == "" })
	var out []Table
	a.scopes(func(budget, mode string) {
		t := Table{Budget: budget, Mode: mode}
		for i := range a.Strategies {
			s := &a.Strategies[i]
			if rows := a.groups[group{budget, mode, s.Name}]; len(rows) > 0 {
				t.Lines = append(t.Lines, a.line(s, rows, a.groups[group{budget, mode, Oracle}]))
			}
		}
		if len(t.Lines) > 0 {
			out = append(out, t)
		}
	})
	return out
}

func (a *analysis) line(s *StrategyInfo, rows, oracle []*Row) Line {
	l := Line{Strategy: s.Name, Bound: s.Bound, Values: map[string]Estimate{}, KindsBefore: map[tokens.Kind]int{}, KindsAfter: map[tokens.Kind]int{}}
	sessions := map[string]bool{}
	for _, r := range rows {
		l.Cuts++
		sessions[r.Session] = true
		l.Usage = l.Usage.Add(r.Usage)
		if !r.measured() {
			l.Failed++
			continue
		}
		if r.Values[MeasureSize] > overSize {
			l.Over++
		}
		for k, n := range r.KindsBefore {
			l.KindsBefore[k] += n
		}
		for k, n := range r.KindsAfter {
			l.KindsAfter[k] += n
		}
	}
	l.Sessions = len(sessions)
	l.Unfit = a.unfit[fitness{rows[0].Budget, s.Name}]
	for i := range a.Measures {
		m := &a.Measures[i]
		e, ok := a.sampler.estimate(sessionMeans(rows, valueOf(m.Name)))
		if !ok {
			continue
		}
		if m.OfOracle && s.Name != Oracle {
			if best := sessionMeans(oracle, valueOf(m.Name)); len(best) > 0 && mean(best) > 0 {
				e.OfOracle = value(e.Mean/mean(best), true)
			}
		}
		l.Values[m.Name] = e
	}
	return l
}

// sessionMeans returns the mean of value over the rows of every session, in the order of the
// rows, those for which it is not defined left out.
func sessionMeans(rows []*Row, value func(*Row) (float64, bool)) []float64 {
	var out []float64
	sum, n := 0.0, 0
	flush := func() {
		if n > 0 {
			out = append(out, sum/float64(n))
		}
		sum, n = 0, 0
	}
	for i, r := range rows {
		if i > 0 && rows[i-1].Session != r.Session {
			flush()
		}
		if v, ok := value(r); ok {
			sum += v
			n++
		}
	}
	flush()
	return out
}

// valueOf returns the value of a measure in a row. What is measured of a result needs one;
// whether it is valid does not.
func valueOf(measure string) func(*Row) (float64, bool) {
	return func(r *Row) (float64, bool) {
		v, ok := r.Values[measure]
		return v, ok
	}
}

// A Warning is something that a reader should know before believing a number.
type Warning struct {
	Strategy string `json:"strategy,omitempty"` // empty: it concerns all
	Budget   string `json:"budget,omitempty"`   // empty: it concerns all
	Text     string `json:"text"`
	// Unfit says that no verdict, on this budget if one is named, calls the strategy
	// better than another. See also [Line].
	Unfit bool `json:"unfit,omitempty"`
}

// candidates returns the strategies that are no bounds.
func (a *analysis) candidates() []string {
	var out []string
	for i := range a.Strategies {
		if !a.Strategies[i].Bound {
			out = append(out, a.Strategies[i].Name)
		}
	}
	return out
}
