package coretest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// The names of the rules of the contract.
const (
	ruleReturn  = "return"
	ruleAnswer  = "answer-ordinary"
	ruleContext = "heed-context"
	ruleRequest = "leave-request"
	ruleUsage   = "plausible-usage"
)

var contract = []core.Rule{
	{Name: ruleReturn, Text: "A provider returns: it does not panic and does not end its goroutine."},
	{Name: ruleAnswer, Text: "An ordinary session with a budget that can be met is answered in time, not declined."},
	{Name: ruleContext, Text: "A provider returns promptly once its context is done, with an error wrapping ctx.Err()."},
	{Name: ruleRequest, Text: "A provider modifies nothing of a request, during the call or later: it does not keep it."},
	{Name: ruleUsage, Text: "Usage is what was spent on models: no number of it is negative, infinite or no number."},
}

// Contract returns what is asked of a provider beyond [core.Rules].
func Contract() []core.Rule { return slices.Clone(contract) }

// rule returns the rule of that name.
func rule(name string) core.Rule {
	for _, r := range append(core.Rules(), contract...) {
		if r.Name == name {
			return r
		}
	}
	return core.Rule{Name: name}
}

// A FailureError says in which case a provider broke which rule.
type FailureError struct {
	Case string
	Rule core.Rule // of [core.Rules] or [Contract]
	Err  error     // how; a [*core.ViolationError] for a rule of core, the first of it
	More int       // how many more violations of that rule the answer has
}

// Error names the case, says how the rule was broken, and quotes it.
func (e *FailureError) Error() string {
	text := e.Err.Error()
	if !strings.HasPrefix(text, e.Rule.Name+": ") { // as a violation does
		text = e.Rule.Name + ": " + text
	}
	if e.More > 0 {
		text += fmt.Sprintf(" (and %d more like it)", e.More)
	}
	return e.Case + ": " + text + "\n\trule: " + e.Rule.Text
}

// Unwrap returns how the rule was broken.
func (e *FailureError) Unwrap() error { return e.Err }
