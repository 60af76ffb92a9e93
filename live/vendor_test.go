package live_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/model"
)

// A signer is a model whose vendor compacts.
type signer struct{ calls atomic.Int64 }

func (s *signer) Info() model.Info { return model.Info{Name: "signer", Window: 200_000, Free: true} }

func (s *signer) Generate(context.Context, *model.Prompt) (*model.Answer, error) {
	return nil, model.ErrNoText
}

func (s *signer) Compacts() string { return "anthropic" }

func (s *signer) Compact(_ context.Context, p *model.Prompt) (*model.Answer, error) {
	text := fmt.Sprintf(`[{"type":"compaction","content":"Summary %d of %d messages.","signature":"c2ln"}]`, s.calls.Add(1), len(p.Messages))
	return &model.Answer{Text: text, Usage: core.Usage{Calls: 1, InputTokens: 1000, OutputTokens: 100}}, nil
}

// The strategy vendor in the gateway: the block is first in what is sent, with the header that the vendor wants for it. A request with
// the login of a
// plan gets no header, and so no block.
func TestVendorStrategy(t *testing.T) {
	testkit.Slow(t)
	for _, login := range []bool{false, true} {
		t.Run(fmt.Sprint("login=", login), func(t *testing.T) {
			s := &signer{}
			values := &config.Values{
				DefaultProfile: "small",
				Profiles:       map[string]config.ProfileValues{"small": {Window: new(window), Tuning: config.Tuning{Chain: []string{"theirs", "smart"}}}},
				Providers:      map[string]config.ProviderValues{"theirs": {Strategy: "vendor", Settings: []byte(`{"model":"signer"}`)}},
			}
			v := upstream.New(upstream.Options{Window: window, Script: agentLoop})
			server := httptest.NewServer(v)
			t.Cleanup(server.Close)
			g, front := serveWith(t, server.URL, &condense.Options{Values: values, Models: map[string]model.Generator{"signer": s}}, nil)
			c := claude("s")
			c.URL = front.URL
			if login {
				c.Header = map[string][]string{"Authorization": {"Bearer sk-ant-oat01-dummy"}}
			}
			c.History = []object{first(upstream.Messages, task)}
			for calls := true; calls; {
				before := s.calls.Load()
				var err error
				if _, calls, err = c.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(c.History) > 40 && !login && before == 0 { // the chain asks a model, in the background
					testkit.Eventually(t, "the vendor is asked", func() bool { return s.calls.Load() > 0 || g.Stats().EpochCount > 0 })
				}
			}
			for _, r := range v.Refusals() {
				t.Errorf("%s: %s", r.Rule, r.Error)
			}
			blocks := 0
			for _, r := range v.Turns() {
				has := bytes.Contains(r.Body, []byte(`"type":"compaction"`))
				if has {
					blocks++
				}
				if strings.Contains(strings.Join(r.Header.Values("Anthropic-Beta"), ","), "compact-2026-09-04") != has {
					t.Errorf("request %d: block %t, header %q", r.N, has, r.Header.Values("Anthropic-Beta"))
				}
			}
			if (blocks == 0) != login || g.Stats().EpochCount == 0 {
				t.Errorf("%d requests with a block, %d epochs, errors %v", blocks, g.Stats().EpochCount, g.Stats().Errors)
			}
			t.Logf("%d requests with a block, %d epochs, the vendor was asked %d times", blocks, g.Stats().EpochCount, s.calls.Load())
		})
	}
}
