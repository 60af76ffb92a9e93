package native_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/testkit/benchdata"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/tokens"
)

// BenchmarkCondense is everything but the model, for a conversation of 160,000 tokens and
// 50 files that were read: the request is made, the answer is there at once, files are
// folded, the result is checked and recorded on disk. The messages are measured before, as
// in a host; what is made of them is counted for the first time.
func BenchmarkCondense(b *testing.B) {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		b.Fatal(err)
	}
	counter := tokens.NewCounter(encoding)
	var messages []core.Message
	for n := 1000; ; n += 20 {
		messages = benchdata.Messages(n)
		core.Measure(counter, messages)
		if used := (&core.Request{Messages: messages}).Tokens(); used >= 160_000 {
			break
		}
	}
	dir := b.TempDir()
	var files []string
	for i := range 50 {
		name := fmt.Sprintf("file%d.go", i)
		var src strings.Builder
		fmt.Fprintf(&src, "package file\n\n")
		for j := range 40 {
			fmt.Fprintf(&src, "// Do%d does it.\nfunc Do%d(name string, n int) error {\n\tif n > %d {\n\t\treturn nil\n\t}\n\treturn call(name, n)\n}\n\n", j, j, i)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src.String()), 0o600); err != nil {
			b.Fatal(err)
		}
		files = append(files, name)
	}
	for _, settings := range []string{`{"preset":"fresh_start"}`, `{"preset":"rolling"}`, `{"request":"native"}`, `{"request":"prefix"}`} {
		b.Run(strings.NewReplacer(`"`, "", "{", "", "}", "").Replace(settings), func(b *testing.B) {
			gen := &fake{info: model.Info{Window: 200_000}, answer: say(strings.Repeat("What was said. ", 400))}
			chain, err := core.NewChain([]core.NamedProvider{{Name: "summary", Provider: open(b, settings, gen)}}, nil)
			if err != nil {
				b.Fatal(err)
			}
			req := &core.Request{
				Messages: messages, Counter: counter, Trigger: core.TriggerAutomatic, FilesRead: files, Dir: dir,
				Budget: core.Budget{Window: 200_000, Limit: 172_000, Target: 100_000},
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				journal, err := history.Create(filepath.Join(b.TempDir(), "journal.jsonl"), json.RawMessage(nil))
				if err != nil {
					b.Fatal(err)
				}
				if err := journal.Append(messages...); err != nil {
					b.Fatal(err)
				}
				gen.asks = nil
				req.Counter = tokens.NewCounter(encoding) // which remembers nothing
				b.StartTimer()
				done, err := chain.Run(b.Context(), req)
				if err != nil {
					b.Fatal(err)
				}
				if err := journal.Condense(history.Condensation{ID: "c", Provider: done.Provider, Edit: done.Edit}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := journal.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
