package lab

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/size"
)

// enoughToVerify is how many sessions are divided into halves: so many that each half could have a verdict.
const enoughToVerify = 2 * fewSessions

// verify withdraws a verdict that does not hold in both halves of its sessions, or that is of a mode with too few of them, and adds to
// its text what the halves show.
func (a *analysis) verify(v *Verdict, others []string, samples int) {
	if a.Unverified || !v.Shown {
		return
	}
	if samples < enoughToVerify {
		v.Text += fmt.Sprintf("; too few %s to verify it on halves (%d of the %d needed)", a.sampled(), samples, enoughToVerify)
		if v.Mode != "" {
			v.Shown = false
			v.Text = noBest + v.Text
		}
		return
	}
	best := a.groups[group{v.Budget, v.Mode, v.Best}]
	half := halvesOf(best)
	for h := range 2 {
		least := Difference{}
		for _, n := range others {
			d := a.difference(within(best, half, h), within(a.groups[group{v.Budget, v.Mode, n}], half, h), MeasurePanel)
			d.A, d.B = v.Best, n
			if d.Sessions > 0 && (least.Sessions == 0 || d.Mean < least.Mean) {
				least = d
			}
		}
		v.Halves = append(v.Halves, least)
	}
	said := fmt.Sprintf("%+.2f against %s in one half of the %s, %+.2f against %s in the other",
		v.Halves[0].Mean, v.Halves[0].B, a.sampled(), v.Halves[1].Mean, v.Halves[1].B)
	if min(v.Halves[0].Mean, v.Halves[1].Mean) > 0 {
		v.Text += "; it holds in both halves: " + said
		return
	}
	v.Shown = false
	v.Text = noBest + v.Text + "; but it does not hold in both halves: " + said
}

func within(rows []*Row, half map[string]int, h int) []*Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r *Row) bool {
		of, known := half[r.Session]
		return !known || of != h
	})
}

// halvesOf divides the sessions of rows into two halves of about the same number. Sessions of one project are in one half, unless it has
// more than two thirds of them: the sessions of a project are alike.
func halvesOf(rows []*Row) map[string]int {
	projects, sessions := map[string][]string{}, map[string]bool{}
	for _, r := range rows {
		if p := folderOf(r.Session); !sessions[r.Session] {
			projects[p], sessions[r.Session] = append(projects[p], r.Session), true
		}
	}
	for name, of := range maps.Clone(projects) {
		if 3*len(of) > 2*len(sessions) {
			delete(projects, name)
			for _, s := range of {
				projects[s] = []string{s}
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(projects), func(x, y string) int {
		return cmp.Or(len(projects[y])-len(projects[x]), strings.Compare(x, y))
	})
	half, n := map[string]int{}, [2]int{}
	for _, name := range names {
		h := 0
		if n[1] < n[0] {
			h = 1
		}
		n[h] += len(projects[name])
		for _, s := range projects[name] {
			half[s] = h
		}
	}
	return half
}

// Winner returns the strategy that is shown to be the best of a mode under some budget and is not shown to
// be worse under another, and the reason. The winner is "" if there is none.
func (r *Report) Winner(mode string) (winner, why string) {
	var reasons []string
	var verdicts []Verdict
	for _, v := range r.Verdicts {
		if v.Mode == mode {
			verdicts = append(verdicts, v)
			reasons = append(reasons, "budget "+v.Budget+": "+v.Text)
		}
	}
	why = strings.Join(slices.Compact(reasons), "; ")
	for _, v := range verdicts {
		if v.Shown && winner == "" {
			winner = v.Best
		}
	}
	for _, v := range verdicts {
		if winner != "" && !v.Few && v.Best != winner && !slices.Contains(v.Ties, winner) {
			return "", "the budgets disagree: " + why
		}
	}
	return winner, why
}

// conclusion is the result in one sentence, the same in every output; empty if no cut was measured.
func (r *Report) conclusion() string {
	if len(r.Verdicts) == 0 {
		return ""
	}
	winner, text := r.Winner("")
	for _, v := range slices.Backward(r.Verdicts) {
		if winner != "" && v.Mode == "" && v.Shown {
			text = fmt.Sprintf("budget %s: %s", v.Budget, v.Text)
		}
	}
	if winner == "" {
		text = fmt.Sprintf("no strategy is shown to be the best of %s (%s)", size.Plural(len(r.Sessions), "session"), text)
	}
	var modes []string
	for _, mode := range r.Modes {
		if own, _ := r.Winner(mode); own != "" {
			modes = append(modes, mode+" "+own)
		}
	}
	if len(modes) > 0 {
		text += "; by mode: " + strings.Join(modes, ", ")
	}
	return text + "."
}
