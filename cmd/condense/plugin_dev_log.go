package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// An authorLog writes what a plugin logs and prints, for its author. What the host says of
// the process is left out: where it matters, the error says it.
type authorLog struct {
	mu     *sync.Mutex
	w      io.Writer
	level  slog.Level
	stream bool // only what came out of the process
}

// authorLogs returns the loggers for what a plugin prints and for what it logs in calls.
func authorLogs(w io.Writer) (output, calls *slog.Logger) {
	mu := new(sync.Mutex)
	return slog.New(authorLog{mu: mu, w: w, level: slog.LevelInfo, stream: true}), slog.New(authorLog{mu: mu, w: w, level: slog.LevelDebug})
}

// Enabled implements [slog.Handler].
func (h authorLog) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

// Handle writes one line.
func (h authorLog) Handle(_ context.Context, r slog.Record) error {
	var fields strings.Builder
	output := false
	var add func(slog.Attr)
	add = func(at slog.Attr) {
		switch {
		case at.Key == "stream":
			output = true
		case at.Key == "stack": // in one line it is of no use, and the error says where it was
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
	if h.stream && !output {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	printf(h.w, "  log %-5s %s%s\n", strings.ToLower(r.Level.String()), r.Message, fields.String())
	return nil
}

// WithAttrs returns h: the attributes of the host are left out.
func (h authorLog) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup returns h.
func (h authorLog) WithGroup(string) slog.Handler { return h }
