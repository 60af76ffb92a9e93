package policy

import "github.com/condensehq/condense/core"

// Budget returns the budget of a condensation with this trigger, for a conversation of
// this size. Target is at most Limit.
//
// The target lies between the floor and the top, which is the smallest of: the limit;
// the threshold and MaxContextTokens, if Auto is set and they are so far above the floor
// that a quarter of them can be removed; and, for a manual trigger or a reason of When, the size of the
// conversation. It is half way between the two, or at Rule.Target, and not below MinSize. It keeps a
// distance of MinNewTokens to the top, so that the conversation is not due again at once,
// and to the floor, so that some messages can be kept; without room for both, it is half way.
// At least a sixteenth of the removable tokens is kept: a target below the floor would leave nothing.
// Finally it is lowered if a conversation within its limit would not save MinGain by
// reaching it. For a manual trigger, summaries count as part of the floor.
//
// With StopAtLimit, a conversation over its limit has the limit as its target, unless
// Rule.Target is set.
//
// On overflow the model's API has refused a conversation that may be within the limit.
// The error of the count is unknown, so the limit becomes three quarters of the refused
// size, and again after every refusal; but at least a quarter of the removable tokens is kept.
func (r Rule) Budget(size Size, trigger core.Trigger) core.Budget {
	b, _ := r.budget(size, trigger)
	return b
}

// budget also returns the wanted target, before any adjustment.
func (r Rule) budget(size Size, trigger core.Trigger) (b core.Budget, wish int) {
	used, floor := size.Used(), size.floor(trigger)
	b = core.Budget{Window: r.Window, Reserve: r.reserve(), Overhead: size.Overhead(), Limit: r.limit()}
	if trigger == core.TriggerOverflow {
		b.Limit = min(b.Limit, refusedLimit(used, floor))
	}
	if r.StopAtLimit && r.Target == 0 && used > b.Limit {
		b.Target = b.Limit
		return b, b.Target
	}
	top := r.top(floor, b.Limit)
	if trigger == core.TriggerManual || r.Auto && r.When.Due(size.Since, size.Messages, r.Window) != "" {
		top = min(top, used)
	}
	if top <= floor {
		b.Target = top
		return b, top
	}
	wish = floor + (top-floor)/2
	if r.Target > 0 {
		wish = floorInt(percentOf(r.Target, r.Window))
	}
	wish = max(wish, r.MinSize)
	gap := min(max(1, r.MinNewTokens), (top-floor)/2)
	least := max(gap, (top-floor)/minKept)
	b.Target = min(max(wish, floor+least), top-max(1, gap)) // at the top it would be due
	if used <= b.Limit {
		whole := max(used, top)
		b.Target = min(b.Target, max(floor, whole-r.minGain(whole-floor)))
	}
	return b, wish
}

// top is the smallest size with an effect that makes a conversation due, and the limit if
// there is none.
func (r Rule) top(floor, limit int) int {
	top := limit
	if !r.Auto {
		return top
	}
	for _, n := range []int{r.due(), r.MaxContextTokens} {
		if r.counts(n, floor) {
			top = min(top, n)
		}
	}
	return top
}

// counts reports whether a trigger size below the limit has an effect for this floor. It has
// none if most of it is the floor: the conversation would be due again and again, and lose
// nearly all of its messages each time.
func (r Rule) counts(due, floor int) bool {
	return due > floor && (r.IgnoreFixed || due-floor >= due/minRemovable)
}

// refusedLimit is the limit after an API has refused used tokens. It is below used, so that a conversation from which
// nothing can be removed exceeds it.
func refusedLimit(used, floor int) int {
	threeQuarters := used/4*3 + used%4*3/4
	return min(max(threeQuarters, floor+(used-floor)/4), used-1)
}
