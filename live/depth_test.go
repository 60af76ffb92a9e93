package live_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// An epoch that the window forces is as deep as any other, also under a system prompt as large as that of
// Claude Code.
func TestForcedEpochsAreDeep(t *testing.T) {
	c := claude("s")
	c.System = strings.Repeat("Some of the many rules that an agent has. ", 1800)
	p := newPlay(t, upstream.Options{}, c, func(o *live.Options) { o.Epoch.IgnorePayback = true })
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
