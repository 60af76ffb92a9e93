package live

import (
	"cmp"
	"context"
	"errors"

	"github.com/condensehq/condense/internal/live/store"
)

// A store that is full, damaged or away: what is known here counts meanwhile.

// unstored reports whether an error is that of the store as a whole.
func unstored(err error) bool { return errors.Is(err, store.ErrAway) || errors.Is(err, store.ErrFile) }

// damage notes a record that cannot be read: the conversation goes on as if nothing had been stored of it, under another ID. The caller holds s.mu.
func (s *session) damage(id string) {
	if s.damaged[id] {
		return
	}
	if s.damaged == nil {
		s.damaged = map[string]bool{}
	}
	s.damaged[id], s.lost = true, true
	s.found = append(s.found, id)
}

// news returns the damaged records that were found since it was last called.
func (s *session) news() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.found
	s.found = nil
	return found
}

// failure returns why the records of the session could not be read.
func (s *session) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.failed, store.ErrAway)
}

// hold remembers what the vendor forces although the file of the store cannot be written: it costs recall, and is lost with the process unless
// a later request can store it.
func (x *exchange) hold(ctx context.Context, old *entry, why error) error {
	c := x.claim
	x.fault("commit", why)
	c.late(why)
	if err := c.save(ctx, x.store, false, x.start); err != nil {
		return err
	}
	if x.epoch != nil {
		<-old.turn
		x.announce()
	}
	return nil
}
