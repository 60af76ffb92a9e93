package condense

import (
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/roo"
)

// Overflow reports whether err says that the conversation exceeds the model's window. If so,
// run a turn with [core.TriggerOverflow] and send the request again. Err may come from any
// SDK. Under a profile with the preset roo, the errors recognised are exactly Roo-Code's.
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
		return roo.ContextLengthError(err, remote.HTTPStatus(err)), nil
	default:
		return remote.IsContextLength(err), nil
	}
}
