package core

import "slices"

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

var rules = []Rule{
	{ruleAnswer, "A provider returns an error, or at least one message if it was given any."},
	{ruleParts, "Content consists of the parts of this package, as values; a tool result holds no calls and no results."},
	{ruleKnown, "An ID in the result is the ID of a message in the request; new messages have none."},
	{ruleUnique, "No message appears twice."},
	{ruleOrder, "Messages that stay keep their chronological order."},
	{ruleRole, "A message that stays keeps its role and kind: a text keeps its author."},
	{ruleNewRole, "A new message speaks as user or assistant and is a summary or a marker; only these exist in every format."},
	{ruleProtected, "Protected messages stay, verbatim."},
	{ruleSystem, "System messages stay, verbatim."},
	{ruleRequest, "The user's newest request, which is every message of the user that the assistant has not answered, stays, and its words and pictures stay verbatim; tool results next to them may be shortened. Of requests that exceed the limit together, the newest count. One that exceeds it alone may be cut, visibly, by truncation only."},
	{ruleWords, "What the user said is kept, hidden with its message, or shortened visibly: what is left of its texts, images and blocks are pieces of them in order, with a mark such as [… 22 lines h:0123456789] or [redacted] wherever something is missing. Nothing else is added."},
	{ruleEmpty, "No message is emptied and no new one is empty: the vendors' APIs refuse it."},
	{ruleCalls, "Tool calls and results are neither invented nor moved to another message, a call keeps its ID and tool, and a result stays a failure or none."},
	{rulePairs, "A tool call and its result are kept or removed together and stay matched. Calls already unanswered, and results already orphaned, may remain."},
	{rulePending, "A tool call whose result is still to come stays: the result would arrive without it."},
	{ruleSplit, "No new message is between a tool call and its result, or after a last call whose result is still to come: results must follow at once."},
	{ruleMedia, "A rewrite that takes out an image or a block of unknown kind leaves text in its place that says so. Neither is put in, except a vendor's compaction as a new message."},
	{ruleReasoning, "Reasoning stays verbatim in its message or goes: its signature covers every byte."},
	{ruleFirst, "The conversation begins with a user message if it did so before."},
	{ruleGrowth, "The result has no more tokens than the request."},
	{ruleAbilities, "A provider that declares abilities (hides, rewrites, inserts, asks models) does nothing else."},
}

// Rules returns every rule that [Verify] checks. Rules are stated relative to the
// request, because real conversations arrive with faults of their own: returning the
// messages as they came breaks none.
func Rules() []Rule { return slices.Clone(rules) }
