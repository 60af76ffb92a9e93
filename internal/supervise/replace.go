package supervise

import (
	"context"
	"fmt"
)

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
func (p *Process) Close() error { return p.end() }

func (p *Process) shutdown() error {
	p.mu.Lock()
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
