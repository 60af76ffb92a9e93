package live_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// window is that of the models in these tests, in tokens. Half of it and of the results take half the time: what a loop costs grows with
// the bytes of all its requests.
const window = 22_000

// agentLoop is what agents do in these tests, more than the window holds.
var agentLoop = upstream.Loop(45, 2200, nil)

func withWindow(n int) *condense.Options {
	return &condense.Options{Values: &config.Values{
		DefaultProfile: "small", Profiles: map[string]config.ProfileValues{"small": {Window: &n}},
	}}
}

// A play is an agent that runs against a scripted vendor through a gateway.
type play struct {
	*live.Gateway
	vendor *upstream.Vendor
	client *upstream.Client
	server *httptest.Server
}

func newPlay(t *testing.T, o upstream.Options, c upstream.Client, change func(*live.Options)) *play {
	t.Helper()
	if o.Window == 0 {
		o.Window = window
	}
	if o.Script == nil {
		o.Script = agentLoop
	}
	return playIn(t, window, o, c, change)
}

// playIn plays through a gateway that is configured with that window.
func playIn(t *testing.T, window int, o upstream.Options, c upstream.Client, change func(*live.Options)) *play {
	t.Helper()
	p := &play{vendor: upstream.New(o), client: &c}
	p.serve(t, withWindow(window), change)
	return p
}

// serve opens the gateway of a play.
func (p *play) serve(t *testing.T, host *condense.Options, change func(*live.Options)) {
	t.Helper()
	v := httptest.NewServer(p.vendor)
	t.Cleanup(v.Close)
	p.Gateway, p.server = serveWith(t, v.URL, host, change)
	p.server.Config.Handler = live.Settled(p.Gateway)
	if p.client == nil {
		p.client = &upstream.Client{}
	}
	p.client.URL = p.server.URL
}

// The loop of an agent is several times as long as the window: it ends, the vendor refuses nothing,
// and the prefix breaks only where an epoch begins.
func TestLongLoops(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for i, tt := range []struct {
		api             upstream.API
		model, thinking string
	}{
		{upstream.Messages, "claude-opus-5-5", "adaptive"}, // thinking is bound to what was sent before it
		{upstream.Messages, "claude-sonnet-4-5", "enabled"},
		{upstream.Messages, "claude-sonnet-4-5", ""},
		{upstream.Chat, "gpt-5.1", ""},
		{upstream.Responses, "gpt-5.1", ""},
		{upstream.Responses, "gpt-5.6", "medium"},
	} {
		for _, stream := range []bool{false, true} {
			if stream != (i%2 == 1) && !testkit.Night() {
				continue
			}
			t.Run(fmt.Sprint(tt.api, "/", tt.model, "/", tt.thinking, "/stream=", stream), func(t *testing.T) {
				t.Parallel()
				p := newPlay(t, upstream.Options{}, upstream.Client{API: tt.api, Model: tt.model, Thinking: tt.thinking, Stream: stream, Session: "s1"}, nil)
				if _, err := p.client.Say(t.Context(), "Read all the files, one after the other."); err != nil {
					t.Fatal(err)
				}
				p.check(t, 1)
			})
		}
	}
}

// check reports what must not be: refusals, a prefix that breaks other than at an epoch, a cache that is
// not used.
func (p *play) check(t *testing.T, epochs int) {
	t.Helper()
	s := p.Stats()
	for _, r := range p.vendor.Refusals() {
		t.Errorf("request %d was refused: %s: %s", r.N, r.Rule, r.Error)
	}
	if s.EpochCount < epochs {
		t.Errorf("%d epochs, want at least %d", s.EpochCount, epochs)
	}
	breaks := p.vendor.Breaks()
	if len(breaks) > s.EpochCount {
		t.Errorf("%d breaks of the prefix in %d epochs: %v", len(breaks), s.EpochCount, breaks)
	}
	read, ideal := p.vendor.Cached()
	if float64(read) < 0.9*float64(ideal) {
		t.Errorf("%d tokens read from the cache, %d with an ideal one", read, ideal)
	}
	if len(s.Errors) > 0 {
		t.Errorf("faults: %v", s.Errors)
	}
	t.Logf("%d turns, %d epochs, %d breaks, cache %d of %d, tokens %+v, cost %.2f saved %.2f", len(p.vendor.Turns()), s.EpochCount, len(breaks), read, ideal, s.Tokens, s.Cost, s.Saved)
	for _, e := range s.Epochs {
		t.Logf("%+v", e)
	}
}

// In a small window the limit comes before the threshold of the profile. However the vendor counts, the chain of the profile condenses
// then, and
// nothing is sent that would leave no room for the answer.
func TestForcedEpochsAreOfTheProfile(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const window = 60_000
	for i, perToken := range []float64{0.5, 2.5, 3.5, 4.5, 6} {
		for k, size := range []int{6_000, 20_000} {
			if i%2 != k && !testkit.Night() {
				continue
			}
			t.Run(fmt.Sprint(perToken, " bytes per token, results of ", size), func(t *testing.T) {
				t.Parallel()
				asked := 0
				o := faulty(func(_ context.Context, r *core.Request) (*core.Result, error) {
					asked++
					n := len(r.Messages)
					return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= n-3 })}, nil
				})
				o.Values.Profiles["small"] = config.ProfileValues{Window: new(window)}
				size := int(float64(size) * perToken / 4)
				vendor := upstream.New(upstream.Options{Window: window, BytesPerToken: perToken, Script: upstream.Loop(60, size, nil)})
				v := httptest.NewServer(vendor)
				defer v.Close()
				g, s := serveWith(t, v.URL, o, func(o *live.Options) { o.Epoch.IgnorePayback, o.Epoch.IgnoreCold = true, true })
				c := upstream.Client{API: upstream.Responses, Model: "gpt-5.5", Stream: true, Session: "s", URL: s.URL} // says nothing of the size of its answers
				if _, err := c.Say(t.Context(), task); err != nil {
					t.Fatal(err)
				}
				got := g.Stats()
				if got.EpochCount < 2 || asked < got.EpochCount || len(got.Errors) > 0 {
					t.Errorf("%d epochs, the strategy was asked %d times, errors %v", got.EpochCount, asked, got.Errors)
				}
				for _, e := range got.Epochs {
					if e.Reason != "window" {
						t.Errorf("an epoch for %s", e.Reason)
					}
				}
				const limit = window - window/10 - 8192
				for _, r := range vendor.Turns() {
					if r.N > 4 && r.Tokens > limit*21/20 { // by then the ratio of the counts is known
						t.Errorf("request %d: %d tokens, above the limit of %d", r.N, r.Tokens, limit)
					}
				}
				for _, r := range vendor.Refusals() {
					t.Errorf("refused: %s: %s", r.Rule, r.Error)
				}
			})
		}
	}
}

// TestCapFollowsTheModelsWindow: a cap that is written as a share of the window holds for the model of the request. Of the window of the
// profile, which is larger, it would never apply.
func TestCapFollowsTheModelsWindow(t *testing.T) {
	t.Parallel()
	const window, model = 40_000, "claude-opus-5-5"
	v := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(12, 6_000, nil)})
	vendor := httptest.NewServer(v)
	t.Cleanup(vendor.Close)
	g, s := serveWith(t, vendor.URL, &condense.Options{Values: &config.Values{
		Tuning: config.Tuning{MaxContextTokens: &config.Amount{Percent: 40}},
		Models: map[string]config.ModelValues{model: {API: "anthropic", Model: model, Window: window}},
	}}, func(o *live.Options) { o.Epoch.IgnoreCold, o.Epoch.IgnorePayback = true, true })
	s.Config.Handler = live.Settled(g)
	client := &upstream.Client{URL: s.URL, API: upstream.Messages, Model: model, Session: "s1"}
	if _, err := client.Say(t.Context(), "Read all the files, one after the other."); err != nil {
		t.Fatal(err)
	}
	const largest = window*40/100 + 3_000 // the request that exceeds the cap is sent, with one result more
	for _, turn := range v.Turns() {
		if turn.Tokens > largest {
			t.Errorf("%d tokens were sent, the cap is %d", turn.Tokens, window*40/100)
		}
	}
	if n := g.Stats().EpochCount; n == 0 {
		t.Error("the cap was never applied")
	}
}
