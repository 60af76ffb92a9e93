package history_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// conversation returns n messages of about 1 KB of text and source, every second one a
// call or a result.
func conversation(n int) []core.Message {
	prose := strings.Repeat("the quick brown fox jumps over the lazy dog ", 11)
	ms := make([]core.Message, n)
	for i := range ms {
		m := message(fmt.Sprintf("m%d", i))
		m.Tokens = 120
		switch i % 4 {
		case 0, 2:
			m.Parts = []core.Part{core.Text(prose)}
		case 1:
			m.Role, m.Parts = core.RoleAssistant, []core.Part{core.ToolCall{ID: m.ID, Name: "read", Args: `{"path":"` + prose + `"}`}}
		case 3:
			m.Parts = []core.Part{core.ToolResult{CallID: ms[i-2].ID, Content: []core.Part{core.Text(prose)}}}
		}
		m.Source = []byte(`{"content":"` + prose + `"}`)
		ms[i] = m
	}
	return ms
}

// long returns a journal of n messages, of which the older half is hidden by five nested
// condensations, and of a last one, "end".
func long(tb testing.TB, n int) *history.Journal {
	tb.Helper()
	j := history.New()
	ms := conversation(n)
	if err := j.Append(ms...); err != nil {
		tb.Fatal(err)
	}
	last := ""
	for k := range 5 {
		var c history.Condensation
		c.ID = fmt.Sprintf("X%d", k)
		if last != "" {
			c.Edit.Hide = append(c.Edit.Hide, last)
		}
		for i := k * n / 10; i < (k+1)*n/10; i++ {
			c.Edit.Hide = append(c.Edit.Hide, ms[i].ID)
		}
		last = fmt.Sprintf("S%d", k)
		c.Edit.Insert = []core.Insert{{After: c.Edit.Hide[len(c.Edit.Hide)-1], Message: summary(last)}}
		if err := j.Condense(c); err != nil {
			tb.Fatal(err)
		}
	}
	if err := j.Append(message("end")); err != nil {
		tb.Fatal(err)
	}
	return j
}

var sizes = []int{1_000, 10_000, 100_000}

// One more message and the new size, which is what happens at every turn.
func BenchmarkAppend(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			j := long(b, n)
			ids := make([]string, b.N)
			for i := range ids {
				ids[i] = fmt.Sprintf("n%d", i)
			}
			m := message("")
			m.Tokens = 120
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				m.ID = ids[i]
				if err := j.Append(m); err != nil {
					b.Fatal(err)
				}
				if j.Tokens() == 0 || len(j.View()) == 0 {
					b.Fatal("nothing")
				}
			}
		})
	}
}

// One more message of 1.2 KB on disk, with a checksum and without.
func BenchmarkFileAppend(b *testing.B) {
	for version, header := range map[string]string{
		"2": "",
		"1": `{"condense":{"version":1,"id":"9b2f3a9e-1f1e-4a53-8c0d-0a6f1b3c5d7e"}}` + "\n",
	} {
		b.Run("version="+version, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "journal.jsonl")
			f, err := history.Create(path, nil)
			if header != "" && err == nil {
				if err = errors.Join(f.Close(), os.WriteFile(path, []byte(header), 0o600)); err == nil {
					f, _, err = history.Open(path)
				}
			}
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			m := conversation(3)[2]
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				m.ID = strconv.Itoa(i)
				if err := f.Append(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The view from scratch, as after every condensation, undo and rewind.
func BenchmarkRefresh(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			j := long(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Rewind("end"); err != nil { // drops nothing
					b.Fatal(err)
				}
			}
		})
	}
}

// A condensation of the whole view.
func BenchmarkCondense(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			j := long(b, n)
			var hide []string
			for _, m := range j.View() {
				hide = append(hide, m.ID)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c := history.Condensation{ID: fmt.Sprintf("Y%d", i), Edit: core.Edit{
					Hide:   hide,
					Insert: []core.Insert{{After: hide[len(hide)-1], Message: summary(fmt.Sprintf("T%d", i))}},
				}}
				if err := j.Condense(c); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := j.Rewind("end"); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	j := long(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		var n counting
		if err := history.Encode(&n, j); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(n))
	}
}

type counting int64

func (c *counting) Write(p []byte) (int, error) {
	*c += counting(len(p))
	return len(p), nil
}

var _ io.Writer = (*counting)(nil)

func BenchmarkDecode(b *testing.B) {
	var file bytes.Buffer
	if err := history.Encode(&file, long(b, 10_000)); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := history.Decode(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}
