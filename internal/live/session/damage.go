package session

import (
	"cmp"
	"errors"

	"github.com/condensehq/condense/internal/live/store"
)

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
