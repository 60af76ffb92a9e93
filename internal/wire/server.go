package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// ServerOptions adjust a [Server]. A nil pointer and the zero value of every field mean the defaults.
type ServerOptions struct {
	Version string       // of the plugin; default: unknown
	SDK     string       // name and version of the library that serves; default: unknown
	Logger  *slog.Logger // for records that do not belong to a call; default: discard
}

// A Server is the plugin's end of the protocol: a strategy, served. It is safe for
// concurrent use. Close it when nothing is served any more.
type Server struct {
	condensepb.UnimplementedProviderServiceServer

	strategy registry.Strategy
	opts     ServerOptions
	logger   *slog.Logger // given to providers: a call's records go to its host

	mu      sync.Mutex
	current *opened      // nil before the first Configure
	models  atomic.Value // a map[string]model.Info of the host, as of its last call
	old     sync.WaitGroup
}

// NewServer returns a server of s.
func NewServer(s registry.Strategy, opts *ServerOptions) *Server {
	srv := &Server{strategy: s}
	if opts != nil {
		srv.opts = *opts
	}
	srv.opts.Logger = cmp.Or(srv.opts.Logger, slog.New(slog.DiscardHandler))
	srv.logger = slog.New(&callHandler{next: srv.opts.Logger.Handler()})
	return srv
}

// Register registers s with r.
func (s *Server) Register(r grpc.ServiceRegistrar) { condensepb.RegisterProviderServiceServer(r, s) }

// Describe describes the strategy.
func (s *Server) Describe(_ context.Context, req *condensepb.DescribeRequest) (*condensepb.DescribeResponse, error) {
	s.opts.Logger.Debug("described", "host", req.GetHost()) //nolint:sloglint // belongs to no call
	res := &condensepb.DescribeResponse{}
	return res, proto.Unmarshal(byhand.Describe(&s.strategy, s.opts.Version, s.opts.SDK), res)
}

// Configure opens a provider with new settings, for all later calls. The previous one is closed when its last call has ended.
func (s *Server) Configure(ctx context.Context, req *condensepb.ConfigureRequest) (res *condensepb.ConfigureResponse, err error) {
	// The provider may keep its context for as long as it is open; the call's ends with the call.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(ctx, p)
		}
		if err != nil || len(res.GetProblems()) > 0 {
			end()
		}
	}()
	p, err := s.strategy.Open(life, req.GetSettings(), byhand.Env(s.logger, func() map[string]model.Info {
		m, _ := s.models.Load().(map[string]model.Info)
		return m
	}, hostOf))
	switch {
	case err == nil && p == nil:
		return nil, status.Error(codes.Internal, "the strategy opened no provider")
	case err == nil && !stop():
		return nil, toStatus(errors.Join(ctx.Err(), core.Close(p)))
	case err == nil:
		s.replace(&opened{provider: p, end: end})
		_, estimates := p.(core.CostEstimator)
		return &condensepb.ConfigureResponse{Estimates: estimates}, nil
	}
	if ctx.Err() != nil || errors.Is(err, core.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return nil, toStatus(err)
	}
	return refused(byhand.Problems(s.strategy, err))
}

// refused returns the answer that settings have problems.
func refused(problems []Problem) (*condensepb.ConfigureResponse, error) {
	res := &condensepb.ConfigureResponse{}
	return res, proto.Unmarshal(byhand.Refused(problems), res)
}

// An opened is a provider and the calls that use it.
type opened struct {
	provider core.CondensationProvider
	calls    sync.WaitGroup
	end      context.CancelFunc
}

// acquire returns the current provider; call its calls.Done after use.
func (s *Server) acquire() (*opened, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil, status.Error(codes.FailedPrecondition, "not configured yet")
	}
	s.current.calls.Add(1)
	return s.current, nil
}

// replace makes o the current provider; nil for none.
func (s *Server) replace(o *opened) {
	s.mu.Lock()
	was := s.current
	s.current = o
	s.mu.Unlock()
	if was == nil {
		return
	}
	s.old.Go(func() {
		was.calls.Wait()
		if err := core.Close(was.provider); err != nil {
			s.opts.Logger.Warn("closing the provider", "error", err)
		}
		was.end()
	})
}

// Close closes the provider once its calls have ended, and waits for it until ctx is done.
func (s *Server) Close(ctx context.Context) error {
	s.replace(nil)
	done := make(chan struct{})
	go func() {
		s.old.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("calls are still running: %w", ctx.Err())
	}
}

// callKey is the key of a call's [*serverCall] in the context of its provider.
type callKey struct{}

func callOf(ctx context.Context) (*serverCall, bool) {
	c, ok := ctx.Value(callKey{}).(*serverCall)
	return c, ok
}

// hostOf returns the host of a call.
func hostOf(ctx context.Context) *byhand.Host {
	if c, ok := callOf(ctx); ok {
		return &c.host
	}
	return &byhand.Host{}
}

// progress sends a report of [core.Progress] to the host.
func (c *serverCall) progress(fraction float64, text string) {
	p := &condensepb.Progress{Text: valid(text)}
	if fraction >= 0 {
		p.Fraction = new(min(fraction, 1))
	}
	_ = c.send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Progress{Progress: p}})
}

// A callHandler sends records to the host of the call in which they are logged. Records outside of a call go to next.
type callHandler struct {
	next   slog.Handler
	groups string // prefix of keys, with a dot at its end
	attrs  []slog.Attr
}

// Enabled reports whether the host of the call records the level.
func (h *callHandler) Enabled(ctx context.Context, level slog.Level) bool {
	if c, ok := callOf(ctx); ok {
		return level >= c.level
	}
	return h.next.Enabled(ctx, level)
}

// Handle sends r, or passes it to next.
func (h *callHandler) Handle(ctx context.Context, r slog.Record) error {
	c, ok := callOf(ctx)
	if !ok {
		return h.next.Handle(ctx, r)
	}
	l := &condensepb.Log{Level: LevelName(r.Level), Message: byhand.Bytes(r.Message)}
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

// WithGroup returns a handler that prefixes later keys with name.
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

// Levels are the levels at which a plugin may log; another is info, which is zero.
var Levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// LevelName returns the name of a level in [Levels].
func LevelName(l slog.Level) string {
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
