package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/live/wire"
)

// A shadow describes the vendor's cache of a conversation as it would be without the gateway.
type shadow struct {
	tokens int
	last   time.Time
}

// counted is the size of a prompt in tokens, by our count and by the server's.
type counted struct{ ours, theirs int }

// busy reports whether the next epoch is being prepared, or is ready.
func (c *claim) busy() bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.preparing != nil || c.prepared != nil
}

// takePrepared returns the condensation prepared for the beginning of these messages; nil if there is none. A repeated
// request must be sent the same bytes as before, so it leaves the condensation to the next request, unless an epoch is
// forced.
func (c *claim) takePrepared(rolling []wire.Hash, forced bool) *prepared {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	p := c.prepared
	if p != nil && !forced && p.basis.Fits(c.state, rolling) && !p.basis.Before(rolling) {
		return nil
	}
	c.prepared = nil
	if p == nil || !p.basis.Fits(c.state, rolling) {
		return nil
	}
	return p
}

// tried records that another attempt is pointless below a size, in tokens.
func (c *claim) tried(until int) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.retry = until
}

func (c *claim) triedAt() int {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.retry
}

// overflowed reports whether the vendor refused the lineage's last request as too long after the answer had begun.
func (c *claim) overflowed() bool {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.refused
}

// A preparation is a condensation in the background, for the next epoch of a lineage.
type preparation struct {
	run   func(context.Context) (*prepared, error)
	leave func() // called when it has ended, or was not begun
	retry int    // size in tokens below which another attempt is useless, if it fails
	order int    // number of the user's order; 0 for none
}

// backgroundDeadline limits a condensation for which no request waits.
const preparationDeadline = 10 * time.Minute

// prepare begins a preparation that ends with life, unless the lineage has one, and reports whether it did.
func (c *claim) prepare(life context.Context, background *sync.WaitGroup, p preparation) bool {
	e, s, ended := c.entry, c.session, make(chan struct{})
	ctx, cancel := context.WithTimeout(life, preparationDeadline)
	s.mu.Lock()
	if e.preparing != nil || e.prepared != nil || life.Err() != nil {
		s.mu.Unlock()
		cancel()
		p.leave()
		return false
	}
	e.preparing, e.abandon = ended, cancel
	s.mu.Unlock()
	background.Go(func() {
		defer p.leave()
		defer cancel()
		made, err := p.run(ctx)
		again := errors.Is(err, context.Canceled) && ctx.Err() != nil || errors.Is(err, errNotEarly)
		s.mu.Lock()
		defer s.mu.Unlock()
		close(ended)
		e.preparing, e.abandon, e.prepared = nil, nil, made
		if made == nil && !again {
			e.retry = p.retry
		}
		if made == nil && err != nil && p.order > 0 {
			e.failed = failure{p.order, reasonOf(err)}
		}
	})
	return true
}

// underWay returns the channel that is closed when the running preparation has ended, and a function that cancels it;
// nil if none is running.
func (c *claim) underWay() (ended <-chan struct{}, abandon func()) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.preparing, c.abandon
}

// setRefused records whether the vendor has refused the last request as too long, in the middle of the answer.
func (c *claim) setRefused(refused bool) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.refused = refused
}

// priced exchanges the description of the vendor's cache as it would be without the gateway.
func (c *claim) swapShadow(now shadow) (was shadow) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	was, c.shadow = c.shadow, now
	return was
}

// swapCounted exchanges the prompt sizes of the last answer.
func (c *claim) swapCounted(now counted) (was counted) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	was, c.counted = c.counted, now
	return was
}

// describe sets the description to store with the lineage.
func (c *claim) describe(a about) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.about = &a
}

// control returns the user's control of the conversation; never nil.
func (c *claim) control() *control {
	if c == nil || c.state == nil || c.state.Family == "" {
		return &control{}
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if found := c.session.controls[c.state.Family]; found != nil {
		return found
	}
	return &control{}
}

// setControl makes a control current in memory.
func (c *claim) setControl(known *control) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.session.addControl(known)
}

// frozen makes the state that the vendor saw last, if there is one, the claim's.
func (c *claim) frozen() (ok bool) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if c.entry.state == nil {
		return false
	}
	s := *c.entry.state
	c.state = &s
	return true
}

// guess records that a view was sent without being stored, whose last message has the rolling hash at. The next request
// builds it again from p.
func (c *claim) guess(p *prepared, at wire.Hash) {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.prepared, c.guessed = p, at
	if c.unread {
		c.session.guess = c.entry
	}
}
