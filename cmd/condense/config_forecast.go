package main

import (
	"fmt"
	"sort"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

// A forecast is what the rule of a profile and mode will decide. It is found by asking the
// rule about conversations of every size, none of them with protected messages, and not by
// arithmetic of its own.
type forecast struct {
	resolved *config.Resolved
	rule     policy.Rule
	due      int             // the smallest size that reaches the threshold
	trigger  policy.Decision // of the smallest size that is condensed
	again    int             // new tokens before the next one, after it has ended on target
}

func newForecast(r *config.Resolved) *forecast {
	f := &forecast{resolved: r, rule: r.Rule()}
	// The limit is below the window, unless Roo's rule lets a negative max_output lift it.
	largest := r.Window + max(0, -r.MaxOutput) + 1
	smallest := func(holds func(policy.Decision) bool) int {
		return sort.Search(largest, func(n int) bool { return holds(f.decide(n, policy.State{})) })
	}
	f.due = smallest(func(d policy.Decision) bool { return d.Percent >= d.Threshold })
	f.trigger = f.decide(smallest(func(d policy.Decision) bool { return d.Act }), policy.State{})
	target := f.trigger.Budget.Target
	f.again = f.decide(target, policy.State{}.After(f.trigger, target)).MinNewTokens
	return f
}

func (f *forecast) decide(size int, s policy.State) policy.Decision {
	return f.rule.Decide(policy.Size{Messages: size}, s, core.TriggerAutomatic)
}

// terms returns the formula with its numbers.
func (f *forecast) terms() []config.Term {
	r, b := f.resolved, f.trigger.Budget
	idle := "not looked at, because auto is false"
	term := func(name, formula string, tokens int, note string) config.Term {
		return config.Term{Name: name, Formula: formula, Tokens: float64(tokens), Note: note}
	}
	reserve := thousands(b.Reserve) + " for the answer"
	if r.MaxOutput == 0 {
		reserve += " (max_output is unknown)"
	}
	due := term("threshold", fmt.Sprintf("%s %% of %s", number(r.Threshold), thousands(r.Window)), f.due, "condense when used reaches it")
	limit := term("limit", fmt.Sprintf("%s × (1 − %s %%) − %s", thousands(r.Window), number(r.Buffer), reserve), b.Limit, "condense when used is above it")
	most := term("cap", "max_context_tokens", r.MaxContextTokens, "condense when used is above it")
	if !r.Auto {
		due.Note, most.Note = idle, idle
	}
	out := []config.Term{{Name: "used", Formula: "system prompt + tools + messages"}, due, limit}
	if r.MaxContextTokens > 0 {
		out = append(out, most)
	}
	target := term("target", "midpoint between the fixed part and the trigger", b.Target, "assuming no fixed part")
	if r.Target > 0 {
		target.Formula, target.Note = fmt.Sprintf("%s %% of %s", number(r.Target), thousands(r.Window)), "a condensation should end at or below it"
	}
	if r.StopAtLimit && r.Target == 0 && f.trigger.Used > b.Limit {
		target.Formula, target.Note = "the limit", "Roo Code's truncation ends there"
	}
	if f.trigger.TargetWanted > 0 {
		target.Note = fmt.Sprintf("moved from %s, to where it is of use", thousands(f.trigger.TargetWanted))
	}
	return append(out,
		term("trigger", "smallest size that triggers", f.trigger.Used, "because of the "+triggers[f.trigger.Reason]),
		target,
		term("gain", fmt.Sprintf("%s %% of %s", number(r.MinGain), thousands(f.trigger.Used)), f.trigger.MinGain, "what saves less is no success"),
		term("again", "min_new_tokens", f.again, "must be new before the next one"),
	)
}

// triggers are the reasons to condense unasked, as terms of the formula.
var triggers = map[policy.Reason]string{
	policy.ReasonThreshold:  "threshold",
	policy.ReasonLimit:      "limit",
	policy.ReasonMaxContext: "cap",
}
