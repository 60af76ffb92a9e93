package policy

import "math"

// patience is how many attempts in a row may fail to help before the conversation must
// have changed: a second one, because the first may have met an outage. It is Hermes's
// number.
const patience = 2

// A State is what a host remembers of one conversation between decisions. The zero value
// is a conversation that was never condensed, and is right after a rewind or an undo. It
// can be stored as JSON.
type State struct {
	Size        int `json:"size,omitempty"`        // tokens right after the last attempt
	Ineffective int `json:"ineffective,omitempty"` // attempts in a row that were no success
	Limit       int `json:"limit,omitempty"`       // the limit at the last attempt
}

// After returns the state after the attempt that d led to, which left the conversation
// with this many tokens, in the scope of d.Used: d.Used itself if the attempt failed or
// its result was dropped. An attempt that its caller canceled is none. If d does not act,
// the state stays as it is.
func (s State) After(d Decision, tokens int) State {
	if !d.Act {
		return s
	}
	next := State{Size: tokens, Limit: d.Budget.Limit}
	if !d.Worth(tokens) {
		next.Ineffective = min(max(0, s.Ineffective), math.MaxInt-1) + 1
	}
	return next
}

// stuck reports whether a further attempt at a conversation over its limit would be the
// same as those that have not helped: nothing was added, and no more is asked for.
func (s State) stuck(used, limit int) bool {
	return s.Ineffective >= patience && used <= s.Size && limit >= s.Limit
}
