package bench_test

import (
	"fmt"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/benchdata"
)

// BenchmarkCheck is the work before every request to the model: a message was added, and the host decides
// whether the conversation is too large. Every message is new, so the time includes counting half a
// kilobyte. After a tenth of its length the history is rewound, which is not timed.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			h := open(b, 1_000_000_000, 50) // never reached
			c := conversation(b, benchdata.Messages(n))
			check := func() {
				if d, err := h.Check(c, condense.Turn{}); err != nil || d.Act {
					b.Fatalf("got %v, %v; want no reason to act", d, err)
				}
			}
			check()
			last := c.View()[n-1].ID
			more, from := make([]core.Message, n/10), benchdata.Messages(n/10)
			added, generation := 0, 0
			renew := func() {
				for i := range more {
					id := fmt.Sprintf("%d.%d", generation, i)
					more[i] = core.Message{ID: id, Role: from[i].Role, Parts: []core.Part{core.Text(id + textOf(&from[i]))}}
				}
				added = 0
				generation++
			}
			renew()
			clock := newClock()
			b.ReportAllocs()
			clock.begin()
			for b.Loop() {
				if added == len(more) {
					clock.end()
					b.StopTimer()
					if err := c.Rewind(last); err != nil {
						b.Fatal(err)
					}
					check() // what must be computed again after a rewind
					renew()
					b.StartTimer()
					clock.begin()
				}
				if err := c.Append(more[added]); err != nil {
					b.Fatal(err)
				}
				check()
				added++
			}
			clock.report(b, len(more))
		})
	}
}
