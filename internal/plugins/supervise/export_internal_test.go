package supervise

import "time"

// Recycle makes the next call start a new process.
func (p *Process) Recycle() { p.recycle() }

// A State is the state of a [Process].
type State string

// The states.
const (
	StateStopped  State = "stopped"  // the next call starts a process
	StateStarting State = "starting" // calls wait
	StateReady    State = "ready"
	StateWaiting  State = "waiting" // a process failed; the next starts after a pause
	StateBroken   State = "broken"  // too many failed; none is started during a longer pause
	StateOpen     State = "open"    // calls to a process that runs failed: none is sent for a while
	StateClosed   State = "closed"
)

// Seen is a [Status] with what only tests look at.
type Seen struct {
	Status

	State State
	Calls int // that run
}

// Seen returns the state of p.
func (p *Process) Seen() Seen {
	s := Seen{Status: p.Status(), State: StateStopped, Calls: len(p.slots)}
	p.mu.Lock()
	defer p.mu.Unlock()
	failed := p.restarts.wait(time.Now()) > 0
	switch {
	case p.closed:
		s.State = StateClosed
	case p.breaker.left() > 0:
		s.State = StateOpen
	case p.current != nil:
		s.State = StateReady
	case p.starting != nil:
		s.State = StateStarting
	case failed && p.restarts.broken:
		s.State = StateBroken
	case failed:
		s.State = StateWaiting
	}
	return s
}
