//go:build unix

package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// With the variables of OpenTelemetry, a collector gets metrics and traces, the last ones when the gateway ends;
// without them it gets nothing. What is sent has no key and no text.
func TestTelemetryReachesACollector(t *testing.T) {
	testkit.Process(t)
	for _, on := range []bool{true, false} {
		var mu sync.Mutex
		got := map[string][]byte{}
		collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			got[r.URL.Path] = append(got[r.URL.Path], body...)
		}))
		defer collector.Close()
		vendor := httptest.NewServer(upstream.New(upstream.Options{Script: []upstream.Step{{Text: "All is well."}}}))
		defer vendor.Close()
		cmd := exec.CommandContext(t.Context(), "condense", "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--log-format", "json", "--upstream", "anthropic="+vendor.URL)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir)
		if on {
			cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_SERVICE_NAME=our-gateway")
		}
		log := new(testkit.Log)
		cmd.Stderr = log
		lines := bufio.NewScanner(testkit.Start(t, cmd))
		if !lines.Scan() {
			t.Fatal(log)
		}
		m := listens.FindStringSubmatch(lines.Text())
		if m == nil {
			t.Fatal(lines.Text())
		}
		c := &upstream.Client{URL: m[1], API: upstream.Messages, Model: "claude-opus-5", Stream: true, Session: "my-session", Header: http.Header{"X-Api-Key": {"sk-dummy-key"}}}
		if _, err := c.Say(t.Context(), "What I ask."); err != nil {
			t.Fatal(err)
		}
		res, err := http.Get(m[2] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		metrics, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		for _, name := range []string{"condense_requests_total{", "gen_ai_client_operation_duration_seconds_bucket{", "go_goroutines ", `service_name="`} {
			if !bytes.Contains(metrics, []byte(name)) {
				t.Errorf("/metrics has no %s", name)
			}
		}
		interrupt(t, cmd, syscall.SIGTERM)
		wantExit(t, cmd, 0)
		mu.Lock()
		if on != (len(got["/v1/traces"]) > 0) || on != (len(got["/v1/metrics"]) > 0) {
			t.Errorf("on %t: %d bytes of traces, %d of metrics\n%s", on, len(got["/v1/traces"]), len(got["/v1/metrics"]), log)
		}
		for path, all := range got {
			for _, never := range []string{"sk-dummy", "my-session", "What I ask", "All is well"} {
				if bytes.Contains(all, []byte(never)) || bytes.Contains(metrics, []byte(never)) {
					t.Errorf("%s has %q", path, never)
				}
			}
			if !bytes.Contains(all, []byte("our-gateway")) {
				t.Errorf("%s has no name of the service", path)
			}
		}
		if on && (!bytes.Contains(got["/v1/traces"], []byte("chat claude-opus-5")) || !bytes.Contains(got["/v1/metrics"], []byte("gen_ai.client.token.usage"))) {
			t.Error("the names of the conventions are not used")
		}
		mu.Unlock()
		if !strings.HasPrefix(log.String(), `{"time":`) {
			t.Errorf("the log is no JSON: %s", log)
		}
	}
}

// A collector that is away neither holds up a request nor the end.
func TestTelemetryWithoutItsCollector(t *testing.T) {
	cmd, _, _, log, release, end := stalling(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9")
	close(release)
	if got := <-end; got.err != nil {
		t.Error(got.err)
	}
	interrupt(t, cmd, syscall.SIGTERM)
	wantExit(t, cmd, 0)
	if !strings.Contains(log.String(), "telemetry: the last numbers were not sent") {
		t.Error(log)
	}
}
