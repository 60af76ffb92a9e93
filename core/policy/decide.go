package policy

import (
	"math"

	"github.com/condensehq/condense/core"
)

// Decide decides whether to condense a conversation of this size now. Call it once before
// every request to the model ([core.TriggerAutomatic]), when the user asks for a condensation
// ([core.TriggerManual]), and when the model's API has refused the conversation as too large
// ([core.TriggerOverflow]). An unknown trigger counts as automatic. Decide does not panic for
// any numbers.
func (r Rule) Decide(size Size, s State, trigger core.Trigger) Decision {
	used := size.Used()
	share := float64(100*float64(used)) / float64(r.Window)
	d := Decision{
		Trigger: trigger, Size: size, Used: used, Floor: size.Floor(),
		Percent: finite(share), Threshold: finite(r.Threshold),
		MaxContextTokens: r.MaxContextTokens, MinSize: r.MinSize, When: r.When,
		MinGain: r.minGain(used - size.floor(trigger)), MinNewTokens: r.wait(s),
	}
	if s != (State{}) {
		d.Grown = max(0, used-s.Size)
	}
	var wish int
	if d.Budget, wish = r.budget(size, trigger); wish != d.Budget.Target {
		d.TargetWanted = wish
	}
	d.Reason = r.reason(&d, s, share >= r.Threshold)
	d.Act = d.Reason.Acts()
	return d
}

func (r Rule) reason(d *Decision, s State, reached bool) Reason {
	limit := d.Budget.Limit
	over := d.Used > limit
	switch {
	case d.Floor > limit && !r.IgnoreFixed:
		return ReasonFloor
	case d.Trigger == core.TriggerManual && !over && d.Size.NothingNew:
		return ReasonNothingNew
	case d.Trigger == core.TriggerManual && !over && !r.Eager && d.Used-d.Size.floor(d.Trigger) < d.MinGain:
		return ReasonNoGain
	case d.Trigger == core.TriggerManual:
		return ReasonManual
	case over && !r.Eager && s.stuck(d.Used, limit):
		return ReasonStuck
	case d.Trigger == core.TriggerOverflow:
		return ReasonOverflow
	case over:
		return ReasonLimit
	case !r.Auto:
		return ReasonOff
	}
	return r.wanted(d, s, reached)
}

// wanted decides about a conversation within its limit.
func (r Rule) wanted(d *Decision, s State, reached bool) Reason {
	above := r.MaxContextTokens > 0 && d.Used > r.MaxContextTokens
	counted := r.When.Due(d.Size.Since, d.Size.Messages, r.Window)
	why := ReasonNoGain
	switch {
	case !reached && !above && counted == "":
		return ReasonBelow
	case d.Size.NothingNew:
		return ReasonNothingNew
	case reached && (r.IgnoreFixed || r.counts(r.due(), d.Floor)):
		why = ReasonThreshold
	case above && (r.IgnoreFixed || r.counts(r.MaxContextTokens, d.Floor)):
		why = ReasonMaxContext
	case counted != "" && (r.IgnoreFixed || r.counts(d.Used, d.Floor)):
		why = counted
	}
	switch {
	case r.Eager && d.MinNewTokens == 0:
		return why
	case d.Used < r.MinSize:
		return ReasonSmall
	case why == ReasonNoGain:
		return ReasonNoGain
	case d.Grown < d.MinNewTokens && (counted == "" || s.Ineffective > 0 || s.Waits): // it counts by itself what is new
		return ReasonCooling
	}
	return why
}

// finite replaces NaN and infinities, which JSON does not have, by 0. A window of 0 causes
// them.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}
