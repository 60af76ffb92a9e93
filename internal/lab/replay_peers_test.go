package lab_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
)

// TestReplayUnchecked: a program that nothing checks condenses although it returns messages without identifiers and drops what no
// other provider may, and is not asked at every request if it leaves too much.
func TestReplayUnchecked(t *testing.T) {
	t.Parallel()
	all := []said{{0, "user", "Begin.", ""}}
	for i := range 30 {
		all = append(all, said{5 * time.Second, "assistant", words(i, 500), ""}, said{5 * time.Second, "user", fmt.Sprintf("Go on %d.", i), ""})
	}
	all = append(all, said{5 * time.Second, "assistant", "Done.", ""})
	asked := map[string]int{}
	program := func(name string, keep int) lab.Policy {
		p := at(20_000, name, core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
			asked[name]++
			out := &core.Result{}
			for _, m := range req.Messages[max(0, len(req.Messages)-keep):] {
				out.Messages = append(out.Messages, core.Message{Role: m.Role, Parts: m.Parts})
			}
			return out, nil
		}))
		p.Strategy.Unchecked = true
		return p
	}
	tariffs := []lab.Tariff{tariff(t, "claude-opus-4-6")}
	r := replay(t, []lab.Item{recording("long", all...)}, tariffs, program("newest", 2), program("nothing", 1000))
	if p := played(t, r, "newest", tariffs[0].Name); len(p.Epochs) == 0 || p.USD >= p.Untouched || p.Error != "" {
		t.Errorf("epochs %+v, %v of %v dollars, error %q", p.Epochs, p.USD, p.Untouched, p.Error)
	}
	if p := played(t, r, "nothing", tariffs[0].Name); len(p.Epochs) != 0 || asked["nothing"] > 3 {
		t.Errorf("it leaves everything: %d epochs, asked %d times in %d requests", len(p.Epochs), asked["nothing"], p.Requests)
	}
}
