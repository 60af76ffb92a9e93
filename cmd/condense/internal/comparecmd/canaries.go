package comparecmd

import (
	"fmt"
	"io"
	"strconv"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
)

// writeCanaries writes the surviving planted sentences, if there are any, in a table for every budget.
func writeCanaries(w io.Writer, r *lab.Report, markdown bool, width int) {
	for from, to := 0, 0; from < len(r.CanaryLines); from = to {
		rounds := 0
		for to = from; to < len(r.CanaryLines) && r.CanaryLines[to].Budget == r.CanaryLines[from].Budget; to++ {
			rounds = max(rounds, len(r.CanaryLines[to].Kept))
		}
		titles := []string{"strategy", "what", ">sessions"}
		for k := range rounds {
			titles = append(titles, fmt.Sprintf(">round %d", k+1))
		}
		t, spread := term.NewTable(append(titles, ">first lost", ">old value stays", ">and no new one")...), term.NewTable(append([]string{"strategy", "what", ">runs"}, titles[3:]...)...)
		t.Repeat(2)
		spread.Repeat(2)
		last, repeated := "", false
		for i := from; i < to; i++ {
			l := &r.CanaryLines[i]
			if !markdown && last != "" && l.Strategy != last {
				t.Divide()
			}
			last = l.Strategy
			sessions := 0
			if len(l.Kept) > 0 {
				sessions = l.Kept[0].Sessions
			}
			row, runs, apart := []any{l.Strategy, string(l.Type), sessions}, 0, []any{}
			for k := range rounds {
				text, between := "", ""
				if k < len(l.Kept) {
					text = share(&l.Kept[k])
					if s := l.Kept[k].Runs; s != nil {
						runs, between = max(runs, s.Runs), spreadText(s, 3)
					}
				}
				row, apart = append(row, text), append(apart, between)
			}
			if runs > 0 {
				spread.Row(append([]any{l.Strategy, string(l.Type), runs}, apart...)...)
				repeated = true
			}
			lost := "never"
			if l.FirstLost > 0 {
				lost = strconv.Itoa(l.FirstLost)
			}
			t.Row(append(row, lost, share(l.Stale), share(l.Misled))...)
		}
		title := "canaries, budget " + r.CanaryLines[from].Budget + " of what is condensed"
		printTable(w, t, title, markdown, width)
		if repeated {
			printTable(w, spread, title+", "+spreadTitle, markdown, width)
		}
	}
}

func share(e *lab.Estimate) string {
	if e == nil {
		return ""
	}
	return strconv.FormatFloat(e.Mean, 'f', 3, 64)
}
