//go:build unix

package servecmd

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/testkit/benchdata"
	"github.com/condensehq/condense/live"
)

// BenchmarkTelemetry is a small request through a gateway that measures nothing, that has /metrics, and that sends
// metrics and traces to a collector too; and what it takes to read /metrics. It reports the processor time of
// everything, the vendor included: only the differences mean something.
func BenchmarkTelemetry(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":"end_turn","usage":{"input_tokens":20000,"output_tokens":1}}`)
	}))
	defer sink.Close()
	var text bytes.Buffer
	var all []json.RawMessage
	const messages = 5
	if err := benchdata.WriteAnthropic(&text, messages); err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(text.Bytes(), &all); err != nil {
		b.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"model": "claude-opus-4-6", "max_tokens": 4096, "messages": all})
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"none", "metrics", "collector", "scrape"} {
		b.Run(name, func(b *testing.B) {
			if name == "collector" {
				b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL)
			}
			h, err := condense.Open(b.Context(), nil)
			if err != nil {
				b.Fatal(err)
			}
			opts := &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": sink.URL}}}
			var t *telemetry
			if name != "none" {
				if t, err = openTelemetry(b.Context(), "v0", slog.New(slog.DiscardHandler)); err != nil {
					b.Fatal(err)
				}
				t.fill(opts)
			}
			g, err := live.New(h, opts)
			if err != nil {
				b.Fatal(err)
			}
			ask := func(h http.Handler, method, path string, body []byte) {
				r := httptest.NewRequest(method, "http://127.0.0.1"+path, bytes.NewReader(body))
				r.RemoteAddr = "127.0.0.1:1"
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
			ask(g, http.MethodPost, "/v1/messages", body)
			admin, began := g.Admin(), processor(b)
			b.ReportAllocs()
			for b.Loop() {
				if name == "scrape" {
					ask(admin, http.MethodGet, "/metrics", nil)
				} else {
					ask(g, http.MethodPost, "/v1/messages", body)
				}
			}
			b.ReportMetric(float64((processor(b)-began).Microseconds())/float64(b.N), "cpu-µs/op")
			if err := g.Close(); err != nil {
				b.Error(err)
			}
			if t != nil {
				if err := t.close(b.Context()); err != nil {
					b.Error(err)
				}
			}
			if err := h.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

// processor returns the processor time of this process.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
