package need

import "github.com/condensehq/condense/internal/parallel"

// A Feature is something that a model sees of a term or phrase, in one of a few steps. The weight
// of a step is in the model. A feature of two things has a step for each pair.
type Feature struct {
	Name  string
	Steps int
}

// TermFeatures and PhraseFeatures return what the weights of a model are of, in their order. The
// result is shared: do not change it.
func TermFeatures() []Feature   { return termFeatures }
func PhraseFeatures() []Feature { return phraseFeatures }

// The number of features that the trees of a model see of a line, and of a term.
const (
	LineSize = lineSize
	TermSize = termSize
)

// Steps has room for the steps of a term or phrase.
type Steps [40]uint16

// Evidence is what a model sees of the terms and phrases of a conversation. It never changes and
// is safe for concurrent use. [Model.Estimate] values it, and training fits a model to it.
type Evidence struct {
	c      *Conversation
	rarity []uint8   // of every term
	odds   []float64 // of every term, as the weights say
	best   []float32 // of every line, the greatest probability of its terms
	focus  *focus
}

// Evidence returns what m sees of c. The cost is linear.
func (m *Model) Evidence(c *Conversation) *Evidence {
	v := &Evidence{c: c, rarity: make([]uint8, len(c.terms)), odds: make([]float64, len(c.terms))}
	odds := make([]float32, len(c.terms))
	parallel.Ranges(len(c.terms), leastValues, func(from, to int) {
		var buf Steps
		for n := from; n < to; n++ {
			v.rarity[n] = uint8(m.rarity(c.termAt.keys[n]))
			if c.terms[n].messages > 0 {
				v.odds[n] = logit(m.terms, v.TermSteps(n, &buf))
				odds[n] = float32(sigmoid(v.odds[n]))
			}
		}
	})
	v.best = c.bestTerms(odds)
	v.focus = c.focus()
	return v
}

// Weight returns how much it would cost to lose term n: 1 for a term of one message of one project,
// 0 for one that appears everywhere.
func (v *Evidence) Weight(n int) float64 { return v.c.weight(n, int(v.rarity[n])) }

// TermSteps returns the step of every feature of term n, in buf. A term's step k is the weight
// number k of all features in order.
func (v *Evidence) TermSteps(n int, buf *Steps) []uint16 {
	return v.c.termSteps(n, int(v.rarity[n]), buf)
}

// PhraseSteps does so for phrase n.
func (v *Evidence) PhraseSteps(n int, buf *Steps) []uint16 {
	return v.c.phraseSteps(n, v.best[v.c.phrases[n].lastLine], buf)
}

// LineVector writes what trees see of line l to x, which has [LineSize] elements.
func (v *Evidence) LineVector(l int, x []float32) { v.c.lineVector(v.focus, l, v.best[l], x) }

// TermVector writes what trees see of term n to x, which has [TermSize] elements: that of its last
// line, then its own.
func (v *Evidence) TermVector(n int, x []float32) {
	v.LineVector(int(v.c.terms[n].lastLine), x)
	v.c.termVector(n, int(v.rarity[n]), float32(sigmoid(v.odds[n])), x)
}

// A TermInfo says of a term what training needs to know besides its features.
type TermInfo struct {
	Key      uint64 // FNV-1a hash of its spelling
	Messages int    // that have it; 0 if it only names a file
	Word     bool   // a rare word, not a name
}

// Term returns what is known of term n.
func (c *Conversation) Term(n int) TermInfo {
	t := &c.terms[n]
	return TermInfo{Key: c.termAt.keys[n], Messages: int(t.messages), Word: t.class == classWord}
}

// PhraseLine returns the last line that phrase n ends in, and whether the phrase is too frequent to
// be the conversation's own: then it has no value.
func (c *Conversation) PhraseLine(n int) (line int, formula bool) {
	p := &c.phrases[n]
	return int(p.lastLine), p.messages > phraseMessages
}
