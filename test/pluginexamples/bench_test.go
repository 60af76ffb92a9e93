//go:build unix

package pluginexamples_test

import (
	"fmt"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit/benchdata"
)

var transports = []struct {
	name      string
	plaintext bool
}{{"plain", true}, {"mTLS", false}}

func transport(plaintext bool) func(*supervise.Spec, *supervise.Options) {
	return func(s *supervise.Spec, _ *supervise.Options) { s.Plaintext = plaintext }
}

// BenchmarkStart measures a whole life: the folder is copied and hashed, the process is started,
// described, configured and called, and ends.
func BenchmarkStart(b *testing.B) {
	for _, l := range languages {
		for _, tr := range transports {
			b.Run(l.name+"/"+tr.name, func(b *testing.B) {
				for b.Loop() {
					p := open(b, l.tricks, "", transport(tr.plaintext))
					if _, err := p.Condense(b.Context(), request("nothing")); err != nil {
						b.Fatal(err)
					}
					if err := p.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCall measures a call to a running process: with a strategy that does nothing, which is
// the cost of the protocol, and with the example's.
func BenchmarkCall(b *testing.B) {
	for _, l := range languages {
		for _, tr := range transports {
			for name, f := range map[string]folder{"nothing": l.tricks, l.exampleName: l.example} {
				p := open(b, f, "", transport(tr.plaintext))
				if err := p.Ping(b.Context()); err != nil { // which starts it
					b.Fatal(err)
				}
				for _, size := range []int{100 << 10, 1 << 20, 10 << 20} {
					req := history(size)
					b.Run(fmt.Sprintf("%s/%s/%s/%dKB", l.name, name, tr.name, size>>10), func(b *testing.B) {
						b.SetBytes(int64(size))
						for b.Loop() {
							if _, err := p.Condense(b.Context(), req); err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			}
		}
	}
}

// history returns a request with about size bytes of an agent's session.
func history(size int) *core.Request {
	const perMessage = 520 // of benchdata
	req := coretest.HalfRequest(coretest.Conversation(benchdata.Messages(size / perMessage)...))
	req.Instructions = "nothing"
	return req
}
