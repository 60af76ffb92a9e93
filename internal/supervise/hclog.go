package supervise

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
)

// A quietLogger takes what go-plugin has to say of its work into the host's log, all at
// the level debug: what of it matters to people this package says itself, in their words.
type quietLogger struct {
	hclog.Logger

	log *slog.Logger
	out *output // whose limits it has, because a plugin can make go-plugin complain at will
}

func newQuietLogger(log *slog.Logger, out *output) hclog.Logger {
	return quietLogger{hclog.NewNullLogger(), log.With("by", "go-plugin"), out}
}

// Log logs at the level debug, whatever the level.
func (l quietLogger) Log(_ hclog.Level, msg string, args ...any) {
	ctx := context.Background()
	if !l.log.Enabled(ctx, slog.LevelDebug) || !l.out.room() {
		return
	}
	args = slices.Clone(args)
	for i, a := range args {
		switch a.(type) {
		case string, error:
			args[i] = clip(printable(fmt.Sprint(a)), maxAttrBytes)
		}
	}
	l.log.DebugContext(ctx, msg, args...) //nolint:sloglint // go-plugin's words
}

// Trace is dropped: go-plugin traces every piece of output.
func (quietLogger) Trace(string, ...any) {}

// Debug implements [hclog.Logger].
func (l quietLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }

// Info implements [hclog.Logger].
func (l quietLogger) Info(msg string, args ...any) { l.Log(hclog.Info, msg, args...) }

// Warn implements [hclog.Logger].
func (l quietLogger) Warn(msg string, args ...any) { l.Log(hclog.Warn, msg, args...) }

// Error implements [hclog.Logger].
func (l quietLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

// With returns a logger that adds args.
func (l quietLogger) With(args ...any) hclog.Logger {
	return quietLogger{l.Logger, l.log.With(args...), l.out}
}

// Named returns l: names of loggers are hclog's idea.
func (l quietLogger) Named(string) hclog.Logger { return l }

// ResetNamed returns l.
func (l quietLogger) ResetNamed(string) hclog.Logger { return l }

// GetLevel has go-plugin parse no lines; there are none.
func (quietLogger) GetLevel() hclog.Level { return hclog.Off }
