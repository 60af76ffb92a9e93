package score_test

import (
	"os"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/value"
	"github.com/condensehq/condense/tokens"
)

// BenchmarkRecall measures, on the demo sessions or those of CONDENSE_TRACES_DIR, what it costs to get from what a
// quarter of the tokens keeps to what half of them keeps by recall, if the future is known: whole parts, and up to
// seven lines at a time. Tokens are shares of the prefix; a call has 60 tokens.
func BenchmarkRecall(b *testing.B) {
	items := lab.Demo()
	if dir := os.Getenv("CONDENSE_TRACES_DIR"); dir != "" {
		var err error
		if items, err = lab.Find(dir); err != nil {
			b.Fatal(err)
		}
	}
	e, err := tokens.Open("o200k_base")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		sum, n := map[string]float64{}, 0.0
		for _, it := range items {
			c := tokens.NewCounter(e)
			s, err := it.Read(c)
			if err != nil {
				b.Fatal(err)
			}
			for _, cut := range score.Cuts(s, c) {
				if cut.Compaction >= 0 {
					continue
				}
				at := func(percent int) []core.Message {
					res, err := value.Shorten(b.Context(), cut.Prefix(), value.Options{Room: cut.Tokens * percent / 100, Counter: c})
					if err != nil {
						b.Fatal(err)
					}
					return res.Messages
				}
				sc := score.NewScorer(cut, score.Common())
				quarter := at(25)
				was, ok := sc.Score(quarter).Panel()
				target, _ := sc.Score(at(50)).Panel()
				if !ok {
					continue
				}
				n++
				sum["panel-25%"] += was
				sum["panel-50%"] += target
				for name, whole := range map[string]bool{"parts": true, "lines": false} {
					calls, used, reached := sc.RecallCost(quarter, target, whole, 60)
					sum[name+"-calls"] += float64(calls)
					sum[name+"-share"] += used / float64(cut.Tokens)
					sum[name+"-panel"] += reached
				}
			}
		}
		for name, v := range sum {
			b.ReportMetric(v/n, name)
		}
	}
}
