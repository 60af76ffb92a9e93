// Package score measures, without a model, how much of what an agent needed later is left after its
// conversation was shortened.
//
// A recorded [Session] is cut where it would have overflowed ([Cuts]). A [Scorer] reads what the agent
// and the user wrote after the cut, and collects what of it was before the cut and has not appeared
// since: names of files and of code, numbers, quoted phrases, runs of four words, rare words.
// [Scorer.Score] returns how much of that is in a view, which a strategy made of the prefix, and how much
// of its context is there. The headline number is [Score.Panel], a mean of three families: a strategy can
// be tuned to one of them, but so far not to all three.
//
// The scorer measures what was referred to, not what was understood. It underrates a good paraphrase, and
// what the agent read again counts as not needed. docs/comparing-measures.md has the formulas and their
// weaknesses.
//
// No provider may import this package. A strategy that shares the metric's idea of a name would be tuned
// to it, and the number would mean nothing.
package score
