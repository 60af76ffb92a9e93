package value

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/value/parallel"
)

// A Feature is a property of a term or phrase, as one of a few steps. The model has a weight for each step. A feature
// of two properties has a step for each pair of theirs.
type Feature struct {
	Name  string
	Steps int
}

// TermFeatures returns the features of terms, in the order of a model's weights. The result is
// shared: do not change it.
func TermFeatures() []Feature { return termFeatures }

// PhraseFeatures returns the features of phrases, as [TermFeatures] does.
func PhraseFeatures() []Feature { return phraseFeatures }

// Sizes of the vectors that the trees of a model read for a line and for a term.
const (
	LineSize = lineSize
	TermSize = termSize
)

// Steps has room for the steps of a term or phrase.
type Steps [40]uint16

// Evidence holds the features of the terms and phrases of a conversation. It never changes and is
// safe for concurrent use. [Model.Estimate] rates it, and training fits a model to it.
type Evidence struct {
	c      *Conversation
	rarity []uint8   // for each term
	odds   []float64 // for each term, the probability by the weights alone, as log-odds
	best   []float32 // for each line, the greatest probability of its terms
	focus  *focus
}

// Evidence returns the features of c for m. The cost is linear.
func (m *Model) Evidence(c *Conversation) *Evidence {
	v := &Evidence{c: c, rarity: make([]uint8, len(c.terms)), odds: make([]float64, len(c.terms))}
	odds := make([]float32, len(c.terms))
	parallel.Ranges(len(c.terms), minValues, func(from, to int) {
		var buf Steps
		for n := from; n < to; n++ {
			v.rarity[n] = uint8(m.rarity(c.termAt.keys[n]))
			if c.terms[n].messages > 0 {
				v.odds[n] = logit(m.terms, v.TermSteps(n, &buf))
				odds[n] = float32(sigmoid(v.odds[n]))
			}
		}
	})
	v.best = bestTerms(c, odds)
	v.focus = focusOf(c)
	return v
}

// Weight returns the cost of losing term n: 1 for a term of one message of one project, 0 for a term that appears
// everywhere.
func (v *Evidence) Weight(n int) float64 { return v.c.weight(n, int(v.rarity[n])) }

// TermVector fills x, of [TermSize] elements, with the trees' inputs for term n: the values of its last line, then
// its own.
func (v *Evidence) TermVector(n int, x []float32) {
	v.LineVector(int(v.c.terms[n].lastLine), x)
	v.ofTerm(n, x)
}

// A TermInfo holds the properties of a term that training needs besides its features.
type TermInfo struct {
	Key      uint64 // FNV-1a hash of its spelling
	Messages int    // messages that have it; 0 if it only names a file
	Word     bool   // a rare word, not a name
}

// Term returns the properties of term n.
func (c *Conversation) Term(n int) TermInfo {
	t := &c.terms[n]
	return TermInfo{Key: c.termAt.keys[n], Messages: int(t.messages), Word: t.class == classWord}
}

// PhraseLine returns the last line that phrase n ends in, and whether the phrase is a formula: too frequent to be
// specific, and so without value.
func (c *Conversation) PhraseLine(n int) (line int, formula bool) {
	p := &c.phrases[n]
	return int(p.lastLine), p.messages > phraseMessages
}

// A Sequel is a conversation divided into a part to condense and the messages that followed.
type Sequel struct {
	Before []core.Message
	After  []core.Message
	System string // the system prompt, which need not be remembered
}

// A later message counts up to this much: one that writes a whole file is no stronger evidence than one that changes
// a line.
const (
	namesPerMessage   = 12.0 // in sum of weights
	phrasesPerMessage = 60
)

// Reused returns, for every term and phrase of c, whether the user or the agent writes it in s.After before a tool
// shows it there: 1, less if it is one of many, 0 if not. C must be the result of [Read] for s.Before. The model
// supplies the rarity of terms.
func (c *Conversation) Reused(m *Model, s *Sequel) (terms, phrases []float32) {
	return c.reused(m, s, new(dialog.Reader))
}

func (c *Conversation) reused(m *Model, s *Sequel, from *dialog.Reader) (terms, phrases []float32) {
	terms, phrases = make([]float32, len(c.terms)), make([]float32, len(c.phrases))
	known := knownTerms(s)
	f := read(s.After, from.Read(s.After), false, false)
	seenTerm, seenPhrase := firsts(len(f.terms)), firsts(len(f.phrases))
	var ours []int32                    // terms that the current message uses
	taken := make([]bool, len(c.terms)) // terms that this or an earlier message used
	total, asked, msg := 0.0, 0, -1
	flush := func() {
		scale := float32(min(1, namesPerMessage/max(total, 1e-9)))
		for _, n := range ours {
			terms[n] = 1
			if c.terms[n].class != classWord {
				terms[n] = scale
			}
		}
		ours, total, asked = ours[:0], 0, 0
	}
	for p := range f.Passages {
		pass := &f.Passages[p]
		if pass.Message != msg {
			flush()
			msg = pass.Message
		}
		own := whose[pass.Kind] != byTool
		for i := pass.Lines.Start; i < pass.Lines.End; i++ {
			for _, n := range f.TermsOf(i) {
				isNew := seenTerm[n] < 0 || seenTerm[n] == int32(msg)
				if seenTerm[n] < 0 {
					seenTerm[n] = int32(msg)
				}
				h := f.termAt.keys[n]
				at := c.termAt.find(h)
				if !own || !isNew || at < 0 || int(at) >= len(c.terms) || known[h] || taken[at] {
					continue
				}
				taken[at] = true
				ours = append(ours, at)
				if c.terms[at].class != classWord {
					total += c.weight(int(at), m.rarity(h))
				}
			}
			for _, n := range f.phrasesOf(i) {
				n = max(n, ^n)
				isNew := seenPhrase[n] < 0 || seenPhrase[n] == int32(msg)
				if seenPhrase[n] < 0 {
					seenPhrase[n] = int32(msg)
				}
				at := c.phraseAt.find(f.phraseAt.keys[n])
				if own && isNew && at >= 0 && asked < phrasesPerMessage && phrases[at] == 0 {
					phrases[at] = 1
					asked++
				}
			}
		}
	}
	flush()
	return terms, phrases
}

func firsts(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = -1
	}
	return out
}

// knownTerms returns the terms that the agent knows without the conversation: of the system prompt, and the names of
// tools and their parameters.
func knownTerms(s *Sequel) map[uint64]bool {
	out := map[uint64]bool{}
	var x lexer
	learn := func(text string) {
		x.read(text)
		for _, m := range x.mentions {
			out[m.hash] = true
		}
	}
	for line := range strings.SplitSeq(s.System, "\n") {
		learn(line)
	}
	for _, list := range [][]core.Message{s.Before, s.After} {
		for i := range list {
			for _, p := range list[i].Parts {
				call, ok := p.(core.ToolCall)
				if !ok {
					continue
				}
				learn(call.Name)
				var args map[string]json.RawMessage
				if json.Unmarshal([]byte(call.Args), &args) == nil {
					for _, k := range slices.Sorted(maps.Keys(args)) {
						learn(k)
					}
				}
			}
		}
	}
	return out
}
