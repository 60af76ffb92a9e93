package condense

import (
	"github.com/condensehq/condense/internal/overflow"
)

// Overflow reports whether err is a refusal of the conversation as too large, after which
// a turn with [core.TriggerOverflow] and another try are in order. Under a profile with
// Roo-Code's rule it recognises exactly what Roo-Code does, otherwise all that package
// overflow knows.
func (h *Host) Overflow(t Turn, err error) (bool, error) {
	s, release := h.use()
	set, fault := s.resolve(turnKey{t.Profile, t.Mode})
	if e := release(); fault == nil {
		fault = e
	}
	switch {
	case fault != nil:
		return false, fault
	case set.RooRule:
		return overflow.IsRoo(err), nil
	default:
		return overflow.Is(err), nil
	}
}
