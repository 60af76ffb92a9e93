package policy

// A Reason says why a conversation is condensed or left alone.
type Reason string

// The reasons to condense.
const (
	ReasonThreshold  Reason = "threshold"   // its percent of the window has reached the threshold
	ReasonMaxContext Reason = "max_context" // it is over MaxContextTokens
	ReasonLimit      Reason = "limit"       // it is over the limit, so the model would refuse it
	ReasonManual     Reason = "manual"      // somebody asked
	ReasonOverflow   Reason = "overflow"    // the model has refused it
)

// The reasons to leave a conversation alone.
const (
	// ReasonBelow: it is not large enough.
	ReasonBelow Reason = "below_threshold"
	// ReasonOff: it is within its limit, and Auto is off.
	ReasonOff Reason = "off"
	// ReasonSmall: it is due, but below MinSize.
	ReasonSmall Reason = "too_small"
	// ReasonCooling: it is due, but has not grown enough since the last attempt.
	ReasonCooling Reason = "cooling_down"
	// ReasonNoGain: it is due, but most of what makes it due cannot be removed; or somebody
	// asked, and nothing can be removed.
	ReasonNoGain Reason = "nothing_to_gain"
	// ReasonNothingNew: it is due, or somebody asked, but nothing was said since the last
	// condensation.
	ReasonNothingNew Reason = "nothing_new"
	// ReasonStuck: it is over the limit, and attempts at this very conversation have not
	// helped. [Decision.Err] says so.
	ReasonStuck Reason = "stuck"
	// ReasonFloor: it is over the limit, and so is what cannot be removed.
	// [Decision.Err] is a [*FloorError].
	ReasonFloor Reason = "floor_exceeds_window"
)

// Acts reports whether r is a reason to condense.
func (r Reason) Acts() bool {
	switch r {
	case ReasonThreshold, ReasonMaxContext, ReasonLimit, ReasonManual, ReasonOverflow:
		return true
	case ReasonBelow, ReasonOff, ReasonSmall, ReasonCooling, ReasonNoGain, ReasonNothingNew, ReasonStuck, ReasonFloor:
	}
	return false
}
