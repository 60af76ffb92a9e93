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

// A generation is a plugin with one Spec. [Process.Replace] begins the next.
type generation struct {
	spec    Spec
	slots   chan struct{} // one for every call that runs
	breaker *breaker
	retired chan struct{} // closed when the next one has begun

	// Guarded by the lock of the Process.
	restarts restarts
	prog     *program // nil until the first start, and after an idle stop
	current  *instance
	starting *starting
}

// A starting is a start that calls wait for.
type starting struct {
	done chan struct{}
	inst *instance // set before done is closed
	err  error
}

// Open returns the plugin that s describes. Its program must be there and executable;
// nothing is started yet, and its digest is checked when it is.
func Open(s Spec, opts *Options) (*Process, error) {
	p := &Process{opts: opts.withDefaults()}
	p.closing, p.close = context.WithCancelCause(context.Background())
	var err error
	if p.gen, err = p.newGeneration(s); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Process) newGeneration(s Spec) (*generation, error) {
	fail := func(err error) (*generation, error) { return nil, fmt.Errorf("plugin %s: %w", s.Name, err) }
	if err := s.validate(); err != nil {
		return fail(err)
	}
	if s.Attach == nil {
		f, _, err := openProgram(s.Path)
		if err != nil {
			return fail(err)
		}
		_ = f.Close()
	}
	g := &generation{spec: s.clone(), retired: make(chan struct{}), restarts: restarts{rule: p.opts.Restart}}
	g.slots = make(chan struct{}, g.spec.Limits.Calls)
	// Calls that failed may have left anything behind: the trial gets a new process.
	g.breaker = newBreaker(s.Name, p.opts.Breaker, func() { p.recycle(g) })
	return g, nil
}

// Condense asks the plugin for a shorter conversation. If ctx has no deadline the call has
// [core.DefaultTimeout]. If the process dies while it has other calls too, the call is
// repeated once. The error wraps [core.ErrUnavailable] if the plugin was not asked,
// is a [*CrashError] if its process ended meanwhile, and wraps [ErrClosed] after Close.
func (p *Process) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	return p.do(ctx, func(ctx context.Context, i *instance) (*core.Result, error) {
		res, err := i.wire.Condense(ctx, req)
		if err == nil {
			i.served.Add(1)
		}
		return res, err
	})
}

// Describe returns what the plugin says of itself.
func (p *Process) Describe(ctx context.Context) (*wire.Description, error) {
	var about *wire.Description
	_, err := p.do(ctx, func(_ context.Context, i *instance) (*core.Result, error) {
		about = i.about
		return nil, nil //nolint:nilnil // there is no result
	})
	return about, err
}

// Ping starts the plugin if it does not run, and asks for its health.
func (p *Process) Ping(ctx context.Context) error {
	_, err := p.do(ctx, func(ctx context.Context, i *instance) (*core.Result, error) {
		return nil, i.check(ctx)
	})
	return err
}

// do makes a call to a process that is ready.
func (p *Process) do(ctx context.Context, call func(context.Context, *instance) (*core.Result, error)) (*core.Result, error) {
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
		res, err := p.callOn(ctx, g, call)
		switch {
		case errors.Is(err, errRetired):
		case errors.Is(err, core.ErrUnavailable) && died != nil:
			return nil, died // it was asked, whatever came after
		case errors.Is(err, core.ErrUnavailable) || died != nil || !errors.As(err, &died) || died.Lost < 2:
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

// callOn makes a call on g: when there is room, unless calls are given up, on a process
// that is ready.
func (p *Process) callOn(ctx context.Context, g *generation, call func(context.Context, *instance) (*core.Result, error)) (*core.Result, error) {
	select {
	case g.slots <- struct{}{}:
	default:
		select {
		case g.slots <- struct{}{}:
		case <-g.retired:
			return nil, errRetired
		case <-ctx.Done():
			return nil, g.notAsked(ctx, fmt.Sprintf("%d calls run, as many as it may have", cap(g.slots)))
		}
	}
	defer func() { <-g.slots }()
	return g.breaker.do(func() (*core.Result, error) {
		i, err := p.acquire(ctx, g)
		if err != nil {
			return nil, err
		}
		res, err := call(ctx, i)
		if err != nil {
			err = i.explainCall(ctx, err)
		}
		p.release(i, err)
		return res, err
	})
}

// notAsked is the error of a call whose time was over before the plugin was asked.
func (g *generation) notAsked(ctx context.Context, why string) error {
	return &unavailableError{plugin: g.spec.Name, why: why, cause: context.Cause(ctx)}
}

// patience is how long a call waits for a program that must not be started again yet.
// Beyond, it is better to ask somebody else.
const patience = time.Second

// acquire returns a process of g that is ready, for one call, and starts it if need be.
func (p *Process) acquire(ctx context.Context, g *generation) (*instance, error) {
	for {
		i, s, delay, err := p.ready(g) //nolint:contextcheck // a start is everybody's, not this call's
		switch {
		case err != nil:
			return nil, err
		case i != nil:
			return i, nil
		case s != nil:
			select {
			case <-s.done:
				if s.err != nil {
					return nil, s.err
				}
			case <-ctx.Done():
				return nil, g.notAsked(ctx, "it is still starting")
			}
		default:
			if end, ok := ctx.Deadline(); ok && time.Until(end) < delay {
				return nil, &unavailableError{plugin: g.spec.Name, why: fmt.Sprintf("it may start again in %s, when the time of this call is over", wait(delay)), cause: p.lastFailure(g)}
			}
			t := time.NewTimer(delay)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return nil, g.notAsked(ctx, "it waits to be started again")
			}
		}
	}
}

func (p *Process) lastFailure(g *generation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return g.restarts.last
}

// ready returns a process, or else the start that is under way, or else how long to wait
// before there can be one. The error says that this is too long.
func (p *Process) ready(g *generation) (*instance, *starting, time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, 0, fmt.Errorf("plugin %s: %w", g.spec.Name, ErrClosed)
	}
	if p.gen != g {
		return nil, nil, 0, errRetired
	}
	if g.prog != nil && g.starting == nil && g.prog.changed(g.spec.Path) {
		p.opts.Logger.Info("plugin has changed on disk", "plugin", g.spec.Name)
		p.retire(g)
		g.restarts = restarts{rule: p.opts.Restart}
	}
	if i := g.current; i != nil {
		i.calls++
		i.touch()
		return i, nil, 0, nil
	}
	if g.starting != nil {
		return nil, g.starting, 0, nil
	}
	if delay := g.restarts.wait(time.Now()); delay > patience {
		why := "it ended or did not start; the next start is in " + wait(delay).String()
		if g.restarts.broken {
			why = fmt.Sprintf("it ended or did not start %d times within %s; the next start is in %s",
				p.opts.Restart.Crashes, p.opts.Restart.Window, wait(delay))
		}
		return nil, nil, 0, &unavailableError{plugin: g.spec.Name, why: why, cause: g.restarts.last}
	} else if delay > 0 {
		return nil, nil, delay, nil
	}
	return nil, p.start(g), 0, nil
}

// start begins a start of g. The lock is held.
func (p *Process) start(g *generation) *starting {
	s := &starting{done: make(chan struct{})}
	g.starting = s
	p.starts++
	prog := g.prog
	prog.use()
	p.work.Go(func() {
		inst, prog, err := p.launch(g, prog)
		p.mu.Lock()
		defer p.mu.Unlock()
		defer close(s.done)
		g.starting = nil
		if err != nil {
			p.drop(prog)
			s.err = &startError{g.spec.Name, err}
			if !p.closed {
				g.restarts.failure(time.Now(), s.err)
				p.opts.Logger.Error("plugin did not start", "plugin", g.spec.Name, "error", err)
			}
			return
		}
		if g.prog == nil {
			g.prog = prog
			prog.use()
		}
		s.inst, g.current = inst, inst
		p.work.Go(func() { p.watch(g, inst) })
		p.opts.Logger.Info("plugin started", "plugin", g.spec.Name, "pid", inst.child.pid(),
			"version", inst.about.Version, "sdk", inst.about.SDK, "took", time.Since(inst.child.started))
		select {
		case <-g.retired:
			p.retire(g)
		default:
		}
	})
	return s
}

// launch loads the program of g, unless it is loaded, and starts it. The program that is
// returned is in use, whatever the error.
func (p *Process) launch(g *generation, prog *program) (*instance, *program, error) {
	if g.spec.Attach != nil {
		inst, err := attach(p.closing, &g.spec, &p.opts)
		return inst, nil, err
	}
	dir, err := p.privateDir()
	if err != nil {
		return nil, prog, err
	}
	if prog == nil {
		if g.spec.SHA256 == "" {
			p.opts.Logger.Warn("plugin is not pinned: whatever stands there runs", "plugin", g.spec.Name, "path", g.spec.Path)
		}
		if prog, err = loadProgram(&g.spec, dir); err != nil {
			return nil, nil, err
		}
	}
	sub, err := dir.mkdir()
	if err != nil {
		return nil, prog, err
	}
	inst, err := launch(p.closing, &g.spec, prog, sub, &p.opts)
	return inst, prog, err
}

func (p *Process) privateDir() (*privateDir, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == nil {
		dir, err := newPrivateDir(p.opts.TempDir)
		if err != nil {
			return nil, err
		}
		p.dir = dir
	}
	return p.dir, nil
}

// release ends a call on i.
func (p *Process) release(i *instance, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i.calls--
	if blame(err) == blamePlugin {
		i.suspect = true
		if errors.Is(err, context.DeadlineExceeded) {
			i.abandoned++
		}
	}
	i.touch()
}

// drop ends the use of a program. The lock is held.
func (p *Process) drop(prog *program) {
	if prog.unuse() {
		if err := prog.close(); err != nil {
			p.opts.Logger.Warn("copy of a plugin cannot be removed", "error", err)
		}
	}
}

// retire has g begin anew with the next call: its process gets no more calls and is
// stopped when it has none. The lock is held.
func (p *Process) retire(g *generation) {
	if i := g.current; i != nil {
		g.current = nil
		i.retired = true
		i.touch()
	}
	p.drop(g.prog)
	g.prog = nil
}

// recycle has the next call of g get a new process of the same program.
func (p *Process) recycle(g *generation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recycleLocked(g)
}

func (p *Process) recycleLocked(g *generation) {
	prog := g.prog
	prog.use()
	p.retire(g)
	g.prog = prog
}

// Replace begins anew with s: it starts the new program and, if that is ready, sends all
// further calls there. Calls that run end where they began. An error leaves everything as
// it was.
func (p *Process) Replace(ctx context.Context, s Spec) error {
	g, err := p.newGeneration(s)
	if err != nil {
		return err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return fmt.Errorf("plugin %s: %w", s.Name, ErrClosed)
	}
	start := p.start(g) //nolint:contextcheck // what runs outlives the call
	p.mu.Unlock()
	select {
	case <-start.done:
		err = start.err
	case <-ctx.Done():
		err = fmt.Errorf("plugin %s: still starting: %w", s.Name, context.Cause(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.closed {
		err = fmt.Errorf("plugin %s: %w", s.Name, ErrClosed)
	}
	old := g
	if err == nil {
		old, p.gen = p.gen, g
	}
	close(old.retired)
	p.retire(old)
	return err
}

// Close stops the plugin. Calls that run fail. It returns when nothing of it is left.
func (p *Process) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.mu.Unlock()
	p.close(ErrClosed)
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire(p.gen)
	if p.dir == nil {
		return nil
	}
	return p.dir.remove()
}
