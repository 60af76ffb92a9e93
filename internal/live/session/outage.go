package session

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
)

// An unreachable database: requests continue with this gateway's own knowledge, and nothing begins that would have to
// be stored. See docs/decisions/0035-fleet.md.

const (
	// How long requests wait for another gateway's knowledge, from the beginning of an outage.
	maxWait     = 15 * time.Second
	outageProbe = 200 * time.Millisecond // between attempts to reach the database
	outageGrace = 3 * time.Second        // after an outage: time for other gateways to store their unsaved states
	outagePoll  = 50 * time.Millisecond  // between checks for such states
)

// An outage is a period in which the store does not answer.
type outage struct {
	Most  time.Duration // how long requests may wait
	mu    sync.Mutex
	since time.Time     // zero if the store answers
	back  time.Time     // when the store answered again; the outage is over a little later
	ended chan struct{} // closed when the store answers again
}

// Now reports whether the store is unavailable.
func (o *outage) Now() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero() && o.back.IsZero()
}

// left returns a channel that is closed when the store answers again, and how long a request may wait for the states
// of other gateways; 0 without an outage.
func (o *outage) left() (ended <-chan struct{}, left time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.since.IsZero():
		return nil, 0
	case !o.back.IsZero():
		return o.ended, max(0, outageGrace-time.Since(o.back))
	}
	return o.ended, max(0, o.Most-time.Since(o.since))
}

// Lost records that the store is unavailable, and starts probing it in the background.
func (s *Sessions) Lost(err error) {
	o := &s.Outage
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() && o.back.IsZero() || s.Life.Err() != nil {
		return
	}
	o.since, o.back, o.ended = time.Now(), time.Time{}, make(chan struct{})
	s.Log().Warn("the database is away: requests go on, and nothing is condensed", "err", err)
	s.Background.Go(s.probe)
}

// probe waits until the store is back, then stores the unsaved states.
func (s *Sessions) probe() {
	o := &s.Outage
	tick := time.NewTicker(outageProbe)
	defer tick.Stop()
	for back := false; !back; {
		select {
		case <-tick.C:
			_, err := s.store.Changes(s.Life, store.Key{})
			back = err == nil && s.Flush(s.Life)
		case <-s.Life.Done():
			back = true
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Log().Info("the database is back", "after", time.Since(o.since).Round(time.Millisecond))
	o.back = time.Now()
	close(o.ended)
}

// Flush stores the unsaved states. It returns false if the store is unavailable again.
func (s *Sessions) Flush(ctx context.Context) bool {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.all))
	s.mu.Unlock()
	for _, one := range all {
		one.mu.Lock()
		late := plain.Only(one.entries, func(e *Entry) bool { return e.unsaved && e.State != nil })
		leases := plain.Each(late, func(e *Entry) *Lease { return &Lease{Entry: e, Session: one, Reads: e.reader} })
		one.mu.Unlock()
		for _, c := range leases {
			err := c.flush(ctx, s)
			if errors.Is(err, store.ErrUnavailable) {
				return false
			} else if err != nil && !errors.Is(err, store.ErrConflict) { // after a conflict, the other's state counts
				s.Fault("store", err)
			}
		}
	}
	return true
}

// flush stores an unsaved state, unless another gateway has stored a later one.
func (c *Lease) flush(ctx context.Context, in *Sessions) error {
	if !c.Latest(ctx) {
		return ctx.Err()
	}
	defer c.Release()
	err := c.Save(ctx, in.store, true, in.Now())
	// After a conflict, try again: the state may have been stored although the confirmation was lost.
	for try := 0; errors.Is(err, store.ErrConflict) && try < MostLost; try++ {
		if err := c.Again(ctx, in.store); err != nil {
			return err
		}
		c.Session.mu.Lock()
		unsaved := c.unsaved
		c.Session.mu.Unlock()
		if !unsaved {
			return nil
		}
		err = c.Save(ctx, in.store, true, in.Now())
	}
	return err
}

// Reach loads the records of a session from the store. While the store is unavailable, a request continues at once if this
// gateway knows the last view of its conversation; other requests wait for a while.
func (s *Sessions) Reach(ctx context.Context, one *Session, r *wire.Request, rolling []wire.Hash) error {
	if s.Outage.Now() && one.current(r, rolling) {
		return nil
	}
	for {
		err := one.Load(ctx, s.store)
		for _, id := range one.news() {
			s.Damaged()
			s.Log().WarnContext(ctx, "a record of the store is damaged: its conversation goes on as if nothing had been stored of it",
				"record", id)
		}
		switch {
		case errors.Is(err, store.ErrUnavailable):
			s.Lost(err)
		case err != nil:
			s.Fault("store", err)
			return nil // outdated knowledge is better than none
		}
		ended, left := s.Outage.left()
		if left == 0 || one.current(r, rolling) {
			return nil
		}
		if err == nil { // another gateway may be about to store more
			ended, left = nil, min(left, outagePoll)
		}
		wait := time.NewTimer(left)
		select {
		case <-ended:
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// MostLost is how often a request is decided again because another gateway stored its decision first.
const MostLost = 3

// A store that is full, damaged or unavailable: meanwhile this gateway's own knowledge counts.

// Unstored reports whether an error affects the store as a whole.
func Unstored(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFile)
}

// damage notes an unreadable record: the conversation goes on under another ID, as if it had never been stored. The
// caller holds s.mu.
func (s *Session) damage(id string) {
	if s.damaged[id] {
		return
	}
	if s.damaged == nil {
		s.damaged = map[string]bool{}
	}
	s.damaged[id], s.lost = true, true
	s.found = append(s.found, id)
}

// news returns the damaged records found since the previous call.
func (s *Session) news() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.found
	s.found = nil
	return found
}

// Failure returns why the records of the session could not be read.
func (s *Session) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.failed, store.ErrUnavailable)
}
