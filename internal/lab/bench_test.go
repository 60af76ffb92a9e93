package lab_test

import (
	"os"
	"testing"

	"github.com/condensehq/condense/internal/lab"
)

// BenchmarkRun compares two strategies and the bounds at three shares, two windows and the
// recorded compactions, on the demo sessions or those of CONDENSE_TRACES_DIR.
func BenchmarkRun(b *testing.B) {
	items := lab.Demo()
	if dir := os.Getenv("CONDENSE_TRACES_DIR"); dir != "" {
		var err error
		if items, err = lab.Find(dir); err != nil {
			b.Fatal(err)
		}
	}
	var budgets []lab.Budget
	for _, s := range []string{"10%", "25%", "50%", "32k", "128k", "real"} {
		budget, err := lab.ParseBudget(s)
		if err != nil {
			b.Fatal(err)
		}
		budgets = append(budgets, budget)
	}
	strategies := []lab.Strategy{window("budget", "budget"), window("half", "half")}
	for b.Loop() {
		r, err := lab.Run(b.Context(), items, strategies, &lab.Options{Budgets: budgets, Jobs: 2, Rounds: 5})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(r.Rows)), "rows")
		b.ReportMetric(float64(len(r.Sessions)), "sessions")
	}
}
