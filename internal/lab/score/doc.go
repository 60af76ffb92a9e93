// Package score measures, without a model, how much of what an agent needed later is left after its
// conversation was shortened.
//
// A recorded [Session] is cut where it would have overflowed ([Cuts]). A [Scorer] reads the messages of the agent and
// the user after the cut, and collects names of files and of code, numbers, quoted phrases, runs of four words and
// rare words that were in the messages before the cut and have not appeared since. [Scorer.Score] returns the share
// of them that is in a view, which a strategy made of the prefix, and the share with its context. The headline number
// is [Score.Panel], a mean of three families: a strategy can be tuned to one of them, but so far not to all three.
//
// The scorer measures references, not understanding. It underrates a good paraphrase, and content that the agent read
// again counts as not needed. bench/measures.md has the formulas and their weaknesses.
//
// No provider may import this package. A strategy that shares the metric's idea of a name would be tuned
// to it, and the number would mean nothing.
package score
