package live_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestReminders: of the reminders that Claude Code appends again and again, only the newest is left after a
// condensation; what the user protects stays.
func TestReminders(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{}, claudeCode(), nil)
	p.client.History = []object{first(p.client.API, task)}
	epochs, most, newest := 0, 0, ""
	for n := range 40 {
		p.step(t)
		if now, sent := p.Stats().EpochCount, string(p.lastBody()); now > epochs {
			epochs, most = now, max(most, strings.Count(sent, "The task tools haven't been used recently"))
			if !strings.Contains(sent, newest) {
				t.Errorf("the newest reminder is missing: %s", newest)
			}
		}
		if n%3 == 0 {
			newest = fmt.Sprintf("[pending] part %d", n)
			p.client.History = append(p.client.History, object{"role": "system", "content": fmt.Sprintf(
				"The task tools haven't been used recently. %s%s", strings.Repeat("Consider them. ", 40), newest)})
		}
	}
	// An epoch is prepared in the background: a newer reminder can be among the client's own messages after it.
	if epochs < 2 || most > 2 {
		t.Errorf("after one of %d condensations there are %d reminders", epochs, most)
	}
}
