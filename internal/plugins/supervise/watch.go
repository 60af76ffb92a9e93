package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// A watcher supervises one process: it checks the health while calls run, stops the process
// when it is idle or retired, and notices when it ends by itself.
type watcher struct {
	p *Process
	i *instance

	probeAt time.Time // when to check the health if calls run
	drainBy time.Time // when the calls of a retired process must have ended; else zero
}

// watch supervises i until nothing of it is left.
func (p *Process) watch(i *instance) {
	w := watcher{p: p, i: i, probeAt: time.Now().Add(i.spec.Limits.Health / 2)}
	w.wait()
	p.mu.Lock()
	busy := i.spec.deaf() && i.abandoned > 0
	p.mu.Unlock()
	if busy {
		i.child.kill() // it would not notice that it is asked to exit
	}
	if err := i.end(); err != nil {
		p.opts.Logger.Error("plugin cannot be stopped", "error", err)
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

// wait returns when the process has ended or must be stopped.
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

// step performs due actions. It returns the time until the next may be due, and whether the process must be stopped.
// Calls do not wake the watcher, so it polls for them.
func (w *watcher) step(now time.Time) (next time.Duration, stop bool) {
	limits, every := &w.i.spec.Limits, w.i.spec.Limits.Health/2
	w.p.mu.Lock()
	calls, suspect := w.i.calls, w.i.suspect
	w.i.suspect = false
	idle := limits.Idle - now.Sub(w.i.idleSince) // time left until it is idle for too long
	switch {
	case limits.Idle < 0:
		idle = every
	case calls > 0:
		idle = limits.Idle
	}
	if idle <= 0 && !w.i.retired {
		w.p.retire()
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
			crash := w.i.report()
			crash.Reason = fmt.Errorf("it was replaced, and its calls did not end within %s", limits.Drain)
			w.i.settle(crash)
			return 0, true
		}
		next = min(next, w.drainBy.Sub(now))
	}
	if w.i.child.attached {
		return next, false // a breakpoint may stop it for any time
	}
	if suspect || calls > 0 && !now.Before(w.probeAt) {
		w.probe()
		w.probeAt = time.Now().Add(every)
	}
	return next, false
}

// probe checks the health of the process and kills it if the check fails.
func (w *watcher) probe() {
	ctx, cancel := context.WithCancel(w.p.closing)
	defer cancel()
	if err := w.i.probe(ctx); err != nil && w.p.closing.Err() == nil {
		w.giveUp(err)
	}
}

// giveUp kills the process because of err, unless it is about to end by itself, which is
// the better explanation.
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

// crashed records that the process ended by itself or was killed for a fault.
func (w *watcher) crashed() {
	select {
	case <-w.i.child.exited:
	case <-time.After(w.i.grace): // it cannot be killed
	}
	crash := w.i.report()
	w.p.mu.Lock()
	crash.Lost = w.i.calls
	if w.p.current == w.i {
		w.p.current = nil
	}
	if !w.p.closed {
		w.p.crashes++
		w.p.restarts.failure(time.Now(), crash)
	}
	w.p.mu.Unlock()
	w.p.opts.Logger.LogAttrs(context.Background(), slog.LevelError, "plugin crashed", crash.attrs()...)
	w.i.settle(crash)
}
