package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire"
)

// A Process is a plugin as a provider. See the package comment. It is safe for concurrent
// use.
type Process struct {
	opts    Options
	closing context.Context //nolint:containedctx // the life of the Process, not of a call
	close   context.CancelCauseFunc
	end     func() error   // once
	work    sync.WaitGroup // starts and instances

	mu      sync.Mutex
	closed  bool
	gen     *generation
	dir     *privateDir // nil until needed
	starts  int
	crashes int
}

var (
	_ core.CondensationProvider = (*Process)(nil)
	_ core.Pinger               = (*Process)(nil)
)

// Open returns the plugin that s describes. Its program must be there and executable;
// nothing is started yet, and its digest is checked when it is.
func Open(s Spec, opts *Options) (*Process, error) {
	p := &Process{opts: opts.withDefaults()}
	p.closing, p.close = context.WithCancelCause(context.Background())
	p.end = sync.OnceValue(p.shutdown)
	var err error
	if p.gen, err = p.newGeneration(s); err != nil {
		return nil, err
	}
	return p, nil
}

// Condense asks the plugin for a shorter conversation. If ctx has no deadline the call has
// [core.DefaultTimeout]. If the process dies while it has other calls too, the call is
// repeated once. The error wraps [core.ErrUnavailable] if the plugin was not asked,
// is a [*CrashError] if its process ended meanwhile, and wraps [ErrClosed] after Close. A
// result that comes with an error says only what was spent on models of the host.
func (p *Process) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	var lost core.Usage // of calls that came to nothing
	res, err := p.condense(ctx, req, &lost)
	if lost != (core.Usage{}) {
		if res == nil {
			res = &core.Result{}
		}
		res.Usage = res.Usage.Add(lost)
	}
	return res, err
}

func (p *Process) condense(ctx context.Context, req *core.Request, lost *core.Usage) (*core.Result, error) {
	return p.do(ctx, func(ctx context.Context, g *generation) (*core.Result, error) {
		if err := p.enter(ctx, g); err != nil {
			return nil, err
		}
		defer g.leave()
		return g.breaker.do(func() (res *core.Result, err error) {
			err = p.on(ctx, g, func(ctx context.Context, i *instance) (err error) {
				res, err = i.wire.Condense(ctx, req)
				switch {
				case err == nil:
					i.served.Add(1)
				case res != nil:
					*lost, res = lost.Add(res.Usage), nil
				}
				return err
			})
			return res, err
		})
	})
}

// Describe returns what the plugin says of itself, and starts it if it does not run.
func (p *Process) Describe(ctx context.Context) (*wire.Description, error) {
	var about *wire.Description
	err := p.visit(ctx, func(_ context.Context, i *instance) error {
		about = i.about
		return nil
	})
	return about, err
}

// Ping starts the plugin if it does not run, and asks for its health. The error wraps
// [core.ErrUnavailable] while calls are given up.
func (p *Process) Ping(ctx context.Context) error {
	g, err := p.generation()
	if err != nil {
		return err
	}
	if g.breaker.left() > 0 {
		return g.breaker.unavailable()
	}
	return p.visit(ctx, func(ctx context.Context, i *instance) error { return i.check(ctx) })
}

// visit does something with a process that is ready, beside the calls.
func (p *Process) visit(ctx context.Context, do func(context.Context, *instance) error) error {
	_, err := p.do(ctx, func(ctx context.Context, g *generation) (*core.Result, error) {
		return nil, p.on(ctx, g, do)
	})
	return err
}

// do makes a call on the generation in force, and again if that is replaced before the call
// began, or if its process died while it had other calls too.
func (p *Process) do(ctx context.Context, call func(context.Context, *generation) (*core.Result, error)) (*core.Result, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, core.DefaultTimeout)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(p.closing, func() { cancel(context.Cause(p.closing)) }) //nolint:contextcheck // ends calls too
	defer stop()
	var died *CrashError
	for {
		g, err := p.generation()
		if err != nil {
			return nil, err
		}
		res, err := call(ctx, g)
		switch {
		case errors.Is(err, errRetired):
		case died != nil && errors.Is(err, core.ErrUnavailable):
			return nil, died // it was asked, whatever came after
		case died != nil || !errors.As(err, &died) || died.Lost < 2:
			return res, err
		default:
			// It was more likely one of the others. Once is enough: it may have been this.
			p.opts.Logger.DebugContext(ctx, "call is repeated on another process", "plugin", g.spec.Name)
		}
	}
}

func (p *Process) generation() (*generation, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("plugin %s: %w", p.gen.spec.Name, ErrClosed)
	}
	return p.gen, nil
}

// enter waits for room for a call on g. Call leave after it.
func (p *Process) enter(ctx context.Context, g *generation) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-g.retired:
		return errRetired
	case <-ctx.Done():
		return g.notAsked(ctx, fmt.Sprintf("%d calls run, as many as it may have", cap(g.slots)))
	}
}

func (g *generation) leave() { <-g.slots }

// on does something with a process of g that is ready.
func (p *Process) on(ctx context.Context, g *generation, do func(context.Context, *instance) error) error {
	if ctx.Err() != nil {
		return g.notAsked(ctx, "the time of the call is over")
	}
	i, err := p.acquire(ctx, g)
	if err != nil {
		return err
	}
	if err = do(ctx, i); err != nil {
		err = i.explainCall(ctx, err)
	}
	p.release(i, err)
	return err
}

// notAsked is the error of a call whose time was over before the plugin was asked.
func (g *generation) notAsked(ctx context.Context, why string) error {
	return &unavailableError{plugin: g.spec.Name, why: why, ctx: context.Cause(ctx)}
}

// release ends a call on i.
func (p *Process) release(i *instance, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i.calls--
	if blame(err) == blamePlugin {
		i.suspect = true
		if errors.As(err, new(*lateError)) {
			i.abandoned++
		}
	}
	if i.calls == 0 {
		i.idleSince = time.Now()
	}
	if i.suspect || i.retired {
		i.touch()
	}
}
