package bench_test

import (
	"fmt"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/benchdata"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/tokens"
)

// BenchmarkTruncate truncates to half the tokens, with all tokens counted before. The peers were timed on
// this task.
//
//	provider  chooses the messages, which is what most peers do
//	chain     also copies the input, checks the result against the rules, measures it and computes the
//	          difference
//	manage    also decides whether it is due, records the condensation for undo, and makes the report.
//	          Undo is not timed
func BenchmarkTruncate(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		messages := benchdata.Messages(n)
		counter := tokens.NewCounter(encoding(b))
		core.Measure(counter, messages)
		req := &core.Request{Messages: messages, Trigger: core.TriggerAutomatic, Counter: counter}
		used := req.Tokens()
		half := used / 2
		req.Budget = core.Budget{Window: used, Limit: half, Target: half}
		provider := slidingwindow.New(slidingwindow.DefaultConfig())
		chain, err := core.NewChain([]core.NamedProvider{{Name: "window", Provider: provider}}, nil)
		if err != nil {
			b.Fatal(err)
		}

		b.Run(fmt.Sprintf("provider/messages=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			clock := newClock()
			for b.Loop() {
				clock.begin()
				_, err := provider.Condense(b.Context(), req)
				clock.end()
				if err != nil {
					b.Fatal(err)
				}
			}
			clock.report(b, 1)
		})

		b.Run(fmt.Sprintf("chain/messages=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			clock := newClock()
			var got *core.ChainResult
			for b.Loop() {
				clock.begin()
				var err error
				got, err = chain.Run(b.Context(), req)
				clock.end()
				if err != nil || got.TokensAfter > half {
					b.Fatalf("got %+v, %v; want at most %d tokens", got, err, half)
				}
			}
			clock.report(b, 1)
			b.ReportMetric(float64(len(got.Messages)), "messages-left")
			b.ReportMetric(float64(got.TokensAfter), "tokens-left")
		})

		b.Run(fmt.Sprintf("manage/messages=%d", n), func(b *testing.B) {
			h, before := open(b, used, 50), open(b, 1_000_000_000, 50)
			c := conversation(b, messages)
			// Nothing was due in any turn until now.
			turn := func() {
				if r, err := before.Manage(b.Context(), c, condense.Turn{}); err != nil || r.Acted {
					b.Fatalf("got %+v, %v; want nothing done", r, err)
				}
			}
			turn()
			if d, err := h.Check(c, condense.Turn{}); err != nil || !d.Act {
				b.Fatalf("got %v, %v; want to act", d, err)
			}
			b.ReportAllocs()
			clock := newClock()
			for b.Loop() {
				clock.begin()
				r, err := h.Manage(b.Context(), c, condense.Turn{})
				clock.end()
				if err != nil || !r.Acted || r.Tokens.After > half {
					b.Fatalf("got %+v, %v; want at most %d tokens", r, err, half)
				}
				b.StopTimer()
				if err := c.Undo(r.CondensationID); err != nil {
					b.Fatal(err)
				}
				turn()
				b.StartTimer()
			}
			clock.report(b, 1)
		})
	}
}
