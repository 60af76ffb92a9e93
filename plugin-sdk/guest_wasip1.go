package pluginsdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// A guest serves a strategy in a module of WebAssembly, by the messages of condense.proto.
type guest struct {
	strategy registry.Strategy
	provider core.CondensationProvider // as configured

	// Of the call.
	host   byhand.Host
	models map[string]model.Info
}

// describe returns a DescribeResponse.
func (g *guest) describe() []byte { return byhand.Describe(&g.strategy, version(), "") }

// configure opens the provider with the settings of a ConfigureRequest, and returns a ConfigureResponse.
func (g *guest) configure(request []byte) (response []byte) {
	defer rescue()
	var settings []byte
	err := byhand.Each(request, func(f *byhand.Field) error {
		if f.Num == 1 {
			settings = f.Value
		}
		return nil
	})
	if err != nil {
		fail(codeInternal, err.Error())
	}
	env := byhand.Env(slog.New(logger{}), func() map[string]model.Info { return g.models }, func(context.Context) *byhand.Host { return &g.host })
	g.provider, err = g.strategy.Open(context.Background(), settings, env)
	switch {
	case errors.Is(err, core.ErrUnavailable):
		fail(codeOf(err), err.Error())
	case err != nil:
		return byhand.Refused(byhand.Problems(g.strategy, err))
	case g.provider == nil:
		fail(codeInternal, "the strategy opened no provider")
	}
	return response
}

// condense decodes a call and returns an Edit.
func (g *guest) condense(call []byte) (edit []byte) {
	defer rescue()
	req, err := g.request(call)
	if err != nil {
		fail(codeInvalid, err.Error())
	}
	given := req.Clone()
	ctx := core.WithProgress(context.Background(), func(fraction float64, text string) {
		hostProgress(fraction, pointer(text), uint32(len(text)))
	})
	g.host.Fill(ctx, given, func(err error) { fail(codeInternal, err.Error()) })
	res, err := g.provider.Condense(ctx, given)
	if err == nil && res == nil {
		err = errors.New("the provider returned no result")
	}
	if err == nil {
		err = byhand.Expressible(req, res)
	}
	if err == nil {
		err = byhand.Edits(req.Messages, res.Messages, g.host.At, func(piece []byte) error {
			edit = append(edit, piece...)
			return nil
		})
	}
	if err != nil {
		fail(codeOf(err), err.Error())
	}
	edit = byhand.AppendBytes(edit, byhand.NumDone, byhand.AppendBytes(byhand.AppendBytes(nil, 3, res.State), 4, []byte(byhand.Valid(res.Later))))
	for i := range res.Steps {
		step := byhand.EncodeStep(&res.Steps[i])
		hostReport(pointer(step), uint32(len(step)))
	}
	return edit
}

// request decodes a call: messages in field 1, the start in field 2.
func (g *guest) request(call []byte) (*core.Request, error) {
	req := &core.Request{}
	err := byhand.Each(call, func(f *byhand.Field) error {
		if f.Num != 2 {
			return nil
		}
		start, err := byhand.DecodeStart(f.Value)
		req, g.models, g.host.Callbacks = start.Request, start.Models, start.Callbacks
		return err
	})
	if err != nil {
		return nil, err
	}
	if req.Messages, err = byhand.DecodeRun(call, nil); err != nil {
		return nil, err
	}
	req.Abilities = g.strategy.Abilities
	g.host.Ask, g.host.Messages, g.host.At = ask, req.Messages, byhand.Index(req.Messages)
	return req, nil
}

// ask has the host answer a Callback. One other than the first two is in a CountTokens: see [byhand.NumCallback].
func ask(_ context.Context, num protowire.Number, request []byte) ([]byte, error) {
	const generate = 3
	if num > generate {
		request = byhand.AppendBytes(nil, byhand.NumCallback, byhand.AppendBytes(nil, num, request))
	}
	var answer uint64
	if num == generate {
		answer = hostGenerate(pointer(request), uint32(len(request)))
	} else {
		answer = hostCount(pointer(request), uint32(len(request)))
	}
	runtime.KeepAlive(request) // the host has called alloc
	return imported(answer), nil
}

// The codes of gRPC's statuses that a guest fails with.
const (
	codeUnknown  = 2
	codeInvalid  = 3
	codeInternal = 13
)

func codeOf(err error) int32 { return int32(byhand.CodeOf(err, codeUnknown)) }

// rescue ends the call with the reason and the place of a panic.
func rescue() {
	if v := recover(); v != nil {
		stack := debug.Stack()
		fail(codeInternal, fmt.Sprintf("panic: %v%s", v, byhand.Where(stack)))
	}
}

// A logger passes records to the host.
type logger struct{ attrs []slog.Attr }

// Enabled leaves the choice to the host.
func (logger) Enabled(context.Context, slog.Level) bool { return true }

// Handle writes the record as one line, without its time.
func (l logger) Handle(ctx context.Context, r slog.Record) error {
	var line bytes.Buffer
	h := slog.NewTextHandler(&line, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}})
	err := h.WithAttrs(l.attrs).Handle(ctx, r)
	text := strings.TrimSpace(r.Message + " " + line.String())
	hostLog(int32(r.Level), pointer(text), uint32(len(text)))
	return err
}

// WithAttrs returns a logger that adds attrs to every record.
func (l logger) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logger{append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)}
}

// WithGroup returns l: the host's log has no groups.
func (l logger) WithGroup(string) slog.Handler { return l }
