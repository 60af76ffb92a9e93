package comparecmd

import (
	"fmt"
	"io"
	"strconv"

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
		spread := append([]string{"strategy", "what", ">runs"}, titles[3:]...)
		t := newRunsTable(markdown, 2, append(titles, ">first lost", ">old value stays", ">and no new one"), spread)
		for i := from; i < to; i++ {
			l := &r.CanaryLines[i]
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
			lost := "never"
			if l.FirstLost > 0 {
				lost = strconv.Itoa(l.FirstLost)
			}
			row = append(row, lost, share(l.Stale), share(l.Misled))
			t.row(l.Strategy, row, runs > 0, append([]any{l.Strategy, string(l.Type), runs}, apart...))
		}
		t.print(w, "canaries, budget "+r.CanaryLines[from].Budget+" of what is condensed", width)
	}
}

func share(e *lab.Estimate) string {
	if e == nil {
		return ""
	}
	return strconv.FormatFloat(e.Mean, 'f', 3, 64)
}
