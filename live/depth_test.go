package live_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// An epoch that the window forces is as deep as any other, also under a system prompt as large as that of
// Claude Code.
func TestForcedEpochsAreDeep(t *testing.T) {
	testkit.Slow(t)
	c := claude("s")
	c.System = strings.Repeat("Some of the many rules that an agent has. ", 1800)
	p := playIn(t, 60_000, upstream.Options{Window: 60_000}, c, func(o *live.Options) { o.Epoch.IgnorePayback = true })
	if _, err := p.client.Say(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	p.check(t, 1)
	const fixed = 19_000
	for _, e := range p.Stats().Epochs {
		if left := float64(e.After-fixed) / float64(e.Before-fixed); left > 0.4 {
			t.Errorf("an epoch left %.2f of what can be removed: %d of %d tokens", left, e.After, e.Before)
		}
	}
}

// A conversation that has cost little gets no epoch that would pay for itself only later, because it may end at once. What another
// epoch has saved may be risked.
func TestEpochsThatMayNotPay(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for risk, want := range map[float64]bool{100: true, 0.01: false} {
		p := newPlay(t, upstream.Options{}, claude("s"), func(o *live.Options) { o.Epoch.Risk = risk })
		if _, err := p.client.Say(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		epochs := p.Stats().Epochs
		if len(epochs) == 0 || (epochs[0].Reason == "payback") != want {
			t.Errorf("risk %v %%: the first epoch was for payback: %t, want %t: %+v", risk, !want, want, epochs)
		}
	}
}
