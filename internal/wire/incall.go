package wire

import (
	"context"
	"log/slog"
	"slices"

	"github.com/condensehq/condense/internal/wire/condensepb"
)

// callKey is the key of a call's [*serverCall] in the context of its provider.
type callKey struct{}

func callOf(ctx context.Context) (*serverCall, bool) {
	c, ok := ctx.Value(callKey{}).(*serverCall)
	return c, ok
}

// progress sends a report of [core.Progress] to the host.
func (c *serverCall) progress(fraction float64, text string) {
	p := &condensepb.Progress{Text: valid(text)}
	if fraction >= 0 {
		p.Fraction = new(min(fraction, 1))
	}
	_ = c.send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Progress{Progress: p}})
}

// A callHandler sends records to the host of the call that they are logged in, and leaves
// those without one to next.
type callHandler struct {
	next   slog.Handler
	groups string // prefix of keys, with a dot at its end
	attrs  []slog.Attr
}

// Enabled reports whether the host of a call wants to know.
func (h *callHandler) Enabled(ctx context.Context, level slog.Level) bool {
	if c, ok := callOf(ctx); ok {
		return level >= c.level
	}
	return h.next.Enabled(ctx, level)
}

// Handle sends r, or has next handle it.
func (h *callHandler) Handle(ctx context.Context, r slog.Record) error {
	c, ok := callOf(ctx)
	if !ok {
		return h.next.Handle(ctx, r)
	}
	l := &condensepb.Log{Level: levelName(r.Level), Message: bytesOf(r.Message)}
	add := func(prefix string, a slog.Attr) { l.Fields = appendFields(l.Fields, prefix, a) }
	for _, a := range h.attrs {
		add("", a)
	}
	r.Attrs(func(a slog.Attr) bool {
		add(h.groups, a)
		return true
	})
	return c.send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Log{Log: l}})
}

// WithAttrs returns a handler that adds attrs to every record.
func (h *callHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	n.next = h.next.WithAttrs(attrs)
	n.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		a.Key = h.groups + a.Key
		n.attrs = append(n.attrs, a)
	}
	return &n
}

// WithGroup returns a handler that puts name before the keys to come.
func (h *callHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	n := *h
	n.next = h.next.WithGroup(name)
	n.groups += name + "."
	return &n
}

func appendFields(fields []*condensepb.LogField, prefix string, a slog.Attr) []*condensepb.LogField {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, g := range v.Group() {
			fields = appendFields(fields, prefix, g)
		}
		return fields
	}
	if a.Equal(slog.Attr{}) {
		return fields
	}
	return append(fields, &condensepb.LogField{Key: valid(prefix + a.Key), Value: []byte(v.String())})
}

func levelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warn"
	case l >= slog.LevelInfo:
		return "info"
	default:
		return "debug"
	}
}
