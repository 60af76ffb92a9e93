// Package lab measures condensation strategies side by side on recorded sessions, and
// says which is better only where the data do.
//
// [Find] names sessions: files, folders, patterns, in every format that package transcript
// reads. [Run] cuts each where it would have overflowed ([Budget]), has every [Strategy]
// condense what was before the cut, and measures what came of it against what the agent
// and the person really did afterwards (package retention). The [Report] has a row for every
// result, tables of means with intervals, paired differences, verdicts and warnings, and
// is the same for the same seed, whatever the number of jobs or shards ([Merge]).
//
// No model is asked but by strategies that use one. [NewPlan] says beforehand what they
// would spend. [Examine] shows one result message by message.
//
// docs/comparing.md has the formula of every measure, what it is weak at, and the JSON of
// a report.
package lab
