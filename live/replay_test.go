package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/tokens"
)

// A decided is one decision, as the log has it.
type decided struct {
	facts    epoch.Facts
	policy   epoch.Policy
	decision epoch.Decision
}

// decisions is a handler that collects decisions.
type decisions struct{ all []decided }

func (*decisions) Enabled(context.Context, slog.Level) bool { return true }
func (d *decisions) WithAttrs([]slog.Attr) slog.Handler     { return d }
func (d *decisions) WithGroup(string) slog.Handler          { return d }

func (d *decisions) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "decision" {
		return nil
	}
	var got decided
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case epoch.Facts:
			got.facts = v
		case epoch.Policy:
			got.policy = v
		case epoch.Decision:
			got.decision = v
		}
		return true
	})
	d.all = append(d.all, got)
	return nil
}

// summarized is a strategy whose result has the same size in the gateway and in a replay: a text, and what must stay.
func summarized(_ context.Context, r *core.Request) (*core.Result, error) {
	text := fmt.Sprintf("%d messages. ", len(r.Messages)) + strings.Repeat("It was done. ", 1000) // a cache has none of it
	out := []core.Message{{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(text)}}}
	for _, m := range r.Messages {
		if m.Protected {
			out = append(out, m)
		}
	}
	return &core.Result{Messages: out}, nil
}

// recordingOf writes the history of a client as Claude Code records a session: its answers come a second after the requests began.
func recordingOf(t *testing.T, c *upstream.Client, starts []time.Time, prompts []int) lab.Item {
	t.Helper()
	var b strings.Builder
	parent, k := "null", 0
	for i, m := range c.History {
		message := map[string]any{"role": m["role"], "content": m["content"]}
		at := starts[min(k, len(starts)-1)]
		if m["role"] == "assistant" {
			message["id"], message["model"] = fmt.Sprintf("msg_%d", i), c.Model
			message["usage"] = map[string]int{"input_tokens": prompts[k], "output_tokens": 100}
			at, k = at.Add(time.Second), k+1
		}
		text, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(&b, `{"type":%q,"uuid":"u%d","parentUuid":%s,"sessionId":"s","timestamp":%q,"message":%s}`+"\n", m["role"], i, parent, at.Format(time.RFC3339), text)
		parent = fmt.Sprintf("%q", fmt.Sprintf("u%d", i))
	}
	return lab.Item{Name: "played/s.jsonl", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(b.String())), nil }}
}

// TestReplayDecidesAsTheGateway plays an agent's loop with pauses through the gateway and its recording through a replay. Both must
// know the same
// before every request, and decide the same: otherwise a replay does not measure the gateway.
func TestReplayDecidesAsTheGateway(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const model, window, longest = "claude-opus-4-6", 100_000, 8192
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var told atomic.Pointer[time.Time] // the gateway reads the clock in the background, too
	first := now
	told.Store(&first)
	clock := func() time.Time { return *told.Load() }
	host := faulty(summarized)
	host.Values.Profiles["small"] = withWindow(window).Values.Profiles["small"]
	gateway := &decisions{}
	script := upstream.Loop(70, 9000, nil)
	const tokensPerByte = 1.0 / 4 // of chars4
	scale := tariffOf(t, model).Scale
	p := &play{vendor: upstream.New(upstream.Options{Window: window, Script: script, BytesPerToken: 1 / tokensPerByte / scale, Now: clock})}
	p.serve(t, host, func(o *live.Options) {
		o.Reports.Logger, o.Now, o.Epoch, o.Ingest.Off, o.Recall.Off = slog.New(gateway), clock, live.EpochOptions{MinSize: 20_000, Risk: 50}, true, true
	})
	p.client.API, p.client.Model, p.client.Session = upstream.Messages, model, "s"
	p.client.Run = func(command string) string { return strings.ReplaceAll(upstream.Output(command), "\n", " ") } // the vendor counts the bytes of JSON

	var starts []time.Time
	var prompts []int
	p.client.History = append(p.client.History, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": strings.Repeat(task+" ", 50)}}})
	for k, calls := 0, true; calls; k++ {
		pause := 20 * time.Second
		if k%25 == 24 {
			pause = time.Hour // the cache is cold
		}
		next := now.Add(pause)
		now = next
		told.Store(&next)
		starts = append(starts, now)
		var err error
		if _, calls, err = p.client.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, p.client.Prompt)
	}

	replay := &decisions{}
	_, err := lab.Replay(t.Context(), []lab.Item{recordingOf(t, p.client, starts, prompts)}, []lab.Policy{{
		Name: "as the gateway", Strategy: &lab.Strategy{Name: "summarized", Provider: core.ProviderFunc(summarized)}, Money: true, Cold: true, Payback: true, Floor: 20_000, Risk: 0.5,
		Rule: func(window int) policy.Rule {
			r := policy.Default(window)
			r.MaxOutput = longest
			return r
		},
	}}, &lab.ReplayOptions{Options: lab.Options{Encoding: tokens.Chars4, Now: clock}, Window: window, Tariffs: []lab.Tariff{tariffOf(t, model)}, Logger: slog.New(replay)})
	if err != nil {
		t.Fatal(err)
	}
	if len(gateway.all) != len(starts) || len(replay.all) != len(starts) {
		t.Fatalf("%d requests, %d decisions of the gateway, %d of the replay", len(starts), len(gateway.all), len(replay.all))
	}
	seen := map[epoch.Reason]int{}
	for k, want := range gateway.all {
		got := replay.all[k]
		seen[want.decision.Reason]++
		if got.policy != want.policy {
			t.Errorf("request %d: policy %+v, the gateway's %+v", k, got.policy, want.policy)
		}
		if k > 0 { // before the first answer the gateway does not know how the vendor counts
			sameFacts(t, k, got.facts, want.facts)
		}
		if got.decision.Reason != want.decision.Reason || got.decision.Wait != want.decision.Wait || !near(float64(got.decision.Target), float64(want.decision.Target)) || !near(got.decision.Turns, want.decision.Turns) {
			t.Errorf("request %d: decision %+v, the gateway's %+v", k, got.decision, want.decision)
		}
	}
	if seen[epoch.Cold] == 0 || seen[epoch.Payback] == 0 {
		t.Errorf("the session has too few occasions: %v", seen)
	}
	t.Logf("%d requests: %v", len(starts), seen)
}

// near allows for what the vendor counts besides the texts: names of fields, braces.
func near(a, b float64) bool { return math.Abs(a-b) <= 50+0.05*max(math.Abs(a), math.Abs(b)) }

func sameFacts(t *testing.T, k int, got, want epoch.Facts) {
	t.Helper()
	for name, v := range map[string][2]float64{
		"tokens": {float64(got.Tokens), float64(want.Tokens)}, "fixed": {float64(got.Fixed), float64(want.Fixed)},
		"results": {float64(got.Since.ResultTokens), float64(want.Since.ResultTokens)},
		"grown":   {float64(got.Grown), float64(want.Grown)}, "before": {float64(got.Last.Before), float64(want.Last.Before)},
		"after": {float64(got.Last.After), float64(want.Last.After)}, "spent": {got.Spent, want.Spent},
		"spent less saved": {got.Spent - got.Saved, want.Spent - want.Saved}, // Saved alone is the difference of two large numbers
	} {
		if !near(v[0], v[1]) {
			t.Errorf("request %d: %s %.0f, the gateway's %.0f", k, name, v[0], v[1])
		}
	}
	for _, f := range []*epoch.Facts{&got, &want} {
		f.Tokens, f.Fixed, f.Grown, f.Last, f.Spent, f.Saved, f.Since.ResultTokens = 0, 0, 0, epoch.Last{}, 0, 0, 0
	}
	if got != want {
		t.Errorf("request %d: %+v, the gateway knows %+v", k, got, want)
	}
}

func tariffOf(t *testing.T, model string) lab.Tariff {
	t.Helper()
	out, err := lab.ParseTariff(model)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
