package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// A watcher looks after one process: asks for its health while calls run, stops it when it
// is idle or retired, and finds out when it ends by itself.
type watcher struct {
	p *Process
	g *generation
	i *instance

	probeAt time.Time // if calls run then
	drainBy time.Time // zero if it is not retired
}

// watch looks after i until nothing is left of it.
func (p *Process) watch(g *generation, i *instance) {
	w := watcher{p: p, g: g, i: i, probeAt: time.Now().Add(i.spec.Limits.Health / 2)}
	w.wait()
	if err := i.end(); err != nil {
		p.opts.Logger.Error("plugin is out of control", "error", err)
	}
	i.settle(nil)
	if i.crash == nil {
		p.opts.Logger.Info("plugin stopped", "plugin", i.spec.Name, "pid", i.child.pid(), "calls", i.served.Load())
	}
	p.mu.Lock()
	p.drop(i.prog)
	p.mu.Unlock()
	close(i.gone)
}

// wait returns when the process has ended or is to be stopped.
func (w *watcher) wait() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, stop := w.step(time.Now())
		if stop {
			return
		}
		timer.Reset(next)
		select {
		case <-w.i.child.exited:
			w.crashed()
			return
		case <-w.i.child.link.broken:
			w.giveUp(errors.New("it closed its connection"))
			w.crashed()
			return
		case <-w.p.closing.Done():
			return
		case <-w.i.changed:
		case <-timer.C:
		}
	}
}

// step does what is due and returns how long there is nothing to do, or that the process
// is to be stopped. Calls do not wake the watcher: it looks now and then whether some run.
func (w *watcher) step(now time.Time) (next time.Duration, stop bool) {
	limits, every := &w.i.spec.Limits, w.i.spec.Limits.Health/2
	w.p.mu.Lock()
	if n := w.i.abandoned; n >= limits.Calls && w.g.current == w.i {
		w.p.opts.Logger.Warn("plugin is started anew: it may still work on calls that were given up", "plugin", w.i.spec.Name, "calls", n)
		w.p.recycleLocked(w.g)
	}
	calls, suspect := w.i.calls, w.i.suspect
	w.i.suspect = false
	idle := limits.Idle - now.Sub(w.i.idleSince) // left until it is
	switch {
	case limits.Idle < 0:
		idle = every
	case calls > 0:
		idle = limits.Idle
	}
	if idle <= 0 && !w.i.retired {
		w.p.retire(w.g)
	}
	retired := w.i.retired
	w.p.mu.Unlock()

	next = min(every, max(idle, 0))
	if retired {
		if w.drainBy.IsZero() {
			w.drainBy = now.Add(limits.Drain)
		}
		if calls == 0 {
			return 0, true
		}
		if !now.Before(w.drainBy) {
			w.i.settle(fmt.Errorf("it was replaced, and its calls did not end within %s", limits.Drain))
			return 0, true
		}
		next = min(next, w.drainBy.Sub(now))
	}
	if w.i.child.attached {
		return next, false // in a debugger it may take its time
	}
	if suspect || calls > 0 && !now.Before(w.probeAt) {
		w.probe()
		w.probeAt = time.Now().Add(every)
	}
	return next, false
}

// probe asks for the health of the process and gives it up if there is none.
func (w *watcher) probe() {
	ctx, cancel := context.WithCancel(w.p.closing)
	defer cancel()
	if err := w.i.probe(ctx); err != nil && w.p.closing.Err() == nil {
		w.giveUp(err)
	}
}

// giveUp kills the process because of err, unless it is about to end by itself, which says
// more.
func (w *watcher) giveUp(err error) {
	if w.i.child.link.isBroken() {
		select {
		case <-w.i.child.exited:
			return
		case <-time.After(exitDelay):
		}
	}
	w.i.child.giveUp(err)
}

// crashed records that the process ended by itself, or was given up.
func (w *watcher) crashed() {
	select {
	case <-w.i.child.exited:
	case <-time.After(w.i.grace): // it cannot be killed
	}
	crash := w.i.report()
	w.p.mu.Lock()
	crash.Lost = w.i.calls
	if w.g.current == w.i {
		w.g.current = nil
	}
	if !w.p.closed {
		w.p.crashes++
		w.g.restarts.failure(time.Now(), crash)
	}
	w.p.mu.Unlock()
	w.p.opts.Logger.LogAttrs(context.Background(), slog.LevelError, "plugin crashed", crash.attrs()...)
	w.i.settleCrash(crash)
}
