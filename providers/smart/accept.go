package smart

import (
	"errors"
	"fmt"

	"github.com/condensehq/condense/core"
)

// Accept are conditions that a result must meet, or nothing is changed and the next
// provider of the chain is asked. The zero value asks for nothing.
type Accept struct {
	Messages int  `json:"messages"` // of the conversation that must be left, summaries and markers not counted
	Users    int  `json:"users"`    // newest messages with a user's words that must be left, word for word
	First    bool `json:"first"`    // the first message must be left, word for word
}

// Validate says which condition is out of range.
func (a *Accept) Validate() error {
	var errs []error
	if a.Messages < 0 {
		errs = append(errs, fmt.Errorf("accept: messages: %d is negative", a.Messages))
	}
	if a.Users < 0 {
		errs = append(errs, fmt.Errorf("accept: users: %d is negative", a.Users))
	}
	return errors.Join(errs...)
}

// refuses says which condition the conversation does not meet; empty if it meets all. A
// condition that the request did not meet either is not asked for.
func (a *Accept) refuses(w *work, before, after []core.Message) string {
	left := map[string]*core.Message{}
	n := 0
	for i := range after {
		if m := &after[i]; m.ID != "" {
			left[m.ID] = m
			if m.Kind == core.KindOriginal {
				n++
			}
		}
	}
	stays := func(m *core.Message) bool { return left[m.ID] != nil && left[m.ID].Equal(*m) }
	if want := min(a.Messages, len(before)); n < want {
		return fmt.Sprintf("not accepted: %d messages left, want %d", n, want)
	}
	if a.First && len(before) > 0 && !stays(&before[0]) {
		return "not accepted: the first message is not as it was"
	}
	users := a.Users
	about := w.scores()
	for i := len(before) - 1; i >= 0 && users > 0; i-- {
		if about[i].user && !about[i].calls {
			users--
			if !stays(&before[i]) {
				return fmt.Sprintf("not accepted: message %s of the user is not as it was", before[i].ID)
			}
		}
	}
	return ""
}
