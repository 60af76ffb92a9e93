package need

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// A Sequel is a conversation that was cut, and what was written after the cut.
type Sequel struct {
	Before []core.Message
	After  []core.Message
	System string // the system prompt, which need not be remembered
}

// What one later message asks for is bounded: one that writes a whole file says no more
// of what should have been kept than one that changes a line.
const (
	namesPerMessage   = 12.0 // in sum of weights
	phrasesPerMessage = 60
)

// Reused returns, for every term and phrase of c, which is what [Read] made of s.Before, whether the
// user or the agent writes it in s.After before a tool shows it there: 1, or less for one of many; 0 if
// not. The model says how rare terms are.
func (c *Conversation) Reused(m *Model, s *Sequel) (terms, phrases []float32) {
	terms, phrases = make([]float32, len(c.terms)), make([]float32, len(c.phrases))
	known := knownTerms(s)
	f := Read(s.After)
	seenTerm, seenPhrase := firsts(len(f.terms)), firsts(len(f.phrases))
	var ours []int32                    // terms that the message at hand asks for
	taken := make([]bool, len(c.terms)) // it or one before did
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
		own := whose(pass.Kind) != byTool
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
			for _, n := range f.PhrasesOf(i) {
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

// knownTerms returns what the agent has from elsewhere: the words of the system prompt,
// the names of tools and of their parameters.
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
