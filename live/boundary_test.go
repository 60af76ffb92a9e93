package live_test

import (
	"context"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// repairs is an agent whose build fails with the tenth request, before an epoch is due, and passes with the nineteenth, or never.
func repairs(t *testing.T, api upstream.API, passes bool, patience int) *play {
	t.Helper()
	script := upstream.Loop(30, 9000, nil)
	script[9], script[18] = upstream.Step{Commands: []string{"make all"}}, upstream.Step{Commands: []string{"make -s all"}}
	p := &play{vendor: upstream.New(upstream.Options{Script: script})}
	const window = 200_000
	host := dueAt(window, func(_ context.Context, r *core.Request) (*core.Result, error) {
		n := len(r.Messages)
		return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 2 || i >= n-3 })}, nil
	})
	share := 15.0
	small := host.Values.Profiles["small"]
	small.Threshold = &share
	host.Values.Profiles["small"] = small
	p.serve(t, host, func(o *live.Options) {
		o.Epoch, o.Ingest.Off, o.Recall.Off = live.EpochOptions{IgnoreCold: true, IgnorePayback: true, Patience: patience}, true, true
	})
	p.client.API, p.client.Model, p.client.Session = api, "gpt-5.1", "s"
	if api == upstream.Messages {
		p.client.Model = "claude-sonnet-4-5"
	}
	p.client.Run = func(command string) string {
		if strings.HasPrefix(command, "make") {
			if passes && command == "make -s all" {
				return "done"
			}
			return "a.c:1: error: x\nmake: *** [Makefile:2: all] Error 1"
		}
		return strings.ReplaceAll(upstream.Output(command), "error TS", "note TS") // other commands do not fail
	}
	p.client.History = append(p.client.History, map[string]any{"role": "user", "content": "Build it."})
	return p
}

// An epoch that is due while a build is broken is prepared when it passes, and begins with the request after that one, whatever the API.
func TestNoEpochBetweenAFailureAndItsRepair(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, api := range []upstream.API{upstream.Messages, upstream.Chat, upstream.Responses} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			p := repairs(t, api, true, 100)
			d := p.Controller()
			steps(t, p, 19)
			if c := only(t, d); c.Waits != string(epoch.ForRepair) || c.Size < 30_000 {
				t.Errorf("a broken build: %d tokens, waits for %q", c.Size, c.Waits)
			}
			steps(t, p, 1) // with the result of the build that passes
			if n := p.Stats().EpochCount; n != 0 {
				t.Errorf("%d epochs before the build passed", n)
			}
			steps(t, p, 1)
			if c := only(t, d); p.Stats().EpochCount != 1 || c.Waits != "" || !c.Condensed {
				t.Errorf("after the repair: %d epochs, waits for %q", p.Stats().EpochCount, c.Waits)
			}
			if s := p.Stats(); len(s.Errors) > 0 || len(p.vendor.Refusals()) > 0 {
				t.Errorf("faults %v, refusals %v", s.Errors, p.vendor.Refusals())
			}
		})
	}
}

// A build that nobody repairs does not keep an epoch from beginning, and a user who asks for one gets it at once.
func TestTheWaitForARepairEnds(t *testing.T) {
	t.Parallel()
	p := repairs(t, upstream.Messages, false, 4)
	steps(t, p, 25)
	if n := p.Stats().EpochCount; n != 1 {
		t.Errorf("%d epochs with patience for four answers", n)
	}
	p = repairs(t, upstream.Messages, false, 100)
	d := p.Controller()
	steps(t, p, 18)
	c := only(t, d)
	if c.Waits == "" || p.Stats().EpochCount != 0 {
		t.Fatalf("%+v", c)
	}
	if err := d.Now(t.Context(), c, session.Order{}); err != nil {
		t.Fatal(err)
	}
	steps(t, p, 1)
	if c := only(t, d); !c.Condensed || c.LastOrder == nil || !c.LastOrder.Changed {
		t.Errorf("asked for while an epoch waits: %+v, %+v", c, c.LastOrder)
	}
}
