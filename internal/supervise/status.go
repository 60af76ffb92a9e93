package supervise

import "time"

// A Status is what a [Process] is doing, for people and tests.
type Status struct {
	State   State
	PID     int           // of the process; 0 if none runs
	Calls   int           // that run
	Starts  int           // so far, those that failed included
	Crashes int           // processes that ended by themselves or had to be killed, so far
	Last    error         // why a process last failed; nil if none did lately
	Retry   time.Duration // until a start or a call is tried again; 0 if nothing prevents it
}

// A State is the state of a [Process].
type State string

// The states.
const (
	StateStopped  State = "stopped"  // the next call starts a process
	StateStarting State = "starting" // calls wait
	StateReady    State = "ready"
	StateWaiting  State = "waiting" // a process failed; Retry says when the next may start
	StateBroken   State = "broken"  // so many failed that none is started for longer
	StateOpen     State = "open"    // calls to a process that runs failed: no calls until Retry
	StateClosed   State = "closed"
)

// Status returns what p is doing.
func (p *Process) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, now := p.gen, time.Now()
	s := Status{State: StateStopped, Calls: len(g.slots), Starts: p.starts, Crashes: p.crashes, Last: g.restarts.last}
	if g.current != nil {
		s.PID = g.current.child.pid()
	}
	delay := g.restarts.wait(now)
	open := g.breaker.left()
	switch {
	case p.closed:
		s.State = StateClosed
	case open > 0:
		s.State, s.Retry = StateOpen, open
		s.Last = g.breaker.lastError()
	case g.current != nil:
		s.State = StateReady
	case g.starting != nil:
		s.State = StateStarting
	case delay > 0 && g.restarts.broken:
		s.State, s.Retry = StateBroken, delay
	case delay > 0:
		s.State, s.Retry = StateWaiting, delay
	}
	return s
}
