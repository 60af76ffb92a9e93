// Package policy decides when to condense a conversation, and how far. It has pure
// functions of numbers: no clock, no model, no state.
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
//	percent >= threshold, or used > limit, or used > max context tokens (if set), or for a reason of [When]
//
// and then to a target well below the size at which it is due again. A conversation over
// its limit is always due, because the model would refuse it. One that only exceeds the
// user's threshold is not condensed if that would save too little: see [Reason].
//
// A host keeps one [State] per conversation and asks once before every request to the
// model:
//
//	d := rule.Decide(size, state, core.TriggerAutomatic)
//	if err := d.Err(); err != nil {
//		return err // it cannot fit: report it before a model is paid
//	}
//	if d.Act {
//		tokens := … // condense to d.Budget; keep the result only if d.Worth(its tokens)
//		state = state.After(d, tokens)
//	}
//
// The thresholds, the reserve and the buffer are those of Roo-Code. [Exceptions] turn off
// the parts that its rule does not have.
package policy
