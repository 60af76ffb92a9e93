package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/caller"
)

// A Process is a plugin as a provider; see the package comment. It is safe for concurrent
// use. The operating system's process, which may be another one after a crash, is an
// [instance].
type Process struct {
	spec    Spec
	opts    Options
	slots   chan struct{} // one for every running call
	breaker *breaker
	closing context.Context //nolint:containedctx // the life of the Process, not of a call
	close   context.CancelCauseFunc
	end     func() error   // once
	work    sync.WaitGroup // starts and instances

	mu       sync.Mutex
	closed   bool
	restarts restarts
	prog     *program // nil until the first start, and after an idle stop
	current  *instance
	starting *starting
	seen     fs.FileInfo    // of the program when it was last looked at, if it is not pinned
	dir      *privateDir    // nil until needed
	may      core.Abilities // of the last process
	starts   int
	crashes  int
}

var _ core.CondensationProvider = (*Process)(nil)

// Open returns the plugin that s describes. Its program must exist and be executable. The
// program is started, and its digest checked, by the first call.
func Open(s Spec, opts *Options) (*Process, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", s.Name, err)
	}
	p := &Process{spec: s.clone(), opts: opts.withDefaults()}
	p.slots = make(chan struct{}, p.spec.Limits.Calls)
	p.restarts = restarts{rule: p.opts.Restart}
	// Failed calls may have left the process in any state: the next try gets a new one.
	p.breaker = newBreaker(s.Name, p.opts.Breaker, p.recycle)
	p.closing, p.close = context.WithCancelCause(context.Background())
	p.end = sync.OnceValue(p.shutdown)
	return p, nil
}

// Condense asks the plugin for a shorter conversation. If ctx has no deadline the call has
// [core.DefaultTimeout]. If the process dies while it has other calls too, the call is
// repeated once. The error wraps [core.ErrUnavailable] if the plugin was not asked, is a
// [*CrashError] if its process ended during the call, and wraps [ErrClosed] after Close. A
// result with an error has only the usage of the host's models.
func (p *Process) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	var lost core.Usage // of failed calls
	res, err := p.condense(ctx, req, &lost)
	if lost != (core.Usage{}) {
		res = cmp.Or(res, &core.Result{})
		res.Usage = res.Usage.Add(lost)
	}
	return res, err
}

func (p *Process) condense(ctx context.Context, req *core.Request, lost *core.Usage) (*core.Result, error) {
	return p.do(ctx, func(ctx context.Context) (*core.Result, error) {
		if err := p.enter(ctx); err != nil {
			return nil, err
		}
		defer func() { <-p.slots }()
		return p.breaker.do(func() (res *core.Result, err error) {
			err = p.on(ctx, func(ctx context.Context, i *instance) (err error) {
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

// Describe returns the description that the plugin gives of itself, and starts the plugin
// if it does not run.
func (p *Process) Describe(ctx context.Context) (*caller.Description, error) {
	var about *caller.Description
	err := p.visit(ctx, func(_ context.Context, i *instance) error {
		about = i.about
		return nil
	})
	return about, err
}

// Strategy returns the name by which the plugin describes itself, and starts the plugin if it does not run; empty if it cannot be started.
func (p *Process) Strategy(ctx context.Context) (name string) {
	_ = p.visit(ctx, func(_ context.Context, i *instance) error { name = i.about.Name; return nil }) // the call that follows fails, too
	return name
}

// EstimateCost implements [core.CostEstimator]. The error wraps [errors.ErrUnsupported] if the plugin does not estimate.
func (p *Process) EstimateCost(ctx context.Context, req *core.Request) (u core.Usage, err error) {
	err = p.visit(ctx, func(ctx context.Context, i *instance) (err error) {
		u, err = i.wire.EstimateCost(ctx, req)
		return err
	})
	return u, err
}

// Abilities implements [core.Declarer]. They are known from the first start on.
func (p *Process) Abilities() core.Abilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.may
}

// Ping starts the plugin if it does not run, and checks its health. The error wraps
// [core.ErrUnavailable] while the breaker is open.
func (p *Process) Ping(ctx context.Context) error {
	if p.isClosed() {
		return p.closedError()
	}
	if p.breaker.left() > 0 {
		return p.breaker.unavailable()
	}
	return p.visit(ctx, func(ctx context.Context, i *instance) error { return i.check(ctx) })
}

// visit does something with a ready process that does not count as a call.
func (p *Process) visit(ctx context.Context, do func(context.Context, *instance) error) error {
	_, err := p.do(ctx, func(ctx context.Context) (*core.Result, error) { return nil, p.on(ctx, do) })
	return err
}

// do makes a call, and makes it again if its process died while it had other calls too.
func (p *Process) do(ctx context.Context, call func(context.Context) (*core.Result, error)) (*core.Result, error) {
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
		if p.isClosed() {
			return nil, p.closedError()
		}
		res, err := call(ctx)
		switch {
		case died != nil && errors.Is(err, core.ErrUnavailable):
			return nil, died // the plugin was asked, whatever happened later
		case died != nil || !errors.As(err, &died) || died.Lost < 2:
			return res, err
		default:
			// Another call is more likely to have caused the crash. Only one repetition: it may
			// have been this one.
			p.opts.Logger.DebugContext(ctx, "call is repeated on another process", "plugin", p.spec.Name)
		}
	}
}

func (p *Process) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *Process) closedError() error { return fmt.Errorf("plugin %s: %w", p.spec.Name, ErrClosed) }

// enter waits until another call may run, and takes its slot.
func (p *Process) enter(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return p.notAsked(ctx, fmt.Sprintf("%d calls run, as many as it may have", cap(p.slots)))
	}
}

// on does something with a ready process.
func (p *Process) on(ctx context.Context, do func(context.Context, *instance) error) error {
	if ctx.Err() != nil {
		return p.notAsked(ctx, "the time of the call is over")
	}
	i, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	if err = do(ctx, i); err != nil {
		err = i.explainCall(ctx, err)
	}
	p.release(i, err)
	return err
}

// notAsked is the error of a call whose time was over before the plugin received it.
func (p *Process) notAsked(ctx context.Context, why string) error {
	return &unavailableError{plugin: p.spec.Name, why: why, ctx: context.Cause(ctx)}
}

// maxAbandoned is the number of calls that a program may still work on although they were cancelled.
const maxAbandoned = 4

// release ends a call on i.
func (p *Process) release(i *instance, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i.calls--
	if blame(err) == blamePlugin {
		i.suspect = true
	}
	if errors.As(err, new(*lateError)) || i.spec.deaf() && errors.Is(err, context.Canceled) {
		i.abandoned++
	}
	if n := i.abandoned; p.current == i && (n >= min(maxAbandoned, i.spec.Limits.Calls) || n > 0 && i.spec.deaf()) {
		p.opts.Logger.Warn("plugin is restarted: it may still work on calls that were cancelled", "plugin", i.spec.Name, "calls", n)
		p.recycleLocked()
	}
	if i.calls == 0 {
		i.idleSince = time.Now()
	}
	if i.suspect || i.retired {
		i.touch()
	}
}

// Close stops the plugin. Running calls fail. It returns when nothing of the plugin is
// left.
func (p *Process) Close() error { return p.end() }

func (p *Process) shutdown() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.close(ErrClosed)
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire()
	if p.dir == nil {
		return nil
	}
	return p.dir.remove()
}

// A Status counts the processes of a [Process].
type Status struct {
	PID     int // of the one that runs; 0 if none does
	Starts  int // so far, including failed ones
	Crashes int // that ended by themselves or had to be killed, so far
}

// Status returns the status of p.
func (p *Process) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{Starts: p.starts, Crashes: p.crashes}
	if p.current != nil {
		s.PID = p.current.child.pid()
	}
	return s
}
