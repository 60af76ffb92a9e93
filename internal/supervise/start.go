package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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
				return nil, &unavailableError{plugin: g.spec.Name, why: fmt.Sprintf("it may start again in %s, when the time of this call is over", wait(delay)), before: p.lastFailure(g)}
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
	if g.starting == nil && g.changed() {
		p.opts.Logger.Info("plugin has changed on disk", "plugin", g.spec.Name)
		p.retire(g)
		g.restarts = restarts{rule: p.opts.Restart}
	}
	if i := g.current; i != nil {
		i.calls++
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
		return nil, nil, 0, &unavailableError{plugin: g.spec.Name, why: why, before: g.restarts.last}
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
		switch {
		case errors.Is(err, ErrClosed):
			err = &startError{g.spec.Name, err}
		case err != nil:
			err = &startError{g.spec.Name, err}
			p.opts.Logger.Error("plugin did not start", "plugin", g.spec.Name, "error", err)
		default:
			p.opts.Logger.Info("plugin started", "plugin", g.spec.Name, "pid", inst.child.pid(),
				"version", inst.about.Version, "sdk", inst.about.SDK, "took", time.Since(inst.child.started))
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.started(g, inst, prog, err)
		s.err = err
		close(s.done)
	})
	return s
}

// started takes in what came of a start of g. The lock is held.
func (p *Process) started(g *generation, inst *instance, prog *program, err error) {
	g.starting = nil
	if err != nil {
		p.drop(prog)
		g.restarts.failure(time.Now(), err)
		return
	}
	if g.prog == nil {
		g.prog = prog
		prog.use()
	}
	g.current = inst
	p.work.Go(func() { p.watch(g, inst) })
	select {
	case <-g.retired:
		p.retire(g)
	default:
	}
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
