package live_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/testkit/benchdata"
	"github.com/condensehq/condense/live"
)

// BenchmarkBareTurn is a turn through a proxy that reads nothing: what the others take more is condense's.
func BenchmarkBareTurn(b *testing.B) {
	b.Run("tokens=200000", func(b *testing.B) {
		benchmarkTurns(b, 200_000, func(_ *testing.B, vendor string) (http.Handler, func()) {
			to, err := url.Parse(vendor)
			if err != nil {
				b.Fatal(err)
			}
			return httputil.NewSingleHostReverseProxy(to), func() {}
		})
	})
}

// BenchmarkTurn is a turn of a conversation that needs nothing, the vendor's work and two connections on the
// loopback included.
func BenchmarkTurn(b *testing.B) {
	for _, tokens := range []int{20_000, 200_000, 1_000_000} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) { benchmarkTurn(b, tokens, 4*tokens) })
	}
}

// BenchmarkCondensedTurn is a turn of a conversation that was condensed before, to about half of its size.
func BenchmarkCondensedTurn(b *testing.B) {
	for _, tokens := range []int{200_000, 1_000_000} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) { benchmarkTurn(b, tokens, tokens) })
	}
}

// benchmarkTurn measures turns of a conversation of a size. The first one is not measured: an epoch begins with it, if the window is no larger.
func benchmarkTurn(b *testing.B, tokens, window int) {
	b.Helper()
	benchmarkTurns(b, tokens, func(b *testing.B, vendor string) (http.Handler, func()) {
		b.Helper()
		h, err := condense.Open(b.Context(), withWindow(window))
		if err != nil {
			b.Fatal(err)
		}
		g, err := live.New(h, &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": vendor}}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := errors.Join(g.Close(), h.Close()); err != nil {
				b.Error(err)
			}
		})
		return g, func() {
			live.Settle(g)
			if condensed := g.Stats().EpochCount > 0; condensed != (window <= tokens) {
				b.Fatalf("condensed: %t", condensed)
			}
		}
	})
}

func benchmarkTurns(b *testing.B, tokens int, open func(b *testing.B, vendor string) (under http.Handler, begun func())) {
	b.Helper()
	const perMessage = 117
	n := tokens / perMessage / 4 * 4
	const turns = 100
	var text bytes.Buffer
	var all []json.RawMessage
	if err := benchdata.WriteAnthropic(&text, n+2*turns+1); err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(text.Bytes(), &all); err != nil {
		b.Fatal(err)
	}
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":1}}`, size/5)
	}))
	defer vendor.Close()
	under, begun := open(b, vendor.URL)
	server := httptest.NewServer(under)
	defer server.Close()
	bodies := make([][]byte, turns)
	for i := range bodies {
		var err error
		bodies[i], err = json.Marshal(map[string]any{"model": "claude-opus-4-6", "max_tokens": 4096, "messages": all[:n+1+2*i]})
		if err != nil {
			b.Fatal(err)
		}
	}
	turn := func(i int) {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/v1/messages", bytes.NewReader(bodies[i]))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "dummy")
		resp, err := server.Client().Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp.Status, err)
		}
		_ = resp.Body.Close()
	}
	turn(0)
	begun()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		turn(1 + i%(turns-1))
	}
}
