package compare_test

import (
	"os"
	"testing"

	"github.com/condensehq/condense/compare"
)

// BenchmarkRun compares two strategies and the bounds at three shares, two windows and the
// recorded compactions, on the sessions of the demonstration or of CONDENSE_TRACES_DIR.
func BenchmarkRun(b *testing.B) {
	items := compare.Demo()
	if dir := os.Getenv("CONDENSE_TRACES_DIR"); dir != "" {
		var err error
		if items, err = compare.Find(dir); err != nil {
			b.Fatal(err)
		}
	}
	var budgets []compare.Budget
	for _, s := range []string{"10%", "25%", "50%", "32k", "128k", "real"} {
		budget, err := compare.ParseBudget(s)
		if err != nil {
			b.Fatal(err)
		}
		budgets = append(budgets, budget)
	}
	strategies := []compare.Strategy{window("budget", "budget"), window("half", "half")}
	for b.Loop() {
		r, err := compare.Run(b.Context(), items, strategies, &compare.Options{Budgets: budgets, Jobs: 2, Rounds: 5})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(r.Rows)), "rows")
		b.ReportMetric(float64(len(r.Sessions)), "sessions")
	}
}
