package supervise_test

import (
	"errors"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
)

func TestStart(t *testing.T) {
	b := newBench(t, "window")
	p := b.open(t)
	req := request()
	out, err := chain(t, p, time.Minute).Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Attempts[0]; got.Outcome != core.OutcomeApplied {
		t.Errorf("got %s, %s; want applied", got.Outcome, got.Reason)
	}
}

// TestDoesNotStart has the exact words of every way not to start. The first call fails
// with them; the next is not made, and quotes them.
func TestDoesNotStart(t *testing.T) {
	for _, tt := range []struct{ program, want string }{
		{"ends-early", "start plugin acme: it ended before its handshake (exit status 3); it wrote: cannot open the database: no such file"},
		{"ends-silently", "start plugin acme: it ended before its handshake (exit status 0) and wrote nothing"},
	} {
		t.Run(tt.program, func(t *testing.T) {
			b := newBench(t, tt.program)
			b.opts.Restart.Min = time.Hour
			b.opts.Restart.Max = time.Hour
			p := b.open(t)
			_, err := p.Condense(t.Context(), request())
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %q; want %q", err, tt.want)
			}
			if errors.Is(err, core.ErrUnavailable) {
				t.Error("it says that it was not tried")
			}
			_, err = p.Condense(t.Context(), request())
			if !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("second call: got %v; want unavailable", err)
			}
		})
	}
}
