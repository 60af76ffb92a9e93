package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
)

// patience is how long a call waits for a restart. For a longer wait it is better to ask
// another provider.
const patience = time.Second

// blink is a wait that is not worth an answer before the deadline of a call: the error is then that of the deadline.
const blink = 50 * time.Millisecond

// A starting is a start that calls wait for.
type starting struct {
	began time.Time
	done  chan struct{}
	err   error // set before done is closed
}

// acquire returns a ready process for one call, and starts it if necessary.
func (p *Process) acquire(ctx context.Context) (*instance, error) {
	for {
		i, s, delay, err := p.ready() //nolint:contextcheck // a start belongs to all calls
		switch {
		case err != nil:
			return nil, err
		case i != nil:
			return i, nil
		case s != nil:
			if err := p.await(ctx, s); err != nil {
				return nil, err
			}
		default:
			if end, ok := ctx.Deadline(); ok && time.Until(end) < delay {
				return nil, &unavailableError{plugin: p.spec.Name, why: fmt.Sprintf("it may start again in %s, when the time of this call is over", wait(delay)), before: p.lastFailure()}
			}
			t := time.NewTimer(delay)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return nil, p.notAsked(ctx, "it waits to be started again")
			}
		}
	}
}

// await waits for a start. The time of a call counts from its beginning, so that a slow start costs one timeout, and not one more for
// every call after the first: an estimate, say, and the call itself.
func (p *Process) await(ctx context.Context, s *starting) error {
	end, left := make(<-chan time.Time), time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		age := time.Since(s.began)
		if left = time.Until(deadline); min(age, left) > blink {
			t := time.NewTimer(max(0, left-age))
			defer t.Stop()
			end = t.C
		}
	}
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
	case <-end:
		select {
		case <-s.done:
			return s.err
		default:
		}
		if ctx.Err() == nil {
			why := fmt.Sprintf("it is still starting (no answer within %s)", left.Round(10*time.Millisecond))
			return &unavailableError{plugin: p.spec.Name, why: why}
		}
	}
	return p.notAsked(ctx, "it is still starting")
}

func (p *Process) lastFailure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts.last
}

// ready returns a process, else the start in progress, else how long to wait before the
// next start. The error says that this is too long.
func (p *Process) ready() (*instance, *starting, time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, 0, p.closedError()
	}
	if p.starting == nil && p.programChanged() {
		p.opts.Logger.Info("plugin has changed on disk", "plugin", p.spec.Name)
		p.retire()
		p.restarts = restarts{rule: p.opts.Restart}
	}
	if i := p.current; i != nil {
		i.calls++
		return i, nil, 0, nil
	}
	if p.starting != nil {
		return nil, p.starting, 0, nil
	}
	if delay := p.restarts.wait(time.Now()); delay > patience {
		why := "it ended or did not start; the next start is in " + wait(delay).String()
		if p.restarts.broken {
			why = fmt.Sprintf("it ended or did not start %d times within %s; the next start is in %s",
				p.opts.Restart.Crashes, p.opts.Restart.Window, wait(delay))
		}
		return nil, nil, 0, &unavailableError{plugin: p.spec.Name, why: why, before: p.restarts.last}
	} else if delay > 0 {
		return nil, nil, delay, nil
	}
	return nil, p.start(), 0, nil
}

// programChanged reports whether the program differs from the one last seen. It ignores pinned programs: the approved
// copy keeps running, whatever happens to the file.
func (p *Process) programChanged() bool {
	if p.spec.SHA256 != "" || p.spec.Attach != nil {
		return false
	}
	info, err := os.Stat(p.spec.Path)
	if err != nil {
		return false // it is about to be replaced
	}
	was := p.seen
	p.seen = info
	return was != nil && (!os.SameFile(info, was) || info.Size() != was.Size() || !info.ModTime().Equal(was.ModTime()))
}

// start begins a start. The lock is held.
func (p *Process) start() *starting {
	s := &starting{began: time.Now(), done: make(chan struct{})}
	p.starting = s
	p.starts++
	prog := p.prog
	prog.use()
	p.work.Go(func() {
		inst, prog, err := p.launch(prog)
		switch {
		case errors.Is(err, ErrClosed):
			err = &startError{p.spec.Name, err}
		case err != nil:
			err = &startError{p.spec.Name, err}
			p.opts.Logger.Error("plugin did not start", "plugin", p.spec.Name, "error", err)
		default:
			p.opts.Logger.Info("plugin started", "plugin", p.spec.Name, "pid", inst.child.pid(),
				"version", inst.about.Version, "sdk", inst.about.SDK, "took", time.Since(inst.child.started))
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.started(inst, prog, err)
		s.err = err
		close(s.done)
	})
	return s
}

// started records the result of a start. The lock is held.
func (p *Process) started(inst *instance, prog *program, err error) {
	p.starting = nil
	if err != nil {
		p.drop(prog)
		p.restarts.failure(time.Now(), err)
		return
	}
	p.may = inst.about.Abilities
	if p.prog == nil {
		p.prog = prog
		prog.use()
	}
	p.current = inst
	inst.idleSince = time.Now() // and not when the start began
	p.work.Go(func() { p.watch(inst) })
}

// launch loads the program, unless it is loaded, and starts it. The program that is
// returned is in use, even with an error.
func (p *Process) launch(prog *program) (*instance, *program, error) {
	if p.spec.Attach != nil {
		inst, err := attach(p.closing, &p.spec, &p.opts)
		return inst, nil, err
	}
	dir, err := p.privateDir()
	if err != nil {
		return nil, prog, err
	}
	if prog == nil {
		if p.spec.SHA256 == "" {
			p.opts.Logger.Warn("plugin is not pinned: any program at its path runs", "plugin", p.spec.Name, "path", p.spec.Path)
		}
		if prog, err = loadProgram(&p.spec, dir); err != nil {
			return nil, nil, err
		}
	}
	sub, err := dir.mkdir()
	if err != nil {
		return nil, prog, err
	}
	inst, err := launch(p.closing, &p.spec, prog, sub, &p.opts)
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

// drop ends a use of a program. The lock is held.
func (p *Process) drop(prog *program) {
	if prog.unuse() {
		if err := prog.close(); err != nil {
			p.opts.Logger.Warn("copy of a plugin cannot be removed", "error", err)
		}
	}
}

// retire makes the next call start the plugin again, program and process. The process in
// use gets no more calls, and is stopped when none runs. The lock is held.
func (p *Process) retire() {
	if i := p.current; i != nil {
		p.current = nil
		i.retired = true
		i.touch()
	}
	p.drop(p.prog)
	p.prog = nil
}

// recycle makes the next call start a new process of the same program.
func (p *Process) recycle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recycleLocked()
}

func (p *Process) recycleLocked() {
	prog := p.prog
	prog.use()
	p.retire()
	p.prog = prog
}

// attach connects to a plugin that was not started by the host. go-plugin could do it, but
// would poll every second whether that process still exists.
func attach(ctx context.Context, spec *Spec, opts *Options) (*instance, error) {
	i := newInstance(spec, opts)
	i.log.WarnContext(ctx, "plugin is not started but attached to, without encryption", "address", spec.Attach.Addr.String)
	c := &child{attached: true, limits: &spec.Limits, out: i.out, started: time.Now(), exited: make(chan struct{})}
	c.addr.Store(&handshake{network: spec.Attach.Addr.Network, address: spec.Attach.Addr.String})
	c.link = newLink(c.address)
	i.child = c
	conn, err := grpc.NewClient("passthrough:///plugin", append(i.dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, err
	}
	i.stop = func() {
		c.link.cut()
		_ = conn.Close()
		c.over.Do(func() {
			c.status, c.uptime = "connection closed", time.Since(c.started)
			close(c.exited)
		})
	}
	go func() {
		<-c.link.broken
		i.stop()
	}()
	return i, i.start(ctx, func() (plugin.ClientProtocol, error) {
		plugins := caller.Plugins(i.callOptions(opts))[wire.ProtocolVersion]
		return &plugin.GRPCClient{Conn: conn, Plugins: plugins}, nil
	})
}
