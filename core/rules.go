package core

import (
	_ "embed"
	"slices"
	"strings"
)

// A Rule is one thing that every result must respect.
type Rule struct {
	Name string // as it appears in a [ViolationError]
	Text string // its requirement and reason
}

// The names of the rules.
const (
	ruleAnswer    = "answer"
	ruleParts     = "valid-parts"
	ruleKnown     = "known-ids"
	ruleUnique    = "unique-ids"
	ruleOrder     = "keep-order"
	ruleRole      = "keep-role"
	ruleNewRole   = "new-role"
	ruleProtected = "keep-protected"
	ruleSystem    = "keep-system"
	ruleRequest   = "keep-request"
	ruleWords     = "keep-words"
	ruleEmpty     = "not-empty"
	ruleCalls     = "keep-calls"
	rulePairs     = "keep-pairs"
	rulePending   = "keep-pending"
	ruleSplit     = "no-split"
	ruleMedia     = "keep-media"
	ruleReasoning = "keep-reasoning"
	ruleFirst     = "first-role"
	ruleGrowth    = "no-growth"
	ruleAbilities = "declared-abilities"
)

//go:embed rules.txt
var rulesText string

var rules = func() (all []Rule) {
	for line := range strings.Lines(rulesText) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, Rule{name, text})
	}
	return all
}()

// Rules returns every rule that [Verify] checks. Rules are stated relative to the
// request, because real conversations arrive with faults of their own: returning the
// messages as they came breaks none.
func Rules() []Rule { return slices.Clone(rules) }
