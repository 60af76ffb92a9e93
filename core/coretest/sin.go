package coretest

import "github.com/condensehq/condense/core"

// A Sin is a provider that does one thing wrong.
type Sin struct {
	Name string // of the function that returns it
	// Rule is the name of the rule that it breaks, of [core.Rules] or [Contract]; empty
	// for one that breaks none and is of no use all the same.
	Rule string
	// Outcome is what a [core.Chain] makes of it, if it is given a conversation like
	// [Session] and less than a minute.
	Outcome  core.Outcome
	Provider core.CondensationProvider
}

// Misbehaving returns one provider for every sin. Each is fresh, because some remember
// what they were asked. Those that hang whatever happens return when release is closed.
func Misbehaving(release <-chan struct{}) []Sin {
	return []Sin{
		// Those that break the contract.
		{"Hangs", ruleAnswer, core.OutcomeFailed, Hangs()},
		{"HangsForever", ruleContext, core.OutcomeFailed, HangsForever(release)},
		{"Dawdles", ruleContext, core.OutcomeFailed, Dawdles()},
		{"Deaf", ruleContext, core.OutcomeNoOp, Deaf()},
		{"Panics", ruleReturn, core.OutcomeFailed, Panics()},
		{"WritesToNilMap", ruleReturn, core.OutcomeFailed, WritesToNilMap()},
		{"ExitsGoroutine", ruleReturn, core.OutcomeFailed, ExitsGoroutine()},
		{"ReturnsNilError", ruleReturn, core.OutcomeFailed, ReturnsNilError()},
		{"Fails", ruleAnswer, core.OutcomeFailed, Fails()},
		{"MutatesMessages", ruleRequest, core.OutcomeNoOp, MutatesMessages()},
		{"MutatesParts", ruleRequest, core.OutcomeNoOp, MutatesParts()},
		{"MutatesResults", ruleRequest, core.OutcomeNoOp, MutatesResults()},
		{"MutatesFiles", ruleRequest, core.OutcomeNoOp, MutatesFiles()},
		{"KeepsRequest", ruleRequest, core.OutcomeNoOp, KeepsRequest()},
		{"LiesAboutUsage", ruleUsage, core.OutcomeNoOp, LiesAboutUsage()},

		// Those whose answers break a rule.
		{"ReturnsNil", "answer", core.OutcomeRejected, ReturnsNil()},
		{"ReturnsNothing", "answer", core.OutcomeRejected, ReturnsNothing()},
		{"ReturnsPointer", "valid-parts", core.OutcomeRejected, ReturnsPointer()},
		{"ReturnsNilPart", "valid-parts", core.OutcomeRejected, ReturnsNilPart()},
		{"NestsResults", "valid-parts", core.OutcomeRejected, NestsResults()},
		{"InventsIDs", "known-ids", core.OutcomeRejected, InventsIDs()},
		{"Duplicates", "unique-ids", core.OutcomeRejected, Duplicates()},
		{"Reorders", "keep-order", core.OutcomeRejected, Reorders()},
		{"ChangesRole", "keep-role", core.OutcomeRejected, ChangesRole()},
		{"ChangesKind", "keep-role", core.OutcomeRejected, ChangesKind()},
		{"SpeaksAsSystem", "new-role", core.OutcomeRejected, SpeaksAsSystem()},
		{"EditsProtected", "keep-protected", core.OutcomeRejected, EditsProtected()},
		{"HidesProtected", "keep-protected", core.OutcomeRejected, HidesProtected()},
		{"HidesSystem", "keep-system", core.OutcomeRejected, HidesSystem()},
		{"EditsSystem", "keep-system", core.OutcomeRejected, EditsSystem()},
		{"PutsWords", "keep-words", core.OutcomeRejected, PutsWords()},
		{"AddsWords", "keep-words", core.OutcomeRejected, AddsWords()},
		{"CutsSilently", "keep-words", core.OutcomeRejected, CutsSilently()},
		{"HidesWordsInMark", "keep-words", core.OutcomeRejected, HidesWordsInMark()},
		{"EmptiesMessage", "not-empty", core.OutcomeRejected, EmptiesMessage()},
		{"EmptiesResult", "not-empty", core.OutcomeRejected, EmptiesResult()},
		{"SaysNothing", "not-empty", core.OutcomeRejected, SaysNothing()},
		{"InventsCall", "keep-calls", core.OutcomeRejected, InventsCall()},
		{"ChangesCallID", "keep-calls", core.OutcomeRejected, ChangesCallID()},
		{"ChangesTool", "keep-calls", core.OutcomeRejected, ChangesTool()},
		{"SwapsResults", "keep-calls", core.OutcomeRejected, SwapsResults()},
		{"DropsCall", "keep-pairs", core.OutcomeRejected, DropsCall()},
		{"DropsResult", "keep-pairs", core.OutcomeRejected, DropsResult()},
		{"DropsPendingCall", "keep-pending", core.OutcomeRejected, DropsPendingCall()},
		{"SplitsPair", "no-split", core.OutcomeRejected, SplitsPair()},
		{"SplitsPendingPair", "no-split", core.OutcomeRejected, SplitsPendingPair()},
		{"DropsImage", "keep-media", core.OutcomeRejected, DropsImage()},
		{"DropsNestedImage", "keep-media", core.OutcomeRejected, DropsNestedImage()},
		{"ChangesReasoning", "keep-reasoning", core.OutcomeRejected, ChangesReasoning()},
		{"MovesReasoning", "keep-reasoning", core.OutcomeRejected, MovesReasoning()},
		{"StartsWithAssistant", "first-role", core.OutcomeRejected, StartsWithAssistant()},
		{"KeepsOnlySystem", "first-role", core.OutcomeRejected, KeepsOnlySystem()},
		{"Grows", "no-growth", core.OutcomeRejected, Grows()},
		{"LiesAboutSize", "no-growth", core.OutcomeRejected, LiesAboutSize()},

		// Those that break no rule and are of no use.
		{"NeverShrinks", "", core.OutcomeNoOp, NeverShrinks()},
		{"Drips", "", core.OutcomeInsufficient, Drips()},
	}
}
