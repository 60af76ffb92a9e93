package supervise

import (
	"log/slog"
	"os"
	"time"

	"github.com/condensehq/condense/internal/wire"
)

// Options adjust a [Process]. A nil pointer and the zero value of every field mean the
// defaults.
type Options struct {
	// Logger gets what the plugin says and what becomes of it; default: nothing is logged.
	Logger *slog.Logger
	// TempDir holds the private folders; default: [os.TempDir]. It must be short: the path
	// of a socket in it may have 107 bytes on Linux, 103 on macOS.
	TempDir string
	// Client goes with every call; its Logger defaults to Logger.
	Client  wire.ClientOptions
	Restart Restart
	Breaker Breaker
	// Grace is how long a process may take to stop when asked to, and to be gone when
	// killed; default 3 s.
	Grace time.Duration
}

// Restart says when a process that ended or did not start may be started again. After
// the n-th time within Window the next start waits Min·2ⁿ⁻¹, at most Max, less up to half
// of it at random. After Crashes times nothing is started for Cooldown; then every
// further failure within Window costs another Cooldown.
type Restart struct {
	Min      time.Duration // default 200 ms
	Max      time.Duration // default 30 s
	Crashes  int           // default 5
	Window   time.Duration // default 1 min
	Cooldown time.Duration // default 30 s
}

// Breaker says when calls to a process that runs are given up for a while: after Failures
// calls in a row that were not answered in time or not as the protocol demands. After
// Cooldown one call is let through; if it succeeds, all are.
type Breaker struct {
	Failures int           // default 5
	Cooldown time.Duration // default 30 s
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&d.TempDir, os.TempDir())
	setDefault(&d.Grace, 3*time.Second)
	setDefault(&d.Restart.Min, 200*time.Millisecond)
	setDefault(&d.Restart.Max, 30*time.Second)
	setDefault(&d.Restart.Crashes, 5)
	setDefault(&d.Restart.Window, time.Minute)
	setDefault(&d.Restart.Cooldown, 30*time.Second)
	setDefault(&d.Breaker.Failures, 5)
	setDefault(&d.Breaker.Cooldown, 30*time.Second)
	return d
}
