// Package score measures, without a model, how much of what an agent later needed is
// still there after its conversation was shortened.
//
// A recorded [Session] is cut where it would have overflowed ([Cuts]). A [Scorer] reads
// what the agent and the person wrote after the cut, and notes what of it was before the
// cut and nowhere since: names of files and of code, numbers, quoted phrases, runs of four
// words, rare words. [Scorer.Score] says how much of that is still found in a view that a
// strategy made of the prefix, and how well it is embedded there. The headline number is
// [Score.Panel], a mean of three families: each can be tuned to by itself, the three
// together have not been.
//
// What it measures is what was referred to, not what was understood: a good paraphrase is
// under-rated, and what the agent read again counts as not needed. docs/comparing.md has
// the formulas and their weaknesses.
//
// No provider may import this package: a strategy that shares the metric's idea of what a
// name is would be tuned to it, and the number would mean nothing.
package score
