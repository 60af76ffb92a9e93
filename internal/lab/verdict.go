package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// A Difference says by how much A is above B, paired by cut, on the sessions where both have a result.
type Difference struct {
	Budget  string `json:"budget"` // empty: all budgets together
	Mode    string `json:"mode"`   // empty: all modes together
	Measure string `json:"measure"`
	A       string `json:"a"`
	B       string `json:"b"`
	Estimate
	// Shown reports whether the interval excludes zero, on at least six sessions.
	Shown bool `json:"shown"`
}

// NotBelow reports whether the data show that A is at most margin below B: the interval is above
// -margin, on at least six sessions.
func (d Difference) NotBelow(margin float64) bool {
	return d.samples() >= fewSessions && d.Low >= -margin
}

// Below reports whether the data show that A is more than margin below B, on at least six sessions.
func (d Difference) Below(margin float64) bool { return d.samples() >= fewSessions && d.High < -margin }

// String returns d as a sentence.
func (d Difference) String() string {
	what := "no difference shown between"
	if d.Shown && d.Mean > 0 {
		what = "better:"
	} else if d.Shown {
		what = "worse:"
	}
	return fmt.Sprintf("%s: %s %s and %s, %+.3f (95 %% interval %+.3f to %+.3f, %s)", d.Measure, what, d.A, d.B, d.Mean, d.Low, d.High, d.Of())
}

// pairMeasures are the measures of [Report.Differences], over all modes. The first two, which verdicts need, are
// there for each mode, too.
var pairMeasures = []string{MeasurePanel, MeasureGain, MeasureFar, MeasureUser, "artefacts", "errors"}

// differences returns the paired differences between all strategies except the bounds.
func (a *analysis) differences() []Difference {
	var out []Difference
	names := a.compared()
	a.scopes(func(budget, mode string) {
		for i := range names {
			for _, b := range names[i+1:] {
				for _, m := range pairMeasures {
					if mode != "" && m != MeasurePanel && m != MeasureGain {
						continue
					}
					d := a.difference(a.groups[group{budget, mode, names[i]}], a.groups[group{budget, mode, b}], m)
					if d.Sessions == 0 {
						continue
					}
					d.Budget, d.Mode, d.A, d.B = budget, mode, names[i], b
					out = append(out, d)
				}
			}
		}
	})
	return out
}

type place struct{ session, budget, cut string }

// difference pairs the rows of two strategies, or of two reports, by cut and budget.
func (a *analysis) difference(x, y []*Row, measure string) Difference {
	other := make(map[place]*Row, len(y))
	for _, r := range y {
		other[place{r.Session, r.Budget, r.Cut}] = r
	}
	e, _ := a.estimate(x, func(r *Row) (float64, bool) {
		o := other[place{r.Session, r.Budget, r.Cut}]
		if o == nil {
			return 0, false
		}
		p, ok1 := r.Values[measure]
		q, ok2 := o.Values[measure]
		return p - q, ok1 && ok2
	})
	return Difference{Measure: measure, Estimate: e, Shown: e.samples() >= fewSessions && (e.Low > 0 || e.High < 0)}
}

// Difference returns by how much strategy a is above b in a measure, over all budgets and modes. It is meant for
// tests of providers.
func (r *Report) Difference(a, b, measure string) Difference {
	d := newAnalysis(r).difference(r.bySession(a), r.bySession(b), measure)
	d.A, d.B = a, b
	return d
}

// Since returns by how much a strategy is above its result in an older report, on the cuts that both reports have.
func (r *Report) Since(old *Report, strategy, measure string) Difference {
	d := newAnalysis(r).difference(r.bySession(strategy), old.bySession(strategy), measure)
	d.A, d.B = strategy, strategy+" before"
	return d
}

func (r *Report) bySession(strategy string) []*Row {
	var out []*Row
	for i := range r.Rows {
		if r.Rows[i].Strategy == strategy {
			out = append(out, &r.Rows[i])
		}
	}
	return out
}

// A Verdict names the strategy that keeps most of the later needs, if the data show one and no other is shown to be
// better by [MeasureGain].
type Verdict struct {
	Budget string `json:"budget"`
	Mode   string `json:"mode"` // empty: all modes together
	// Best is the strategy with the highest panel; empty if there is none.
	Best string `json:"best,omitempty"`
	// Ties are the strategies that Best is not shown to be better than.
	Ties []string `json:"ties,omitempty"`
	// ByGain are the strategies that are shown to be better than Best by [MeasureGain], the best first.
	ByGain []string `json:"by_gain,omitempty"`
	// Disagreement is a sentence about ByGain; empty if there are none.
	Disagreement string `json:"disagreement,omitempty"`
	// Shown reports whether Best is shown to be better than all others, in both halves of the sessions, and none of them better by gain.
	Shown bool `json:"shown"`
	// Few reports whether there are too few sessions for a verdict.
	Few  bool   `json:"few,omitempty"`
	Text string `json:"text"`
	// Halves are the differences of Best from the strategy next to it, in each half of the sessions: see [Report.Unverified].
	Halves []Difference `json:"halves,omitempty"`
	// Losses are the measures in which Best is shown to be worse than another strategy.
	Losses []Loss `json:"losses,omitempty"`
	// AtSize compares strategies with others at the same size, over all modes: see [Strategy.SizeOf].
	AtSize []string `json:"at_size,omitempty"`
}

// A Loss is a measure in which the best strategy of a verdict is shown to be worse than another strategy.
type Loss struct {
	Measure string  `json:"measure"`
	Value   float64 `json:"value"` // mean of the best
	To      string  `json:"to"`    // the other
	Other   float64 `json:"other"` // its mean
	// Why names the blind spot of the measure, or how the verdict accounts for it.
	Why string `json:"why,omitempty"`
}

// WorseIn returns the losses as a sentence, or "".
func (v *Verdict) WorseIn() string {
	var out []string
	for _, l := range v.Losses {
		m := measureOf(l.Measure)
		format := "%s (%.2f; %.2f with %s)"
		if m.Unit == "ms" {
			format = "%s (%.1f ms; %.1f ms with %s)"
		}
		out = append(out, fmt.Sprintf(format, m.Title, l.Value, l.Other, l.To))
	}
	if len(out) == 0 {
		return ""
	}
	return v.Best + " is worse in: " + strings.Join(out, ", ")
}

// Explained returns a sentence for each loss: how to read it.
func (v *Verdict) Explained() []string {
	return plain.Each(plain.Only(v.Losses, func(l Loss) bool { return l.Why != "" }),
		func(l Loss) string { return measureOf(l.Measure).Title + ": " + l.Why })
}

// lossMeasures are the measures of [Verdict.Losses], each with an explanation.
var lossMeasures = []struct{ name, why string }{
	{MeasureUser, "counts the user's sentences only word for word; the verdict counts those that were needed later"},
	{"artefacts", "half of it is the last state of each file, which the agent can read again"},
	{"errors", "counts errors that were fixed long ago, too; the verdict counts those that were needed later"},
	{"recent", "counts only what is kept word for word: shortening long recent results makes room for older content; the verdict counts what was needed of both"},
	{"ms", "is what one condensation takes, next to the seconds of every answer of a model"},
}

// More time is a loss if it is at least lossFactor times, and lossMillis more than, another strategy's.
const (
	lossFactor = 2
	lossMillis = 10
)

// losses returns the losses of best, each against the best of the strategies that show it.
func (a *analysis) losses(t *Table, best string, others []string) []Loss {
	values := map[string]map[string]Estimate{} // by strategy
	for i := range t.Lines {
		values[t.Lines[i].Strategy] = t.Lines[i].Values
	}
	var out []Loss
	for _, m := range lossMeasures {
		name := m.name
		own, ok := values[best][name]
		if !ok {
			continue
		}
		better := measureOf(name).Better
		by := func(s string) float64 { return float64(better) * (values[s][name].Mean - own.Mean) }
		rivals := slices.DeleteFunc(slices.Clone(others), func(s string) bool {
			e, ok := values[s][name]
			return !ok || by(s) <= 0 || name == "ms" && (own.Mean < lossMillis || own.Mean < lossFactor*e.Mean)
		})
		slices.SortStableFunc(rivals, func(x, y string) int { return cmp.Compare(by(y), by(x)) })
		for _, s := range rivals {
			d := a.difference(a.groups[group{t.Budget, t.Mode, s}], a.groups[group{t.Budget, t.Mode, best}], name)
			if d.Shown && float64(better)*d.Mean > 0 {
				out = append(out, Loss{name, own.Mean, s, values[s][name].Mean, m.why})
				break
			}
		}
	}
	return out
}

// verdicts returns a verdict for every budget and mode.
func (a *analysis) verdicts() []Verdict {
	diff, gain := map[[4]string]Difference{}, map[[4]string]Difference{}
	for _, d := range a.Differences {
		if of := map[string]map[[4]string]Difference{MeasurePanel: diff, MeasureGain: gain}[d.Measure]; of != nil {
			of[[4]string{d.Budget, d.Mode, d.A, d.B}] = d
			d.Mean, d.Low, d.High = -d.Mean, -d.High, -d.Low
			of[[4]string{d.Budget, d.Mode, d.B, d.A}] = d
		}
	}
	var out []Verdict
	for i := range a.Tables {
		t := &a.Tables[i]
		var names, unfit []string
		panel := map[string]Estimate{}
		for _, l := range t.Lines {
			e, ok := l.Values[MeasurePanel]
			switch {
			case !ok || l.Bound:
			case l.Unfit:
				unfit = append(unfit, l.Strategy)
			default:
				names = append(names, l.Strategy)
				panel[l.Strategy] = e
			}
		}
		slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(panel[y].Mean, panel[x].Mean) })
		v := Verdict{Budget: t.Budget, Mode: t.Mode}
		switch {
		case len(names) == 0:
			v.Text = "no strategy to choose" + ruledOut(unfit)
		case panel[names[0]].samples() < fewSessions:
			v.Few, v.Best, v.Ties = true, names[0], names[1:]
			v.Text = fmt.Sprintf("not enough %s (%d of the %d needed)", a.sampled(), panel[names[0]].samples(), fewSessions)
		case len(names) == 1 && len(unfit) > 0:
			v.Best = names[0]
			v.Text = fmt.Sprintf("%s keeps %.2f of what was needed later, and is compared with nothing%s", v.Best, panel[v.Best].Mean, ruledOut(unfit))
		case len(names) == 1:
			v.Best = names[0]
			v.Text = fmt.Sprintf("%s keeps %.2f of what was needed later; there is no other to compare it with", v.Best, panel[v.Best].Mean)
		default:
			v.Best = names[0]
			v.Ties = append(v.Ties, plain.Only(names[1:],
				func(n string) bool { d := diff[[4]string{t.Budget, t.Mode, v.Best, n}]; return !d.Shown })...)
			v.byGain(gain, names[1:])
			switch {
			case len(v.Ties) == 0:
				second := diff[[4]string{t.Budget, t.Mode, v.Best, names[1]}]
				v.Text = fmt.Sprintf("%s keeps most of what was needed later: %.2f, %+.2f against %s (95 %% interval %+.2f to %+.2f, %s)",
					v.Best, panel[v.Best].Mean, second.Mean, names[1], second.Low, second.High, second.Of())
				if v.Shown = len(v.ByGain) == 0; !v.Shown {
					v.Text = noBest + v.Text
				}
				a.verify(&v, names[1:], panel[v.Best].samples())
			default:
				v.Text = fmt.Sprintf("no difference shown between %s", strings.Join(append([]string{v.Best}, v.Ties...), ", "))
			}
		}
		if t.Mode == "" {
			v.AtSize = a.atSize(diff, t)
		}
		if v.Best != "" && !v.Few {
			v.Losses = a.losses(t, v.Best, names[1:])
		}
		out = append(out, v)
	}
	return out
}

// noBest begins the text of a verdict whose strategy with the highest panel is not the best by gain.
const noBest = "none is called the best: "

// byGain notes the strategies that are shown to be better than the best by gain, and a sentence about them.
func (v *Verdict) byGain(gain map[[4]string]Difference, others []string) {
	of := func(n string) Difference { return gain[[4]string{v.Budget, v.Mode, n, v.Best}] }
	v.ByGain = append(v.ByGain, plain.Only(others, func(n string) bool { d := of(n); return d.Shown && d.Mean > 0 })...)
	if len(v.ByGain) == 0 {
		return
	}
	slices.SortStableFunc(v.ByGain, func(x, y string) int { return cmp.Compare(of(y).Mean, of(x).Mean) })
	first := v.ByGain[0]
	panel := v.Best + " keeps more of what was needed later"
	if slices.Contains(v.Ties, first) {
		panel = fmt.Sprintf("of what was needed later no difference is shown between %s and %s", v.Best, first)
	}
	d := of(first)
	v.Disagreement = fmt.Sprintf("The two yardsticks disagree: %s, but %s predicts better what was written next (gain %+.2f, 95 %% interval %+.2f to %+.2f, %s).",
		panel, first, d.Mean, d.Low, d.High, d.Of())
}

// ruledOut says which strategies no verdict may name.
func ruledOut(unfit []string) string {
	if len(unfit) == 0 {
		return ""
	}
	return ": warnings rule out " + strings.Join(unfit, ", ")
}

// sampled names the independent samples.
func (a *analysis) sampled() string {
	if a.ByFolder {
		return "folders"
	}
	return "sessions"
}

// atSize returns a sentence for every strategy whose budget is the size of another strategy's result.
func (a *analysis) atSize(diff map[[4]string]Difference, t *Table) []string {
	var out []string
	for i := range a.Strategies {
		s := &a.Strategies[i]
		d, ok := diff[[4]string{t.Budget, t.Mode, s.Name, s.SizeOf}]
		if !ok {
			continue
		}
		what := "no difference shown"
		if d.Shown {
			what = fmt.Sprintf("%+.2f of what was needed later", d.Mean)
		}
		out = append(out, fmt.Sprintf("%s against %s at the same size: %s (95 %% interval %+.2f to %+.2f, %s)", s.Name, s.SizeOf, what, d.Low, d.High, d.Of()))
	}
	return out
}
