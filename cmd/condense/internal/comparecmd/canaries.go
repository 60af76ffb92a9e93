package comparecmd

import (
	"fmt"
	"io"
	"strconv"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
)

// writeCanaries writes what is left of planted sentences, a table for every budget, if there are any.
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
		t := term.NewTable(append(titles, ">first lost", ">old value stays", ">and no new one")...)
		t.Repeat(2)
		last := ""
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
			row := []any{l.Strategy, string(l.Type), sessions}
			for k := range rounds {
				text := ""
				if k < len(l.Kept) {
					text = share(&l.Kept[k])
				}
				row = append(row, text)
			}
			lost := "never"
			if l.FirstLost > 0 {
				lost = strconv.Itoa(l.FirstLost)
			}
			t.Row(append(row, lost, share(l.Stale), share(l.Misled))...)
		}
		printTable(w, t, "canaries, budget "+r.CanaryLines[from].Budget+" of what is condensed", markdown, width)
	}
}

func share(e *lab.Estimate) string {
	if e == nil {
		return ""
	}
	return strconv.FormatFloat(e.Mean, 'f', 3, 64)
}
