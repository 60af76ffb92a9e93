// Package lab measures condensation strategies on recorded sessions, and says which one is better only
// where the data show it. It is the engine of package compare and of the command condense compare.
//
// [Find] lists sessions. [Run] cuts each session where it would have overflowed ([Budget]), lets every
// [Strategy] condense the messages before the cut, and measures the result against what the agent and
// the user wrote after it (package score). The [Report] has a row for every result, tables of means with
// intervals, paired differences, verdicts and warnings. The same seed gives the same report, whatever
// the number of jobs.
//
// No model is called except by strategies that use one. [NewPlan] estimates what they would spend.
// [Examine] shows one result message by message.
//
// bench/measures.md has the formula of every measure, how it can mislead, and the JSON of a report.
//
// The packages below this one: score measures one result, canary plants sentences that must survive, strategies opens
// the strategies that a user names, judge says whether a plugin is any good, report writes HTML pages, online shows a
// running gateway, and the command train fits the weights of package value.
package lab
