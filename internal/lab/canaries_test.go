package lab_test

import (
	"context"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/canary"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/transcript"
)

// keepTalk keeps what has no tool group: the user's words with all that was ever said, and the newest messages.
func keepTalk(_ context.Context, req *core.Request) (*core.Result, error) {
	n := len(req.Messages)
	return &core.Result{Messages: core.KeepGroups(req.Messages, func(i int) bool {
		m := &req.Messages[i]
		if i == 0 || i >= n-3 {
			return true
		}
		for _, p := range m.Parts {
			if _, ok := p.(core.Text); !ok {
				return false
			}
		}
		return m.Role == core.RoleUser
	})}, nil
}

// TestCanaries: what keeps the user's words keeps every canary and every old value in them, as truncation does by its budget; the
// rule of Roo Code loses all, as truncation loses what tools said. The same seed gives the same.
func TestCanaries(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	items, err := lab.Find("canaries:demo:context", "canaries:demo:super", "canaries:demo:swe-agent")
	if err != nil {
		t.Fatal(err)
	}
	opts := lab.Options{Budgets: budgets(t, "20%"), Rounds: 4, RoundsFormat: "condense", Cache: t.TempDir()}
	r := run(t, items, opts, lab.Strategy{Name: "talk", Key: "talk", Provider: core.ProviderFunc(keepTalk)}, window("window", "budget"), window("half", "half"))
	if len(r.Sessions) != 2 || len(r.Skipped) != 1 || len(r.Rows) != 0 {
		t.Fatalf("%d sessions, skipped %v, %d rows", len(r.Sessions), r.Skipped, len(r.Rows))
	}
	found := 0
	for _, l := range r.CanaryLines {
		said := l.Type != canary.Hostile && l.Type != canary.Neutral
		if l.Failed != 0 || len(l.Kept) < 3 {
			t.Errorf("%s %s: %d rounds, %d failed", l.Strategy, l.Type, len(l.Kept), l.Failed)
			continue
		}
		found++
		last := l.Kept[len(l.Kept)-1].Mean
		switch {
		case l.Strategy != "half" && said:
			if last != 1 || l.FirstLost != 0 || l.Stale == nil || l.Stale.Mean != 1 || l.Misled.Mean != 0 {
				t.Errorf("%s, %s: %+v", l.Strategy, l.Type, l)
			}
		case last > 0.2 || l.FirstLost == 0:
			t.Errorf("%s, %s: %+v", l.Strategy, l.Type, l)
		}
	}
	if found != 3*(1+len(canary.Types)) {
		t.Errorf("%d lines", found)
	}
	if again := run(t, items, opts, lab.Strategy{Name: "talk", Key: "talk", Provider: core.ProviderFunc(keepTalk)}, window("window", "budget"), window("half", "half")); encode(t, again) != encode(t, r) {
		t.Error("another report from the cache")
	}
}

// TestRulesSurviveFormats: with smart, what the user forbids, requires and limits is there after every round,
// in a fifth of the room, whatever the format that the view is written in between two rounds.
func TestRulesSurviveFormats(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	items, err := lab.Find("canaries:demo:super")
	if err != nil {
		t.Fatal(err)
	}
	p, err := smart.Strategy().Open(t.Context(), nil, registry.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range transcript.Formats() {
		if f.ReadOnly {
			continue
		}
		r := run(t, items, lab.Options{Budgets: budgets(t, "20%"), Rounds: 5, RoundsFormat: f.Name}, lab.Strategy{Name: "smart", Provider: p})
		found := 0
		for _, l := range r.CanaryLines {
			if l.Type != canary.Rule && l.Type != canary.Constraint {
				continue
			}
			if found++; l.FirstLost != 0 || l.Failed != 0 || len(l.Kept) < 4 {
				t.Errorf("%s: %s: first lost in round %d of %d, %d failed", f.Name, l.Type, l.FirstLost, len(l.Kept), l.Failed)
			}
		}
		if found != 2 {
			t.Errorf("%s: %d lines", f.Name, found)
		}
	}
}
