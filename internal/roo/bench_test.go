package roo_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/roo"
)

// benchSizes are the lengths of history for which Roo's own times are known.
var benchSizes = []int{1_000, 10_000, 100_000}

// filler is the text of a message.
var filler = strings.Repeat("the quick brown fox jumps over the lazy dog; ", 5)

// newSession returns a history as the file holds it: n messages in turns, a user's tool
// result and text (about 340 bytes), an assistant's text and tool call. Tags are members
// to append to message i.
func newSession(n int, tags func(i int) string) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if i%2 == 0 {
			fmt.Fprintf(&b, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%d","content":%q},`+
				`{"type":"text","text":"go on with step %d"}],"ts":%d`, i-1, filler, i, 1_700_000_000_000+i*1000)
		} else {
			fmt.Fprintf(&b, `{"role":"assistant","content":[{"type":"text","text":%q},`+
				`{"type":"tool_use","id":"call_%d","name":"read_file","input":{"path":"src/f%d.go"}}],"ts":%d`,
				filler[:120], i, i, 1_700_000_000_000+i*1000)
		}
		b.WriteString(tags(i))
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return []byte(b.String())
}

func untagged(int) string { return "" }

// halfTruncated makes the message in the middle a marker that hides the older half.
func halfTruncated(n int) func(int) string {
	return func(i int) string {
		switch {
		case i == n/2:
			return `,"isTruncationMarker":true,"truncationId":"0b0f6b0e-7f6e-4c5e-9d53-0f8f6f3f7a11"`
		case i > 0 && i < n/2:
			return `,"truncationParent":"0b0f6b0e-7f6e-4c5e-9d53-0f8f6f3f7a11"`
		}
		return ""
	}
}

// summaryInMiddle makes the message in the middle a summary of the older half.
func summaryInMiddle(n int) func(int) string {
	return func(i int) string {
		switch {
		case i == n/2:
			return `,"isSummary":true,"condenseId":"0b0f6b0e-7f6e-4c5e-9d53-0f8f6f3f7a11"`
		case i < n/2:
			return `,"condenseParent":"0b0f6b0e-7f6e-4c5e-9d53-0f8f6f3f7a11"`
		}
		return ""
	}
}

// orphaned tags every third message with a marker that does not exist.
func orphaned(i int) string {
	if i%3 == 0 {
		return `,"truncationParent":"0b0f6b0e-7f6e-4c5e-9d53-0f8f6f3f7a11"`
	}
	return ""
}

func parseSession(tb testing.TB, data []byte) []*roo.Message {
	tb.Helper()
	messages, err := roo.Parse(data)
	if err != nil {
		tb.Fatal(err)
	}
	return messages
}

func BenchmarkEffective(b *testing.B) {
	shapes := []struct {
		name string
		tags func(n int) func(int) string
	}{
		{"untagged", func(int) func(int) string { return untagged }},
		{"half-truncated", halfTruncated},
		{"summary-in-middle", summaryInMiddle},
	}
	for _, shape := range shapes {
		for _, n := range benchSizes {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				messages := parseSession(b, newSession(n, shape.tags(n)))
				b.ReportAllocs()
				for b.Loop() {
					roo.Effective(messages)
				}
			})
		}
	}
}

func BenchmarkTruncate(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("half/%d", n), func(b *testing.B) {
			messages := parseSession(b, newSession(n, untagged))
			b.ReportAllocs()
			for b.Loop() {
				roo.Truncate(messages, 0.5, recordedID, recordedNow)
			}
		})
	}
}

func BenchmarkCleanup(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("orphans/%d", n), func(b *testing.B) {
			messages := parseSession(b, newSession(n, orphaned))
			b.ReportAllocs()
			for b.Loop() {
				roo.Cleanup(messages)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			data := newSession(n, untagged)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				parseSession(b, data)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			data := newSession(n, untagged)
			messages := parseSession(b, data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				roo.Encode(messages)
			}
		})
	}
}
