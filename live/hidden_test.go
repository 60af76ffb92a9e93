package live_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/registry"
)

// TestHiddenMessagesInAGateway: from the second epoch on, a provider reads the messages that the epochs before left out: all of the client's own
// conversation that is not in the view, and nothing of another one.
func TestHiddenMessagesInAGateway(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var found []string // for each call after the first of its conversation, what was hidden
	tail := func(req *core.Request) ([]core.Message, error) {
		list, err := req.Hidden()
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, m := range list {
			ids = append(ids, m.ID)
			if slices.ContainsFunc(req.Messages, func(v core.Message) bool { return v.ID == m.ID }) {
				return nil, fmt.Errorf("%s is in the view, too", m.ID)
			}
		}
		if len(ids) > 0 {
			full, err := req.Hidden(ids...)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			found = append(found, fmt.Sprint(full))
			mu.Unlock()
		}
		size := req.Tokens()
		return core.KeepGroups(req.Messages, func(i int) bool {
			if size <= req.Budget.Target || i == 0 {
				return true
			}
			size -= req.Messages[i].Tokens
			return false
		}), nil
	}
	strategy := registry.Define("tail", "Keeps the newest messages.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				m, err := tail(req)
				return &core.Result{Messages: m}, err
			}), nil
		})
	n := window
	host := &condense.Options{Strategies: []registry.Strategy{strategy}, Values: &config.Values{
		DefaultProfile: "small", Providers: map[string]config.ProviderValues{"tail": {Strategy: "tail"}},
		Profiles: map[string]config.ProfileValues{"small": {Window: &n, Tuning: config.Tuning{Chain: []string{"tail"}}}},
	}}
	vendor := httptest.NewServer(upstream.New(upstream.Options{Window: window, Script: upstream.Loop(100, 2200, nil)}))
	t.Cleanup(vendor.Close)
	g, server := serveWith(t, vendor.URL, host, func(o *live.Options) { o.Epoch.IgnoreCold, o.Epoch.IgnorePayback = true, true })
	server.Config.Handler = live.Settled(g)
	others := map[string]string{} // by the calls of a conversation, whose it is
	for _, who := range []string{"Alice", "Bob"} {
		found = nil
		c := &upstream.Client{URL: server.URL, API: upstream.Messages, Model: "claude-opus-5-5", Session: who}
		if _, err := c.Say(t.Context(), "I am "+who+". Read all the files, one after the other."); err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatalf("%d epochs, none with something hidden", g.Stats().EpochCount)
		}
		last := strings.Join(found, "")
		if !strings.Contains(last, "earlier-m2 ") {
			t.Errorf("of %s: %.600q", who, last)
		}
		for _, call := range regexp.MustCompile(`toolu_[0-9a-f]+`).FindAllString(last, -1) {
			if whose := others[call]; whose != "" && whose != who {
				t.Fatalf("%s reads %s of %s", who, call, whose)
			}
			others[call] = who
		}
	}
	if len(others) != 2 {
		t.Errorf("the conversations have %v", others)
	}
}
