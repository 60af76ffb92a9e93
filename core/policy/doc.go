// Package policy says when a conversation is to be condensed, and how far. It is pure
// functions of numbers: no clock, no model, no state of its own.
//
// The formulas, all numbers in tokens by the host's counter unless they say percent:
//
//	reserve = the model's maximum output; unknown: 8,192, at most 20 % of the window
//	used    = system + tools + messages, the last one included
//	floor   = system + tools + protected messages
//	limit   = floor of (window * (1 - buffer / 100) - reserve), computed in float64
//	percent = 100 * used / window
//
// A conversation is condensed automatically when
//
//	percent >= threshold, or used > limit, or used > max context tokens (if set)
//
// and then down to a target well below the point at which it would be due again. One
// that is over its limit is always due, because the model would refuse it. One that is
// merely over the user's threshold is left alone if nothing would come of it: see
// [Reason].
//
// A host keeps one [State] per conversation and asks once before every request to the
// model:
//
//	d := rule.Decide(size, state, core.TriggerAutomatic)
//	if err := d.Err(); err != nil {
//		return err // it cannot be made to fit: say so before a model is paid
//	}
//	if d.Act {
//		tokens := … // condense to d.Budget; keep the result only if d.Worth(its tokens)
//		state = state.After(d, tokens)
//	}
//
// The thresholds, the reserve and the buffer are Roo-Code's. [Exceptions] turn off what its
// rule lacks.
package policy
