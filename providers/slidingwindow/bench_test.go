package slidingwindow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// session returns n messages in the shape of a coding session: the user's results of
// tools of about 1,000 bytes, the assistant's words and calls.
func session(n int) []core.Message {
	out := make([]core.Message, 0, n)
	body := strings.Repeat("func Open(name string) (*File, error) { return OpenFile(name, O_RDONLY, 0) }\n", 12)
	for i := 0; len(out) < n; i++ {
		id := fmt.Sprint("call", i)
		out = append(out,
			coretest.Assistant(core.Text("I look at the next file."), core.ToolCall{ID: id, Name: "read_file", Args: fmt.Sprintf(`{"path":"src/file%d.go"}`, i)}),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(body)}}, core.Text("go on")))
	}
	out = append([]core.Message{coretest.User(core.Text("Fix the build."))}, out[:n-1]...)
	return coretest.Conversation(out...)
}

// BenchmarkTruncate is truncation of n messages to half their tokens, counts cached, by
// the provider alone and through the chain, which checks the result.
func BenchmarkTruncate(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		req := coretest.HalfRequest(session(n))
		p := slidingwindow.New(slidingwindow.DefaultConfig())
		b.Run(fmt.Sprintf("provider/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Condense(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
		chain, err := core.NewChain([]core.NamedProvider{{Name: "window", Provider: p}}, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("chain/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := chain.Run(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
