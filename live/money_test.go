package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// The answers of vendors. Each is worth more than $2 by itself, or the request is.
func jsonAnswer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// sse answers with a stream. If it is left open, the client has to leave.
func sse(open bool, events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
		_ = http.NewResponseController(w).Flush()
		if open {
			<-r.Context().Done()
		}
	}
}

// Every request that a vendor wants money for counts against the limit, whatever it looks like and however it ends.
func TestCostLimitIsNotEvaded(t *testing.T) {
	const (
		sonnet    = `{"type":"message","model":"claude-sonnet-4-5","role":"assistant","content":[],"usage":{"input_tokens":750000,"output_tokens":10}}`
		responses = `{"id":"r","object":"response","model":"o1-pro","status":"completed","usage":{"input_tokens":15000,"output_tokens":1}}`
		delta     = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`
		started   = `{"type":"message_start","message":{"id":"m","model":"claude-sonnet-4-5","usage":{"input_tokens":10,"output_tokens":1}}}`
		chunk     = `{"id":"c","object":"chat.completion.chunk","model":"o1-pro","choices":[{"delta":{"content":"ok"}}]}`
	)
	long := strings.Repeat("word ", 15_000) // $2.25 of o1-pro
	spaces := strings.Repeat(" ", 80_000)
	chat := `{"model":"o1-pro","stream":true,"messages":[{"role":"user","content":"` + long + `"}]}`
	for _, tt := range []struct {
		name, path, encoding, body string
		answer                     http.HandlerFunc
		leaves                     bool
		estimated                  int
	}{
		{name: "one message without tools", path: "/v1/messages", body: `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"a"}]}`, answer: jsonAnswer(sonnet)},
		{name: "one token of output", path: "/v1/messages", body: `{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":"a"}]}`, answer: jsonAnswer(sonnet)},
		{name: "no body that is understood", path: "/v1/messages", body: `{"model":"claude-sonnet-4-5","messages":7}`, answer: jsonAnswer(sonnet)},
		{name: "previous_response_id", path: "/v1/responses", body: `{"model":"o1-pro","previous_response_id":"r0","input":"go on"}`, answer: jsonAnswer(responses)},
		{name: "no usage in a stream", path: "/v1/chat/completions", body: chat, answer: sse(false, chunk, "[DONE]"), estimated: 1},
		{name: "no usage in an answer", path: "/v1/chat/completions", body: chat, answer: jsonAnswer(`{"id":"c","choices":[]}`), estimated: 1},
		{name: "too large to look at", path: "/v1/messages", body: `{"messages":[{"role":"user","content":"a"}],` + spaces + `"model":"claude-sonnet-4-5"}`, answer: jsonAnswer(sonnet)},
		{name: "too large to look at, no usage", path: "/v1/chat/completions", body: `{` + spaces + chat[1:], answer: sse(false, chunk, "[DONE]"), estimated: 1},
		{name: "unknown encoding", path: "/v1/messages", encoding: "x-mine", body: `{"model":"claude-sonnet-4-5","messages":[]}`, answer: jsonAnswer(sonnet)},
		{name: "unknown encoding, unreadable", path: "/v1/messages", encoding: "x-mine", body: "\x00\x01\x02", answer: jsonAnswer(sonnet)},
		{name: "unknown encoding, no usage", path: "/v1/chat/completions", encoding: "x-mine", body: chat, answer: sse(false, chunk, "[DONE]"), estimated: 1},
		{
			name: "the client leaves in the answer", path: "/v1/messages", leaves: true, estimated: 1, body: `{"model":"claude-sonnet-4-5","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"a"}]}`,
			answer: sse(true, started, fmt.Sprintf(delta, strings.Repeat("x", 600_000)), fmt.Sprintf(delta, strings.Repeat("x", 1000))),
		},
		{name: "the client leaves before the answer", path: "/v1/chat/completions", body: chat, leaves: true, estimated: 1, answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := newVendor(t)
			v.answer = tt.answer
			g, s := serve(t, v, func(o *live.Options) {
				o.Access.Limits.Cost = 2
				if strings.Contains(tt.name, "too large") {
					o.Bounds.MaxBody = 40_000
				}
			})
			ask := func() int {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+tt.path, strings.NewReader(tt.body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				if tt.encoding != "" {
					r.Header.Set("Content-Encoding", tt.encoding)
				}
				if tt.leaves && g.Stats().Requests == 0 && strings.Contains(tt.name, "before") {
					go func() {
						testkit.Eventually(t, "the vendor has the request", func() bool {
							v.mu.Lock()
							defer v.mu.Unlock()
							return len(v.got) > 0
						})
						leave()
					}()
				}
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					return 0
				}
				defer func() { _ = res.Body.Close() }()
				if tt.leaves && res.StatusCode == http.StatusOK {
					_, _ = io.CopyN(io.Discard, res.Body, 600_000)
				} else {
					_, _ = io.Copy(io.Discard, res.Body)
				}
				return res.StatusCode
			}
			ask()
			testkit.Eventually(t, "the answer is counted", func() bool { return g.Stats().Cost >= 2 })
			if code := ask(); code != http.StatusTooManyRequests {
				t.Errorf("after $%.2f a request gets %d", g.Stats().Cost, code)
			}
			if got := g.Stats(); got.Cost > 6 || got.Estimated != tt.estimated || got.Unpriced != 0 {
				t.Errorf("cost $%.2f, %d estimated, %d unpriced", got.Cost, got.Estimated, got.Unpriced)
			}
		})
	}
}

// What no vendor takes money for costs nothing: counting tokens, a refused request, an answer that has failed.
func TestNothingIsPaidForNothing(t *testing.T) {
	ask := `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 4000) + `"}]}`
	for name, tt := range map[string]struct {
		path   string
		answer http.HandlerFunc
	}{
		"counted": {"/v1/messages/count_tokens", jsonAnswer(`{"input_tokens":750000}`)},
		"failed":  {"/v1/chat/completions", sse(false, `{"error":{"type":"server_error","message":"overloaded"}}`)},
		"refused": {"/v1/messages", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVendor(t)
			v.answer = tt.answer
			g, s := serve(t, v, nil)
			send(t, http.MethodPost, s.URL+tt.path, map[string]string{"Content-Type": "application/json"}, []byte(ask))
			if got := g.Stats(); got.Cost != 0 || got.Tokens.Sent != 0 || got.Estimated+got.Unpriced != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Titles and probes have the price of their model: only models that no table knows have none, and the metric says the same.
func TestSideRequestsHaveTheirPrice(t *testing.T) {
	v := newVendor(t)
	v.answer = jsonAnswer(`{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":1000,"output_tokens":10}}`)
	var m *meter
	g, s := serve(t, v, func(o *live.Options) { m = newMeter(t, o) })
	for _, name := range []string{"claude-haiku-4-5", "claude-opus-4-8", "nobody-knows-1"} {
		send(t, http.MethodPost, s.URL+"/v1/messages", nil, []byte(`{"model":"`+name+`","max_tokens":100,"messages":[{"role":"user","content":"Write a title"}]}`))
	}
	testkit.Eventually(t, "the answers are counted", func() bool { s := g.Stats(); return s.Tokens.Output == 30 })
	got := g.Stats()
	const want = 0.001 + 0.00005 + 0.005 + 0.00025
	if got.Unpriced != 1 || got.Cost < want*0.999 || got.Cost > want*1.001 || got.Requests != 3 {
		t.Errorf("%d unpriced, $%v", got.Unpriced, got.Cost)
	}
	all := m.families(t)
	if n := sum(all["condense_requests_unpriced_total"], "", ""); n != 1 {
		t.Errorf("the metric counts %v", n)
	}
	if c := sum(all["condense_cost_total"], "", ""); c < want*0.999 || c > want*1.001 {
		t.Errorf("the metric has $%v", c)
	}
}

// A conversation that has grown to many windows saves no more tokens than money: no vendor would have taken more than a window.
func TestTokensSavedAreThoseOfAWindow(t *testing.T) {
	testkit.Slow(t)
	p := newPlay(t, upstream.Options{Script: upstream.Loop(90, 2500, nil)}, claude("s"), nil)
	if _, err := p.client.Say(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	s := p.Stats()
	history := 0
	for _, r := range p.vendor.Turns() {
		history += r.Tokens
	}
	if s.EpochCount < 3 || s.Tokens.Sent == 0 {
		t.Fatalf("%+v", s)
	}
	if most := window * len(p.vendor.Turns()); s.Tokens.Received > most || s.Tokens.Saved != s.Tokens.Received-s.Tokens.Sent {
		t.Errorf("received %d in %d requests of a window of %d: %+v", s.Tokens.Received, len(p.vendor.Turns()), window, s.Tokens)
	}
	if last := p.client.Body; len(last)/4 < 2*window {
		t.Fatalf("the history has only about %d tokens", len(last)/4)
	}
}

// Money is compared with the agent's own compaction where it is known, and tokens with the window.
func TestMoneyAgainstOwnCompaction(t *testing.T) {
	testkit.Slow(t)
	var seen [2]live.Stats
	for i, agent := range []string{"mine/1", "claude-cli/2.1.330"} {
		c := claude("s")
		c.Header = http.Header{"User-Agent": {agent}}
		p := &play{vendor: upstream.New(upstream.Options{Window: 120_000, Script: upstream.Loop(70, 10_000, nil)}), client: &c}
		p.serve(t, withWindow(120_000), nil)
		if _, err := p.client.Say(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		seen[i] = p.Stats()
	}
	unknown, known := seen[0], seen[1]
	if unknown.EpochCount == 0 || known.EpochCount == 0 || unknown.Saved == 0 {
		t.Fatalf("%+v\n%+v", unknown, known)
	}
	if known.Saved >= unknown.Saved || known.Tokens.Saved < unknown.Tokens.Saved/2 {
		t.Errorf("saved $%.3f next to own compaction, $%.3f next to the window; tokens %+v, %+v", known.Saved, unknown.Saved, known.Tokens, unknown.Tokens)
	}
}

// What is only observed is in no number of what was done, on the pages of a gateway or in its metrics.
func TestObservedIsHypothetical(t *testing.T) {
	var m *meter
	p := newPlay(t, upstream.Options{Window: 200_000}, claude("s"), func(o *live.Options) {
		o.Observe = true
		m = newMeter(t, o)
	})
	p.begin(t)
	for range 20 {
		p.step(t)
	}
	s, all := p.Stats(), m.families(t)
	if s.EpochCount != 0 || s.Tokens.Saved != 0 || s.Saved != 0 || s.Tokens.Sent != s.Tokens.Received {
		t.Errorf("done: %+v", s)
	}
	o := s.Observed
	if o == nil || o.Epochs == 0 || o.Saved <= 0 || o.Sent+o.Saved != s.Tokens.Received || o.CostSaved == 0 {
		t.Fatalf("observed: %+v", o)
	}
	for _, e := range s.Epochs {
		if !e.Observed {
			t.Errorf("an epoch looks as if it was made: %+v", e)
		}
	}
	for name, want := range map[string]float64{"condense_epochs_total": 0, "condense_epochs_observed_total": float64(o.Epochs), "condense_cost_saved": 0, "condense_epoch_removed_total": 0} {
		if got := sum(all[name], "", ""); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for kind, want := range map[string]int{"saved": 0, "would_save": o.Saved, "sent": s.Tokens.Sent} {
		if got := sum(all["condense_tokens_total"], "condense_token_type", kind); got != float64(want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	raw, err := json.Marshal(s)
	if err != nil || !bytes.Contains(raw, []byte(`"would_have_saved":`)) {
		t.Errorf("%v %s", err, raw)
	}
}

// A client that goes back a few messages has what is left of its history in the vendor's cache: nothing is saved by not writing it there.
func TestMoneyAfterARewind(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	p := newPlay(t, upstream.Options{Script: upstream.Loop(60, 2200, nil)}, upstream.Client{API: upstream.Messages, Model: "claude-opus-5", Session: "s1"}, nil)
	p.steps(t, 1)
	p.untilEpoch(t, 1)
	p.steps(t, 4)
	earned := func(do func()) float64 {
		before := p.Stats().Saved
		do()
		p.steps(t, 1)
		return p.Stats().Saved - before
	}
	usual := earned(func() {})
	kept := only(t, p.Controller()).Saved
	back := earned(func() { p.client.History = p.client.History[:len(p.client.History)-4] })
	if usual <= 0 || back > 3*usual {
		t.Errorf("a request saved $%.4f, and the one after the rewind $%.4f", usual, back)
	}
	if now := only(t, p.Controller()).Saved; math.Abs(now-kept-back) > 1e-9 {
		t.Errorf("the conversation had saved $%.4f, then $%.4f, and now it is $%.4f", kept, back, now)
	}
}
