package policy_test

import (
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

func ExampleRule_Decide() {
	rule := policy.Default(200000)

	var state policy.State
	size := policy.Size{System: 6000, Tools: 14000, Messages: 145000}
	d := rule.Decide(size, state, core.TriggerAutomatic)
	fmt.Println(d)

	// A result that saves little is dropped, and counts against the next attempt.
	fmt.Println(d.Worth(160000), d.Worth(90000))
	state = state.After(d, 90000)

	size.Messages = 75000
	fmt.Println(rule.Decide(size, state, core.TriggerAutomatic))
	// Output:
	// due: 165,000 of 200,000 tokens (82.5 %), threshold 80 %; target 90,000
	// false true
	// not due: 95,000 of 200,000 tokens (47.5 %), threshold 80 %
}
