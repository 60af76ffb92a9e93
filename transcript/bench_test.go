package transcript_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// longHistory is a coding session of 10,000 messages and about 500 bytes each, in format.
func longHistory(tb testing.TB, format string) []byte {
	tb.Helper()
	const n = 10_000
	var messages []core.Message
	code := strings.Repeat("\tif err := run(ctx, \"step\"); err != nil {\n\t\treturn fmt.Errorf(\"step: %w\", err)\n\t}\n", 14)
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
		data := longHistory(b, format)
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
	data := longHistory(b, "anthropic")
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
	data := longHistory(b, "anthropic")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := transcript.Detect(data); err != nil {
			b.Fatal(err)
		}
	}
}

// What encoding/json takes for the same file: with a type for every field that Read
// looks at, and for cutting the array into messages alone.
func BenchmarkEncodingJSON(b *testing.B) {
	type block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
	}
	data := longHistory(b, "anthropic")
	b.Run("typed", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			var messages []struct {
				Role    string          `json:"role"`
				Content json.RawMessage `json:"content"`
			}
			if err := json.Unmarshal(data, &messages); err != nil {
				b.Fatal(err)
			}
			for _, m := range messages {
				var words string
				var blocks []block
				if json.Unmarshal(m.Content, &words) != nil && json.Unmarshal(m.Content, &blocks) != nil {
					b.Fatal("neither")
				}
			}
		}
	})
	b.Run("cut", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			var messages []json.RawMessage
			if err := json.Unmarshal(data, &messages); err != nil {
				b.Fatal(err)
			}
		}
	})
}
