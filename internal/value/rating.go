package value

import (
	"context"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/value/parallel"
)

// A rating is a conversation with a cost and a value for each line.
type rating struct {
	reading
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
func rate(ctx context.Context, r reading) (rating, error) {
	w := rating{reading: r, lines: make([]lineState, len(r.c.Lines))}
	for p := range w.c.Passages {
		lines := w.c.Passages[p].Lines
		for l := lines.Start; l < lines.End; l++ {
			w.lines[l].passage = int32(p)
		}
		w.lines[lines.Start].first, w.lines[lines.End-1].last = true, true
	}
	var habits *habits
	parallel.Do(w.count, func() { w.estimate = w.o.Model.Estimate(w.c) }, func() { habits = w.o.Model.habits(w.messages) })
	w.estimate.follow(habits, w.c)
	w.heed(w.o.Account)
	w.price()
	w.words = w.findWords()
	return w, ctx.Err()
}

// count counts the tokens of lines.
func (w *rating) count() {
	const least = 256 // lines that justify a goroutine
	parallel.Ranges(len(w.c.Lines), least, func(from, to int) {
		for l := from; l < to; l++ {
			n := w.o.Counter.Count(core.Text(w.c.Lines[l].Text + w.c.Lines[l].after))
			if !w.c.Lines[l].joins {
				n++ // its line break
			}
			w.lines[l].tokens = float32(n)
		}
	})
}

// price scales the values of each family to its share of their expected sum, and lists the valuable terms and phrases
// of every line, about half of all.
func (w *rating) price() {
	s, e := w.o.Shares, w.estimate
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
	w.discountTemplates()
	w.items = make([]int32, 0, len(w.c.mentions)+len(w.c.phrased))
	for l := range w.lines {
		line := &w.lines[l]
		line.terms = int32(len(w.items))
		if of := &w.c.Lines[l]; of.outdated || of.void || of.stale() && w.o.Only == nil {
			line.phrases, line.end = line.terms, line.terms
			continue
		}
		for _, n := range w.c.TermsOf(l) {
			if e.Names[n] > 0 || e.Words[n] > 0 {
				w.items = append(w.items, n)
			}
		}
		line.phrases = int32(len(w.items))
		for _, n := range w.c.phrasesOf(l) {
			if e.Phrases[max(n, ^n)] > 0 {
				w.items = append(w.items, n)
			}
		}
		line.end = int32(len(w.items))
	}
}

// termsOf returns the numbers of the valuable terms of a line.
func (w *rating) termsOf(line *lineState) []int32 { return w.items[line.terms:line.phrases] }

// phrasesOf returns the numbers of its valuable phrases. See Conversation.phrasesOf.
func (w *rating) phrasesOf(line *lineState) []int32 { return w.items[line.phrases:line.end] }

// alone returns the value of line l if no other line is kept.
func (w *rating) alone(l int) (sum float32) {
	line := &w.lines[l]
	for _, n := range w.termsOf(line) {
		sum += float32(w.o.Shares.Line)*w.estimate.Names[n] + w.estimate.Words[n]
	}
	for _, n := range w.phrasesOf(line) {
		sum += w.estimate.Phrases[max(n, ^n)]
	}
	return sum
}
