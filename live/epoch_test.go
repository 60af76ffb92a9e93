package live_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// window is that of the models in these tests, in tokens. Half of it and of the results take half the time: what a loop costs grows with
// the bytes of all its requests.
const window = 30_000

// agentLoop is what agents do in these tests, more than the window holds.
var agentLoop = upstream.Loop(45, 3000, nil)

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
	p := &play{vendor: upstream.New(o)}
	v := httptest.NewServer(p.vendor)
	t.Cleanup(v.Close)
	p.Gateway, p.server = serveWith(t, v.URL, withWindow(window), change)
	c.URL = p.server.URL
	p.client = &c
	return p
}

// The loop of an agent is several times as long as the window: it ends, the vendor refuses nothing,
// and the prefix breaks only where an epoch begins.
func TestLongLoops(t *testing.T) {
	for _, tt := range []struct {
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
			t.Run(fmt.Sprint(tt.api, "/", tt.model, "/", tt.thinking, "/stream=", stream), func(t *testing.T) {
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
