package bench_test

import (
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/benchdata"
	"github.com/condensehq/condense/tokens"
)

func encoding(tb testing.TB) *tokens.Encoding {
	tb.Helper()
	e, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// BenchmarkCount counts the 10,000 messages, text by text: with an empty cache, with a full cache, and by
// tiktoken-go. The benchmark of package tokens counts recorded sessions.
func BenchmarkCount(b *testing.B) {
	var texts []string
	messages := benchdata.Messages(10_000)
	size := 0
	for i := range messages {
		s := textOf(&messages[i])
		texts = append(texts, s)
		size += len(s)
	}
	enc := encoding(b)
	want := 0
	for _, s := range texts {
		want += enc.CountText(s)
	}
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	reference, err := tiktoken.GetEncoding(tokens.O200kBase)
	if err != nil {
		b.Fatal(err)
	}
	remembers := tokens.NewCounter(enc)
	core.Measure(remembers, messages)
	for _, c := range []struct {
		name  string
		count func(string) int
	}{
		{"first", enc.CountText},
		{"again", remembers.CountText},
		{"tiktoken-go", func(s string) int { return len(reference.EncodeOrdinary(s)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			clock := newClock()
			for b.Loop() {
				clock.begin()
				got := 0
				for _, s := range texts {
					got += c.count(s)
				}
				clock.end()
				if got != want {
					b.Fatalf("got %d tokens, want %d", got, want)
				}
			}
			clock.report(b, 1)
		})
	}
}
