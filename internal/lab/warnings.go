package lab

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
)

// Limits above which a strategy gets a warning, and below which there is no verdict.
const (
	warnFailed   = 0.02 // share of the cuts at which it failed or was rejected
	warnSetback  = 0.10 // share of the cuts at which a provider did nothing and another one replaced it
	warnOver     = 0.05 // share of the cuts at which it was over the budget
	warnForetold = 0.05 // share of the words that first appear after the cut
	warnBare     = 0.30 // plain recall minus grounded recall
	warnNothing  = 0.01 // share of the budget that is used
	fewSessions  = 6    // fewest sessions of a verdict
)

// warnings returns the warnings, and notes in a.unfit the strategies that no verdict may name.
func (a *analysis) warnings() []Warning {
	var out []Warning
	if a.Partial {
		out = append(out, Warning{Text: "stopped early: the numbers cover only the finished sessions"})
	}
	if n := len(a.Sessions); n < fewSessions && (len(a.Rows) > 0 || len(a.Evidence) == 0) { // evidence has no verdict
		out = append(out, Warning{Text: fmt.Sprintf("%s: not enough for a verdict, which needs %d of a mode", size.Plural(n, "session"), fewSessions)})
	}
	if slices.ContainsFunc(a.Sessions, func(s SessionInfo) bool { return ours(s.Name) }) {
		out = append(out, Warning{Text: "the sessions that come with the program are among those that tuned smart, and flatter it: compare on your own"})
	}
	for _, s := range a.compared() {
		out = append(out, a.once(s)...)
		out = append(out, a.setbacks(s)...)
		for _, check := range []func(*tally) string{(*tally).failed, (*tally).setback, (*tally).over, (*tally).foretold, (*tally).bare, (*tally).nothing} {
			out = append(out, a.warn(s, check)...)
		}
	}
	return out
}

// warn returns a warning for every budget at which check returns a text, or a single warning if it does so at all of
// them.
func (a *analysis) warn(strategy string, check func(*tally) string) []Warning {
	var out []Warning
	all := tally{}
	budgets := 0
	for _, b := range a.Budgets {
		rows := a.groups[group{b, "", strategy}]
		if len(rows) == 0 {
			continue
		}
		budgets++
		t := tally{}
		for _, r := range rows {
			t.repeated, all.repeated = t.repeated || len(r.Runs) > 0, all.repeated || len(r.Runs) > 0
			for k := range r.Runs {
				run := &r.Runs[k]
				one := Row{Outcome: run.Outcome, Error: run.Error, Values: run.Values}
				t.add(&one)
				all.add(&one)
			}
			if len(r.Runs) == 0 {
				t.add(r)
				all.add(r)
			}
		}
		if text := check(&t); text != "" {
			out = append(out, Warning{Strategy: strategy, Budget: b, Text: text, Unfit: true})
			a.unfit[fitness{b, strategy}] = true
		}
	}
	if text := check(&all); len(out) == budgets && text != "" {
		return []Warning{{Strategy: strategy, Text: text, Unfit: true}}
	}
	return out
}

// setbacks warns about a chain in which a provider failed and another contributed, at the budgets at which that is
// rare enough for a verdict, and about rounds in which that happened.
func (a *analysis) setbacks(strategy string) []Warning {
	few := tally{}
	for _, b := range a.Budgets {
		t := tally{}
		for _, r := range a.groups[group{b, "", strategy}] {
			t.add(r)
		}
		if t.setback() == "" {
			few.rows += t.rows
			few.setbacks += t.setbacks
			few.second = cmp.Or(few.second, t.second)
		}
	}
	var out []Warning
	if few.setbacks > 0 {
		out = append(out, Warning{Strategy: strategy, Text: few.setbackText()})
	}
	rounds, failed := 0, 0
	for i := range a.Rounds {
		if r := &a.Rounds[i]; r.Strategy == strategy {
			if rounds++; r.Setbacks > 0 || r.Outcome == core.OutcomeFailed {
				failed++
			}
		}
	}
	if failed > 0 {
		out = append(out, Warning{Strategy: strategy, Text: fmt.Sprintf("in %d of %s a provider failed, was rejected or could not work", failed, size.Plural(rounds, "round"))})
	}
	return out
}

// A tally counts the problems of rows.
type tally struct {
	rows, rejected, broken, above, empty int
	repeated                             bool // rows are single runs
	example                              string
	setbacks                             int    // rows with a result to which a provider did not contribute because it failed
	second                               string // the first error of these
	told, gap                            []float64
}

func (t *tally) add(r *Row) {
	t.rows++
	if !r.measured() {
		if r.Outcome == core.OutcomeRejected {
			t.rejected++
		} else {
			t.broken++
		}
		t.example = cmp.Or(t.example, r.Error)
		return
	}
	if r.Values[MeasureFailed] > 0 {
		t.setbacks++
		t.second = cmp.Or(t.second, r.Error)
	}
	if r.Values[MeasureSize] > overSize {
		t.above++
	}
	if r.Values[MeasureSize] < warnNothing {
		t.empty++
	}
	if v, ok := r.Values["foretold"]; ok {
		t.told = append(t.told, v)
	}
	if v, ok := r.Values["plain"]; ok {
		t.gap = append(t.gap, v-r.Values["grounded"])
	}
}

// describe returns a noun phrase for the rows.
func (t *tally) describe() string {
	if t.repeated {
		return "runs"
	}
	return "cuts"
}

func (t *tally) failed() string {
	if n := t.rejected + t.broken; float64(n) > warnFailed*float64(t.rows) {
		return fmt.Sprintf("no result at %d of %d %s (%d rejected as invalid, %d failed); the means are over the others. The first: %s",
			n, t.rows, t.describe(), t.rejected, t.broken, t.example)
	}
	return ""
}

func (t *tally) setback() string {
	if float64(t.setbacks) > warnSetback*float64(t.rows) {
		return t.setbackText()
	}
	return ""
}

func (t *tally) setbackText() string {
	return fmt.Sprintf("at %d of %d %s a provider failed, was rejected or could not work, and another one did its work. The first: %s",
		t.setbacks, t.rows, t.describe(), t.second)
}

func (t *tally) over() string {
	if float64(t.above) > warnOver*float64(t.rows) {
		return fmt.Sprintf("over the budget at %d of %d %s, and measured at that size", t.above, t.rows, t.describe())
	}
	return ""
}

func (t *tally) foretold() string {
	if len(t.told) > 0 && mean(t.told) > warnForetold {
		return fmt.Sprintf("it has %.0f %% of the words that first appear after the cut: it knows the future", 100*mean(t.told))
	}
	return ""
}

func (t *tally) bare() string {
	if len(t.gap) > 0 && mean(t.gap) > warnBare {
		return fmt.Sprintf("names are kept without the text around them (plain recall is %.2f above grounded): a list of names is no memory", mean(t.gap))
	}
	return ""
}

func (t *tally) nothing() string {
	if 2*t.empty > t.rows {
		return fmt.Sprintf("nothing is left at %d of %d %s", t.empty, t.rows, t.describe())
	}
	return ""
}
