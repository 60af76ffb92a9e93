package job

import (
	"context"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/queue"
)

// An over context has a deadline that comes while the work is done, without a clock.
type over struct{ context.Context } //nolint:containedctx // it is a context

func (over) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }
func (over) Err() error                  { return context.DeadlineExceeded }

// TestAProcessThatComputesGetsFewerTurns: a chain that should wait for another process, and is not in time if many do so at once, gets
// as many turns as one that computes. In time or not, alone it tells nothing.
func TestAProcessThatComputesGetsFewerTurns(t *testing.T) {
	for _, c := range []struct {
		crowd int
		want  int64
	}{{1, turnsAtOnce()}, {int(turnsAtOnce()) + 1, computes()}} {
		r := &Runner{Epochs: queue.New(turnsAtOnce() * computes())}
		chain := &Learned{Names: []string{"a plugin"}, Waits: true}
		for range c.crowd {
			if _, ok := r.Epochs.Try("a tenant", chain.weight()); !ok {
				t.Fatal("no room")
			}
		}
		if _, err := r.paced(over{t.Context()}, &Job{Owner: Owner{Chain: chain}}, r.host, Inline, &chain.pace); err == nil {
			t.Fatal("a job without a body was done")
		}
		if got := chain.weight(); got != c.want {
			t.Errorf("%d at once were too slow: weight %d, want %d", c.crowd, got, c.want)
		}
	}
}

// TestALongConversationIsNotSkippedForItsLength: another process that took as long with short conversations as with long ones is
// expected to take that long. What computes takes longer with a longer one.
func TestALongConversationIsNotSkippedForItsLength(t *testing.T) {
	var p pace
	p.took(10_000, 2*time.Second)
	if got := p.of(100_000, true); got != 2*time.Second {
		t.Errorf("another process: %s", got)
	}
	if got := p.of(100_000, false); got != 20*time.Second {
		t.Errorf("on the processors: %s", got)
	}
	p.stopped(100_000, 5*time.Second)
	if got := p.of(10_000, true); got != 2*time.Second {
		t.Errorf("a short one after a long one that was stopped: %s", got)
	}
}
