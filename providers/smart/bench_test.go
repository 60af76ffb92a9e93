package smart_test

import (
	"fmt"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/benchdata"
)

// BenchmarkCondense measures a condensation to a quarter with every text counted before,
// as it is in a session that is measured at every turn. 1,320 messages are 160,000 tokens,
// 10,000 are 1.2 million.
func BenchmarkCondense(b *testing.B) {
	for _, preset := range []string{"lossless", "balanced"} {
		for _, n := range []int{1000, 1320, 5_000, 10_000, 20_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", preset, n), func(b *testing.B) {
				p := open(b, `{"preset": "`+preset+`"}`)
				c := counter(b)
				messages := benchdata.Messages(n)
				core.Measure(c, messages)
				req := request(messages, c, 0)
				req.Budget.Target = total(messages) / 4
				for b.Loop() {
					res := condense(b, p, req)
					b.ReportMetric(float64(total(res.Messages))/float64(total(messages)), "left")
				}
				b.ReportMetric(float64(total(messages)), "tokens")
			})
		}
	}
}
