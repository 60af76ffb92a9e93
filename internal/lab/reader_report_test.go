package lab_test

import (
	"testing"

	"github.com/condensehq/condense/internal/lab"
)

// TestAnsweredHasAnInterval: of several sessions a share has its interval, which is wide for few; of one it has none.
func TestAnsweredHasAnInterval(t *testing.T) {
	r := &lab.ReaderReport{}
	for i, want := range []string{"1.00 of 4", "0.75 [0.50, 1.00] of 8", "0.67 [0.50, 1.00] of 12"} {
		r.Answers = append(r.Answers, lab.ReaderAnswers{Budget: "12%", Strategy: "smart", Points: map[string]float64{"files": []float64{4, 2, 2}[i]}, Asked: map[string]int{"files": 4}})
		if got := r.Answered("12%", "smart", "files"); got != want {
			t.Errorf("%d sessions: %s, want %s", i+1, got, want)
		}
		if all, kind := r.Answered("12%", "smart", ""), r.Answered("12%", "smart", "next"); all != want || kind != "0.00 of 0" {
			t.Errorf("%d sessions: %s in all, %s", i+1, all, kind)
		}
	}
}
