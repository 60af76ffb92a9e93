package value

import (
	"context"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/value/parallel"
)

// A choice is a conversation while its lines are being chosen.
type choice struct {
	r         *reading
	v         *rating
	pre       *preface
	lay       *layout
	lines     []lineState    // of the rating
	passages  []passageState // of the layout
	picks     []float64      // picks[k] is the tokens up to pick k; picks[0] is the size without any
	terms     []termState
	phrases   []float32 // the value of each phrase; 0 if a kept line has it
	requested int32     // the pick that completes the newest request
	worded    int32     // the pick that completes the user's words
	filling   bool      // all lines of any value are kept; see gone
	threshold float32   // the value per token of the last line picked
	marks     []string  // of media that an extract may mention
	mediaAt   []int32   // for each mark, the pick that includes it; 0 if none does
}

// A termState is the part of a term that choosing reads.
type termState struct {
	name, word float32 // its values as a name and as a word; one of them is 0
	credit     float32 // the largest share of the value that a kept line gives; 0 if no kept line has the term
}

// newChoice returns a choice in which the lines of passages that stay unchanged are kept, and no others.
func newChoice(lay *layout) *choice {
	w := &choice{
		r: lay.r, v: lay.v, pre: lay.pre, lay: lay, lines: lay.v.lines, passages: lay.passages, picks: []float64{lay.base},
		terms: make([]termState, lay.r.c.Terms()), phrases: make([]float32, len(lay.r.c.phrases)),
	}
	for l := range w.lines {
		line, pass := &w.lines[l], &w.passages[w.lines[l].passage]
		if line.at = 0; pass.mode == modeFixed {
			line.at = 1
			pass.opened++
		}
	}
	w.forget()
	w.settleOpen()
	w.settle(0, len(w.lines))
	return w
}

// shorten makes all choices and writes the result.
func shorten(ctx context.Context, v *rating, pre *preface) (*choice, Result, error) {
	w := newChoice(arrange(v, pre))
	err := reserveAll(ctx, w)
	if err == nil {
		err = w.choose(ctx)
	}
	if err == nil {
		err = w.rest(ctx)
	}
	if err != nil {
		return nil, Result{}, err
	}
	return w, extract(w), nil
}

// A rating is a conversation with a cost and a value for each line.
type rating struct {
	r        *reading
	estimate *Estimate
	lines    []lineState
	items    []int32   // numbers of the valuable terms and phrases of all lines
	named    []bool    // terms in the account; nil without one
	heeded   []float32 // the account's factor for the values of each line; nil without one
	words    words
}

// Choosing reads lines in random order, a million times in a long conversation. Most of its time goes to memory
// access, so data that is read together is stored together.

// A lineState is the part of a line that choosing reads.
type lineState struct {
	tokens      float32
	at          int32 // the pick that took it; 0 if none did
	passage     int32
	first, last bool // of its passage
	// Where its terms begin in rating.items, where its phrases follow, and where they end.
	terms, phrases, end int32
}

// rate computes the cost and the value of every line.
func rate(ctx context.Context, r *reading) (*rating, error) {
	v := &rating{r: r, lines: make([]lineState, len(r.c.Lines))}
	for p := range r.c.Passages {
		lines := r.c.Passages[p].Lines
		for l := lines.Start; l < lines.End; l++ {
			v.lines[l].passage = int32(p)
		}
		v.lines[lines.Start].first, v.lines[lines.End-1].last = true, true
	}
	var habits *habits
	parallel.Do(v.count, func() { v.estimate = r.o.Model.Estimate(r.c) }, func() { habits = r.o.Model.habits(r.messages) })
	v.estimate.follow(habits, r.c)
	v.heed(r.o.Account)
	v.price()
	v.words = v.findWords()
	return v, ctx.Err()
}

// count counts the tokens of lines.
func (v *rating) count() {
	const least = 256 // lines that justify a goroutine
	parallel.Ranges(len(v.r.c.Lines), least, func(from, to int) {
		for l := from; l < to; l++ {
			n := v.r.o.Counter.Count(core.Text(v.r.c.Lines[l].Text + v.r.c.Lines[l].after))
			if !v.r.c.Lines[l].joins {
				n++ // its line break
			}
			v.lines[l].tokens = float32(n)
		}
	})
}

// price scales the values of each family to its share of their expected sum, and lists the valuable terms and phrases
// of every line, about half of all.
func (v *rating) price() {
	s, e := v.r.o.Shares, v.estimate
	scale := func(v []float32, by, sum float64) {
		f := float32(0)
		if sum > 0 {
			f = float32(1e4 * by / sum)
		}
		for i := range v {
			v[i] *= f
		}
	}
	scale(e.Names, s.Names, e.nameSum)
	scale(e.Words, s.Words, e.wordSum)
	scale(e.Phrases, s.Phrases, e.phraseSum)
	v.discountTemplates()
	v.items = make([]int32, 0, len(v.r.c.mentions)+len(v.r.c.phrased))
	for l := range v.lines {
		line := &v.lines[l]
		line.terms = int32(len(v.items))
		if of := &v.r.c.Lines[l]; of.outdated || of.void || of.stale() && v.r.o.Only == nil {
			line.phrases, line.end = line.terms, line.terms
			continue
		}
		for _, n := range v.r.c.TermsOf(l) {
			if e.Names[n] > 0 || e.Words[n] > 0 {
				v.items = append(v.items, n)
			}
		}
		line.phrases = int32(len(v.items))
		for _, n := range v.r.c.phrasesOf(l) {
			if e.Phrases[max(n, ^n)] > 0 {
				v.items = append(v.items, n)
			}
		}
		line.end = int32(len(v.items))
	}
}

// termsOf returns the numbers of the valuable terms of a line.
func (v *rating) termsOf(line *lineState) []int32 { return v.items[line.terms:line.phrases] }

// phrasesOf returns the numbers of its valuable phrases. See Conversation.phrasesOf.
func (v *rating) phrasesOf(line *lineState) []int32 { return v.items[line.phrases:line.end] }

// alone returns the value of line l if no other line is kept.
func (v *rating) alone(l int) (sum float32) {
	line := &v.lines[l]
	for _, n := range v.termsOf(line) {
		sum += float32(v.r.o.Shares.Line)*v.estimate.Names[n] + v.estimate.Words[n]
	}
	for _, n := range v.phrasesOf(line) {
		sum += v.estimate.Phrases[max(n, ^n)]
	}
	return sum
}
