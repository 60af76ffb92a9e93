package live_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/registry"
)

// TestProvidersAreTold: a provider in a gateway knows which of its messages the vendor's cache has and until when, why messages must stay, and
// the newest text of a file, also of messages that the epochs before left out.
func TestProvidersAreTold(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []*core.Request
	var files []string
	tail := registry.Define("tail", "Keeps the newest messages.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				pieces, err := req.File("main.go")
				mu.Lock()
				told, files = append(told, req.Clone()), append(files, fmt.Sprint(pieces))
				mu.Unlock()
				size := req.Tokens()
				return &core.Result{Messages: core.KeepGroups(req.Messages, func(i int) bool {
					if size <= req.Budget.Target || i == 0 {
						return true
					}
					size -= req.Messages[i].Tokens
					return false
				})}, err
			}), nil
		})
	n := window
	host := &condense.Options{Strategies: []registry.Strategy{tail}, Values: &config.Values{
		DefaultProfile: "small", Providers: map[string]config.ProviderValues{"tail": {Strategy: "tail"}},
		Profiles: map[string]config.ProfileValues{"small": {Window: &n, Tuning: config.Tuning{Chain: []string{"tail"}}}},
	}}
	script := upstream.Loop(130, 2200, nil)
	script[1].Commands = []string{"cat main.go"}
	script[2].Commands = []string{"cat > main.go <<'EOF'\npackage newest\nEOF"}
	vendor := httptest.NewServer(upstream.New(upstream.Options{Window: window, Script: script}))
	t.Cleanup(vendor.Close)
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	g, server := serveWith(t, vendor.URL, host, func(o *live.Options) {
		o.Epoch.IgnoreCold, o.Epoch.IgnorePayback, o.Now = true, true, func() time.Time { return now }
	})
	server.Config.Handler = live.Settled(g)
	for _, name := range []string{"same", "changing"} {
		told, files = nil, nil
		c := &upstream.Client{URL: server.URL, API: upstream.Messages, Model: "claude-opus-5-5", Session: name, Run: func(command string) string {
			if strings.Contains(command, "main.go") {
				return "package main\n"
			}
			return upstream.Output(command)
		}}
		c.History = append(c.History, map[string]any{"role": "user", "content": "Read all the files, one after the other."})
		for i := 0; i < 120 && len(told) < 3; i++ {
			if name == "changing" {
				c.System = fmt.Sprint("It is ", i)
			} else if i == 4 {
				if err := g.Controller().Protect(t.Context(), only(t, g.Controller()), session.Protection{Message: 5}, true); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := c.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(told) < 2 {
			t.Fatalf("%d epochs", len(told))
		}
		for i, req := range told {
			want := core.Cached{Messages: len(req.Messages) - 2, Until: now.Add(5 * time.Minute)}
			if name == "changing" {
				want = core.Cached{}
			}
			if req.Cached != want {
				t.Errorf("%s, epoch %d: of %d messages %v are cached, want %v", name, i, len(req.Messages), req.Cached, want)
			}
			if !strings.Contains(files[i], "package newest") || strings.Contains(files[i], "package main") {
				t.Errorf("%s, epoch %d: the file is %s", name, i, files[i])
			}
			kept := func(why string) bool {
				return slices.ContainsFunc(req.Messages, func(m core.Message) bool { return m.Labels["kept"] == why })
			}
			if pinned := name == "same"; kept("pin") != pinned || !kept("request") {
				t.Errorf("%s, epoch %d: pinned %t, the newest request %t", name, i, kept("pin"), kept("request"))
			}
		}
	}
}
