package value

import (
	"cmp"
	"slices"

	"github.com/condensehq/condense/core"
)

// A tally counts the kept lines in which each term and each phrase stands.
type tally struct{ terms, phrases []int32 }

func (w *work) tally() *tally {
	t := &tally{terms: make([]int32, w.c.Terms()), phrases: make([]int32, w.c.Phrases())}
	for l := range w.c.Lines {
		if w.lines[l].at != 0 {
			w.note(t, l, 1)
		}
	}
	return t
}

// note adds what line l has to t, and phrases that the line before begins if it is kept.
func (w *work) note(t *tally, l int, by int32) {
	for _, n := range w.termsOf(&w.lines[l]) {
		t.terms[n] += by
	}
	for _, n := range w.phrasesOf(&w.lines[l]) {
		if n >= 0 {
			t.phrases[n] += by
		} else if w.lines[l-1].at != 0 {
			t.phrases[^n] += by
		}
	}
}

// prune drops lines picked after from that are worth less than least by the token, beside
// all others that are kept: what was best of them was said again by a line that was picked
// later, or they came along as neighbours. The picks that they are of become cheaper. It
// returns the lines.
func (w *work) prune(from int32, least float32) (dropped []int) {
	t := w.tally()
	type weak struct {
		line int
		rate float32
	}
	var list []weak
	for l := range w.c.Lines {
		if w.lines[l].at > from {
			if r := w.loss(t, l) / float32(w.saves(l)); r < least {
				list = append(list, weak{l, r})
			}
		}
	}
	slices.SortFunc(list, func(a, b weak) int {
		return cmp.Or(cmp.Compare(a.rate, b.rate), cmp.Compare(a.line, b.line))
	})
	saved := make([]float64, len(w.picks))
	for _, x := range list {
		l := x.line
		cost := w.saves(l)
		if w.loss(t, l)/float32(cost) >= least {
			continue // the others that said the same are gone
		}
		w.note(t, l, -1)
		if w.keptBelow(l) {
			for _, n := range w.phrasesOf(&w.lines[l+1]) {
				if n < 0 {
					t.phrases[^n]--
				}
			}
		}
		saved[w.lines[l].at] += cost
		w.lines[l].at = 0
		w.passages[w.lines[l].passage].opened--
		dropped = append(dropped, l)
	}
	sum := 0.0
	for i := range saved {
		sum += saved[i]
		w.picks[i] -= sum
	}
	w.forget()
	w.settle(0, len(w.c.Lines))
	return dropped
}

// saves returns what dropping line l saves, in tokens: what it would cost if it were not there.
func (w *work) saves(l int) float64 {
	at, opened := w.lines[l].at, &w.passages[w.lines[l].passage].opened
	w.lines[l].at = 0
	*opened--
	cost := w.cost(core.Span{Start: l, End: l + 1})
	w.lines[l].at = at
	*opened++
	return cost
}

// loss returns what dropping line l takes away: what stands in no other kept line, and what
// it gives to the lines beside it.
func (w *work) loss(t *tally, l int) float32 {
	e := w.estimate
	loss := float32(0)
	for _, n := range w.termsOf(&w.lines[l]) {
		if t.terms[n] == 1 {
			loss += w.terms[n].credit*e.Names[n] + e.Words[n]
		}
	}
	for _, n := range w.phrasesOf(&w.lines[l]) {
		if n < 0 && w.lines[l-1].at == 0 {
			continue
		}
		if n = max(n, ^n); t.phrases[n] == 1 {
			loss += e.Phrases[n]
		}
	}
	lends := func(k int) {
		for _, n := range w.termsOf(&w.lines[k]) {
			if t.terms[n] == 1 {
				loss += float32(w.o.Shares.Beside) * e.Names[n]
			}
		}
	}
	if w.keptAbove(l) {
		lends(l - 1)
	}
	if w.keptBelow(l) {
		lends(l + 1)
		for _, n := range w.phrasesOf(&w.lines[l+1]) {
			if n < 0 && t.phrases[^n] == 1 {
				loss += e.Phrases[^n]
			}
		}
	}
	return loss
}
