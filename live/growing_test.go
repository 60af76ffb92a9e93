package live_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

// TestL2L3L5L6Growing sends what generated clients do through the gateway, over HTTP and with restarts, to a vendor that refuses
// what the real one refuses. See growingVendor for what must never happen.
func TestL2L3L5L6Growing(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const small = 4_000 // tokens
	host, err := condense.Open(t.Context(), withWindow(small))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}()
	var vendor *growingVendor
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		answer, err := vendor.Answer(body)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, err.Error())
			return
		}
		fmt.Fprintf(w, `{"id":"msg","type":"message","model":"m","stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":10},"answer":%s}`, len(body)/4, answer)
	}))
	defer upstream.Close()
	requests, epochs, runs, dir := 0, 0, 0, t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		runs++
		vendor = &growingVendor{}
		faults := grow(t, host, &live.Options{
			Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": upstream.URL}},
			Store:     live.Store{Path: filepath.Join(dir, fmt.Sprint(runs, ".db"))},
			Reports:   live.Reports{Logger: slog.New(slog.DiscardHandler)},
		}, vendor, func(_ int, body []byte) growingAnswer {
			var answer struct{ Answer json.RawMessage }
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatal(err)
			}
			return growingAnswer(answer.Answer)
		})
		if len(faults) > 0 {
			t.Errorf("faults: %v", faults)
		}
		requests, epochs = requests+vendor.Requests, epochs+vendor.Epochs
	})
	t.Logf("%d requests, %d epochs", requests, epochs)
	if runs >= 20 && !t.Failed() && epochs == 0 {
		t.Error("no epoch: the runs test too little")
	}
	http.DefaultClient.CloseIdleConnections()
}

// grow plays a generated client of a gateway, which is restarted now and then, and returns its faults. Answer reads the status and the
// body that the client gets.
func grow(t *rapid.T, host *condense.Host, options *live.Options, vendor *growingVendor, answer func(int, []byte) growingAnswer) map[string]int {
	options.Bounds.Deadline = time.Minute // on a busy machine
	var g *live.Gateway
	var s *httptest.Server
	stop := func() {
		s.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	start := func() {
		var err error
		if g, err = live.New(host, options); err != nil {
			t.Fatal(err)
		}
		s = httptest.NewServer(g)
	}
	start()
	defer func() { stop() }()
	runGrowing(t, vendor, growingWorld{
		Words:   120,
		Restart: func() { stop(); start() },
		Send: func(c growingCall) (growingAnswer, bool) {
			before := g.Stats().EpochCount
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/messages", bytes.NewReader(c.Body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Condense-Session", "s")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err := errors.Join(err, res.Body.Close()); err != nil {
				t.Fatal(err)
			}
			return answer(res.StatusCode, body), g.Stats().EpochCount > before
		},
	}, 40)
	return g.Stats().Errors
}
