package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/transcript"
)

var logLevels = []string{"debug", "info", "warn", "error"}

// logger returns what prints the log of plugins and of the host; nil if nobody asked for it.
func (a *app) logger(cmd *cobra.Command, level string, loud bool) (*slog.Logger, error) {
	switch {
	case level == "" && !loud:
		return nil, nil //nolint:nilnil // the flag was not given
	case level == "":
		level = "info"
	case !slices.Contains(logLevels, level):
		return nil, usage(cmd, "--log: no level %q; there are %s", level, strings.Join(logLevels, ", "))
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usage(cmd, "--log: %w", err)
	}
	return slog.New(authorLog{mu: &sync.Mutex{}, w: a.stderr, level: l}), nil
}

// text returns what a file or, if the path is "-", standard input holds.
func (a *app) text(ctx context.Context, path string) (string, error) {
	return input(ctx, a, path, func(r io.Reader) (string, error) {
		data, err := transcript.ReadAll(r, int64(a.maxInput))
		return string(data), err
	})
}
