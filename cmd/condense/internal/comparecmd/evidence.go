package comparecmd

import (
	"fmt"
	"io"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
)

// writeEvidence writes the shares of gold evidence kept, if there is any, with a column for every budget.
func writeEvidence(w io.Writer, r *lab.Report, markdown bool, width int) {
	rows := r.EvidenceRows()
	if len(rows) == 0 {
		return
	}
	budgets := r.EvidenceBudgets()
	titles := append([]string{"strategy", "what", ">questions"}, plain.Each(budgets, func(b string) string { return ">" + b })...)
	t := newRunsTable(markdown, 2, titles, titles)
	for _, row := range rows {
		cells, apart, several := []any{row.Strategy, row.What, row.Questions}, []any{row.Strategy, row.What, row.Questions}, false
		for _, b := range budgets {
			text, between := "", ""
			if e, ok := row.Budgets[b]; ok {
				if text = fmt.Sprintf("%.3f", e.Mean); e.Sessions > 1 {
					text += fmt.Sprintf(" ±%.3f", (e.High-e.Low)/2)
				}
				if s := e.Runs; s != nil {
					between, several = spreadText(s, 3), true
				}
			}
			cells, apart = append(cells, text), append(apart, between)
		}
		t.row(row.Strategy, cells, several, apart)
	}
	t.print(w, "evidence kept, by budget", width)
}
