package compare

import (
	"fmt"

	"github.com/condensehq/condense/core"
)

// From where on a strategy is not what it looks like.
const (
	warnFailed   = 0.02 // share of the cuts at which it failed or was rejected
	warnOver     = 0.05 // share of the cuts at which it was over the budget
	warnForetold = 0.05 // share of the future's new words that it has
	warnBare     = 0.30 // by how much plain recall is above grounded
	warnNothing  = 0.01 // tokens left, of the budget
	fewSessions  = 6    // below, no interval is believed
)

// warnings returns what a reader should know, and marks the strategies that are unfit.
func (a *analysis) warnings() []Warning {
	var out []Warning
	add := func(strategy string, unfit bool, format string, args ...any) {
		out = append(out, Warning{Strategy: strategy, Unfit: unfit, Text: fmt.Sprintf(format, args...)})
		if unfit {
			a.unfit[strategy] = true
		}
	}
	if a.Partial {
		add("", false, "stopped before all sessions were done: the numbers are of those that were")
	}
	if n := len(a.Sessions); n < fewSessions {
		add("", false, "%d sessions: too few for a verdict, which needs %d of a mode", n, fewSessions)
	}
	for _, s := range a.candidates() {
		rows := a.rowsOf(s)
		if len(rows) == 0 {
			continue
		}
		n := float64(len(rows))
		failed, over, told, bare, nothing := 0, 0, []float64(nil), []float64(nil), 0
		example := ""
		for _, r := range rows {
			if !r.measured() {
				failed++
				if example == "" {
					example = r.Error
				}
				continue
			}
			if r.Values[MeasureSize] > overSize {
				over++
			}
			if r.Values[MeasureSize] < warnNothing {
				nothing++
			}
			if v, ok := r.Values["foretold"]; ok {
				told = append(told, v)
			}
			if v, ok := r.Values["plain"]; ok {
				bare = append(bare, v-r.Values["grounded"])
			}
		}
		outcomes := a.outcomes(s)
		if float64(failed) > warnFailed*n {
			add(s, true, "no result at %d of %d cuts (%d rejected as unlawful, %d failed); the means are over the others. The first: %s",
				failed, len(rows), outcomes[core.OutcomeRejected], outcomes[core.OutcomeFailed], example)
		}
		if float64(over) > warnOver*n {
			add(s, true, "over the budget at %d of %d cuts: it is compared with others at a size that it was not given", over, len(rows))
		}
		if len(told) > 0 && mean(told) > warnForetold {
			add(s, true, "it has %.0f %% of the words that were first said after the cut: it knows the future", 100*mean(told))
		}
		if len(bare) > 0 && mean(bare) > warnBare {
			add(s, true, "names are kept without the text around them (plain recall is %.2f above grounded): a list of names is no memory", mean(bare))
		}
		if float64(nothing) > n/2 {
			add(s, true, "nothing is left at %d of %d cuts", nothing, len(rows))
		}
	}
	return out
}
