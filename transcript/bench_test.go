package transcript_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// longHistory is a coding session of n messages and about 500 bytes each, in format.
func longHistory(tb testing.TB, n int, format string) []byte {
	tb.Helper()
	var messages []core.Message
	code := strings.Repeat("\tif err := run(ctx, \"step\"); err != nil {\n\t\treturn fmt.Errorf(\"step: %w\", err)\n\t}\n", 9)
	for i := 0; len(messages) < n; i++ {
		call := fmt.Sprintf("toolu_%06d", i)
		messages = append(messages,
			core.Message{ID: fmt.Sprint("a", i), Role: core.RoleUser, Parts: []core.Part{core.Text("Look at the next file, please, and tell me what it does.")}},
			core.Message{ID: fmt.Sprint("b", i), Role: core.RoleAssistant, Parts: []core.Part{
				core.Text("I will read it now."),
				core.ToolCall{ID: call, Name: "read_file", Args: fmt.Sprintf(`{"path":"internal/pkg%d/file.go","limit":200}`, i)},
			}},
			core.Message{ID: fmt.Sprint("c", i), Role: core.RoleUser, Parts: []core.Part{
				core.ToolResult{CallID: call, Content: []core.Part{core.Text(code)}},
			}},
			core.Message{ID: fmt.Sprint("d", i), Role: core.RoleAssistant, Parts: []core.Part{core.Text(strings.Repeat("It runs the steps in order and stops at the first error. ", 4))}})
	}
	d := &transcript.Document{Journal: history.New()}
	if err := d.Journal.Append(messages[:n]...); err != nil {
		tb.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := d.Write(&out, format); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func BenchmarkRead(b *testing.B) {
	for _, format := range []string{"anthropic", "openai", "trace", "condense"} {
		data := longHistory(b, 10_000, format)
		b.Run(format, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Format: format}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	data := longHistory(b, 10_000, "anthropic")
	d, err := transcript.Read(bytes.NewReader(data), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, format := range []string{"anthropic", "openai", "condense"} {
		b.Run(format, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Write(io.Discard, format); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDetect(b *testing.B) {
	data := longHistory(b, 10_000, "anthropic")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := transcript.Detect(data); err != nil {
			b.Fatal(err)
		}
	}
}
