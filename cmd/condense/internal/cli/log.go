package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/transcript"
)

// LogLevels are the values of --log.
var LogLevels = []string{"debug", "info", "warn", "error"}

// Logger returns a logger for plugins and the host; nil if no flag asks for one.
func (a *App) Logger(cmd *cobra.Command, level string, loud bool) (*slog.Logger, error) {
	switch {
	case level == "" && !loud:
		return nil, nil //nolint:nilnil // the flag was not given
	case level == "":
		level = "info"
	case !slices.Contains(LogLevels, level):
		return nil, Usage(cmd, "--log: no level %q; there are %s", level, strings.Join(LogLevels, ", "))
	}
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // it is one of them
	return slog.New(AuthorLog{Mu: &sync.Mutex{}, W: a.Stderr, Level: l}), nil
}

// Text returns the content of a file or, if the path is "-", of standard input.
func (a *App) Text(ctx context.Context, path string) (string, error) {
	return Input(ctx, a, path, func(r io.Reader) (string, error) {
		data, err := transcript.ReadAll(r, int64(a.maxInput))
		return string(data), err
	})
}

// An AuthorLog writes a plugin's logs and output, for its author. It leaves out the host's log about the process:
// errors include that where it matters.
type AuthorLog struct {
	Mu     *sync.Mutex
	W      io.Writer
	Level  slog.Level
	Stream bool // only the output of the process
}

// Enabled implements [slog.Handler].
func (h AuthorLog) Enabled(_ context.Context, l slog.Level) bool { return l >= h.Level }

// Handle writes one line.
func (h AuthorLog) Handle(_ context.Context, r slog.Record) error {
	var fields strings.Builder
	output := false
	var add func(slog.Attr)
	add = func(at slog.Attr) {
		switch {
		case at.Key == "stream":
			output = true
		case at.Key == "stack": // unreadable in one line, and the error has the position
		case at.Value.Kind() == slog.KindGroup:
			for _, in := range at.Value.Group() {
				add(in)
			}
		default:
			const most = 160 // bytes
			v := at.Value.String()
			if len(v) > most {
				v = strings.ToValidUTF8(v[:most], "") + "…"
			}
			fmt.Fprintf(&fields, " %s=%s", at.Key, v)
		}
	}
	r.Attrs(func(at slog.Attr) bool { add(at); return true })
	if h.Stream && !output {
		return nil
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	term.Printf(h.W, "  log %-5s %s%s\n", strings.ToLower(r.Level.String()), r.Message, fields.String())
	return nil
}

// WithAttrs returns h: the attributes of the host are left out.
func (h AuthorLog) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup returns h.
func (h AuthorLog) WithGroup(string) slog.Handler { return h }
