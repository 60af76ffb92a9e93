package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/live/store"
)

// A database that is away: requests go on with what this gateway knows, and nothing begins that would have to be stored. See
// docs/decisions/0044-fleet.md.

const (
	mostAway  = 15 * time.Second       // how long requests wait that another gateway may know more about, from the beginning of an outage
	awayProbe = 200 * time.Millisecond // between attempts to reach the database
	awayGrace = 400 * time.Millisecond // in which the other gateways store what they have not stored
)

// An outage is a time in which the store does not answer.
type outage struct {
	mu    sync.Mutex
	since time.Time     // zero if the store answers
	over  chan struct{} // closed at its end
}

// now reports whether the store is away.
func (o *outage) now() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero()
}

// left returns what is closed at the end of the outage, and how long a request may wait for it; nil if there is none.
func (o *outage) left() (<-chan struct{}, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return nil, 0
	}
	return o.over, mostAway - time.Since(o.since)
}

// begin notes that the store is away, and looks for it in the background.
func (o *outage) begin(g *Gateway, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() || g.life.Err() != nil {
		return
	}
	o.since, o.over = time.Now(), make(chan struct{})
	g.current.Load().Logger.Warn("the database is away: requests go on, and nothing is condensed", "err", err)
	g.background.Go(func() { o.end(g) })
}

// end waits until the store is back, and stores what has not been stored.
func (o *outage) end(g *Gateway) {
	tick := time.NewTicker(awayProbe)
	defer tick.Stop()
	for back := false; !back; {
		select {
		case <-tick.C:
			_, err := g.store.Changes(g.life, store.Key{})
			back = err == nil && g.sessions.flush(g.life, g)
		case <-g.life.Done():
			back = true
		}
	}
	select {
	case <-time.After(awayGrace):
	case <-g.life.Done():
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	g.current.Load().Logger.Info("the database is back", "after", time.Since(o.since).Round(time.Millisecond))
	o.since = time.Time{}
	close(o.over)
}

// flush stores the states that could not be stored. It reports false if the store is away again.
func (s *sessions) flush(ctx context.Context, g *Gateway) bool {
	s.mu.Lock()
	all := make([]*session, 0, len(s.all))
	for _, one := range s.all {
		all = append(all, one)
	}
	s.mu.Unlock()
	for _, one := range all {
		var late []*claim
		one.mu.Lock()
		for _, e := range one.entries {
			if e.unsaved && e.state != nil {
				late = append(late, &claim{entry: e, session: one, reads: e.reader})
			}
		}
		one.mu.Unlock()
		for _, c := range late {
			if !c.latest(ctx) {
				continue
			}
			err := c.save(ctx, g.store, true, g.current.Load().Now())
			c.release()
			if errors.Is(err, store.ErrAway) {
				return false
			} else if err != nil && !errors.Is(err, store.ErrConflict) { // what another gateway has stored counts
				g.fault("store", err)
			}
		}
	}
	return true
}

// reach reads what the store knows of a session. While the store is away, a request goes on at once if this gateway knows what was sent
// last; others wait for a while.
func (x *exchange) reach(ctx context.Context, s *session) error {
	err := s.load(ctx, x.store)
	if err != nil && !errors.Is(err, store.ErrAway) {
		x.fault("store", err)
		return nil // what is known is better than nothing
	}
	if err != nil {
		x.away.begin(x.Gateway, err)
	}
	over, left := x.away.left()
	if over == nil || s.current(x.r, x.rolling) {
		return nil
	}
	wait := time.NewTimer(left)
	defer wait.Stop()
	select {
	case <-over:
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.load(ctx, x.store); err != nil {
		x.fault("store", err)
	}
	return nil
}
