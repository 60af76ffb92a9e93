package lab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/size"
)

// Conclusion is the verdicts over all modes in one sentence; empty if there are none.
func (r *Report) Conclusion() string {
	var few, open, bests []string // two lists of budgets, and the strategies that are shown to be best
	at := map[string][]string{}   // their budgets
	var ahead *Verdict
	for i := range r.Verdicts {
		switch v := &r.Verdicts[i]; {
		case v.Mode != "":
		case v.Few:
			few = append(few, v.Budget)
		case v.Shown:
			if at[v.Best] == nil {
				bests = append(bests, v.Best)
			}
			at[v.Best] = append(at[v.Best], v.Budget)
		default:
			open = append(open, v.Budget)
			if ahead == nil && v.Best != "" {
				ahead = v
			}
		}
	}
	switch {
	case len(bests) == 0 && ahead != nil && len(ahead.Ties) > 0:
		return fmt.Sprintf("No strategy is shown to keep most of what was needed later: %s is ahead, but not shown to be better than %s.", ahead.Best, ahead.Ties[0])
	case len(bests) == 0 && len(open) > 0:
		return "No strategy is shown to keep most of what was needed later."
	case len(bests) == 0 && len(few) > 0:
		return fmt.Sprintf("%s are not enough for a verdict.", size.Plural(len(r.Sessions), "session"))
	case len(bests) == 0:
		return ""
	}
	var parts []string
	for _, best := range bests {
		what := " keeps most of what was needed later"
		if len(parts) > 0 {
			what = " does"
		}
		parts = append(parts, best+what+" at "+listed(at[best]))
	}
	if rest := slices.Concat(open, few); len(rest) > 0 {
		parts = append(parts, "at "+listed(rest)+" the data do not decide")
	}
	return strings.Join(parts, "; ") + "."
}

// listed joins words with commas and a last and.
func listed(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}

// Conclusion says in one sentence which policy costs least of those that lose little, against what the agents did themselves, or else
// against whole histories, at the first prices; empty without such policies.
func (r *ReplayReport) Conclusion() string {
	var base, best *ReplayLine
	epochs := 0
	for i := range r.Lines {
		l := &r.Lines[i]
		epochs += l.Epochs
		switch {
		case l.Scope != ScopeAll || len(r.Tariffs) > 0 && l.Tariff != r.Tariffs[0].Name:
		case l.Policy == Recorded, l.Policy == untouched && (base == nil || base.Policy != Recorded):
			base = l
		case l.Policy == untouched, l.Failed > 0, l.Values["lost"].Mean > maxLost:
		case best == nil || l.USD < best.USD:
			best = l
		}
	}
	switch {
	case base == nil || len(r.Policies) < 2: //nolint:mnd // nothing to compare
		return ""
	case epochs == 0:
		return "Nothing was condensed: no session is long enough for this window."
	case best == nil || best.USD >= base.USD:
		return fmt.Sprintf("No policy that loses at most 2 %% of what was used costs less than %s.", base.Policy)
	}
	few := ""
	if best.Sessions < fewSessions {
		few = ", too few to rely on"
	}
	return fmt.Sprintf("%s costs least of those that lose at most 2 %% of what was used: %s, %.0f %% less than %s (%s), on %s%s.", best.Policy,
		size.Dollars(best.USD, 2), 100*(1-best.USD/base.USD), base.Policy, size.Dollars(base.USD, 2), size.Plural(best.Sessions, "session"), few) //nolint:mnd // percent
}
