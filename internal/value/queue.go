package value

import (
	"cmp"
	"math"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// A candidate is a run of lines with its value per token when it was last computed.
type candidate struct {
	rate       float32
	start, end int32
}

// before reports whether a is to be chosen before b.
func (a candidate) before(b candidate) bool {
	if a.rate != b.rate {
		return a.rate > b.rate
	}
	if a.start != b.start {
		return a.start > b.start // the newer one
	}
	return a.end < b.end
}

// A queue yields the best candidate first. Most candidates are never the best, so only those with rates near the best
// are sorted, in a heap that fits in the processor's cache however long the conversation is. The others wait in steps
// by rate.
type queue struct {
	best  heap
	step  int // the step of the worst candidate that may be in best; lower steps wait
	waits [][]candidate
}

// The steps of rates: their exponent and the first bits of their fraction, 16 steps to a doubling. Floats
// that are not negative are ordered like their bits.
const (
	stepShift = 23 - 4
	steps     = 1 << (31 - stepShift)
)

func stepOf(rate float32) int { return int(math.Float32bits(rate) >> stepShift) }

// newQueue returns a queue of candidates, whose rates are above 0. None of a few has to wait.
func newQueue(all []candidate) *queue {
	const few = 1024
	if len(all) <= few {
		q := &queue{best: all}
		q.best.order()
		return q
	}
	q := &queue{step: steps, waits: make([][]candidate, steps)}
	var counts [steps]int
	for i := range all {
		counts[stepOf(all[i].rate)]++
	}
	room := make([]candidate, len(all))
	for s, n := range counts {
		q.waits[s], room = room[:0:n], room[n:]
	}
	for _, c := range all {
		q.push(c)
	}
	return q
}

// top returns the best candidate; none if there is no more.
func (q *queue) top() (c candidate, ok bool) {
	for len(q.best) == 0 && q.step > 0 {
		q.step--
		q.best, q.waits[q.step] = q.waits[q.step], nil
		q.best.order()
	}
	if len(q.best) == 0 {
		return candidate{}, false
	}
	return q.best[0], true
}

func (q *queue) push(c candidate) {
	if s := stepOf(c.rate); s < q.step {
		q.waits[s] = append(q.waits[s], c)
		return
	}
	q.best.push(c)
}

// pop drops the best candidate, which top returned.
func (q *queue) pop() { q.best.pop() }

// worsen gives the best candidate a lower rate.
func (q *queue) worsen(rate float32) {
	c := q.best[0]
	c.rate = rate
	if stepOf(rate) < q.step {
		q.pop()
		q.push(c)
		return
	}
	q.best[0] = c
	q.best.sink(0)
}

// A heap has the best candidate first, like container/heap, without interface calls and
// allocations.
type heap []candidate //nolint:recvcheck // only push and pop change its length

// order makes a heap of any candidates.
func (h heap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

// sink restores the order of the heap after candidate i became worse.
func (h heap) sink(i int) {
	c := h[i]
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1].before(h[k]) {
			k++
		}
		if !h[k].before(c) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = c
}

func (h *heap) push(c candidate) {
	*h = append(*h, c)
	a := *h
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(a[up]) {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = c
}

// pop drops the best candidate.
func (h *heap) pop() {
	a := *h
	last := len(a) - 1
	a[0] = a[last]
	*h = a[:last]
	if last > 0 {
		a[:last].sink(0)
	}
}

// A tally counts the kept lines that hold each term and each phrase.
type tally struct{ terms, phrases []int32 }

func (w *choice) tally() *tally {
	t := &tally{terms: make([]int32, w.r.c.Terms()), phrases: make([]int32, len(w.r.c.phrases))}
	for l := range w.r.c.Lines {
		if w.lines[l].at != 0 {
			w.note(t, l, 1)
		}
	}
	return t
}

// note adds to t the terms and phrases of line l, and the phrases that begin in the line before it
// if that is kept.
func (w *choice) note(t *tally, l int, by int32) {
	for _, n := range w.v.termsOf(&w.lines[l]) {
		t.terms[n] += by
	}
	for _, n := range w.v.phrasesOf(&w.lines[l]) {
		if n >= 0 {
			t.phrases[n] += by
		} else if w.lines[l-1].at != 0 {
			t.phrases[^n] += by
		}
	}
}

// prune drops lines picked after from whose value per token is below least, given all other kept lines: later picks
// made them redundant, or they were picked only as neighbours. Their picks become cheaper. It returns the dropped
// lines.
func (w *choice) prune(from int32, least float32) (dropped []int) {
	t := w.tally()
	type weak struct {
		line int
		rate float32
	}
	var list []weak
	for l := range w.r.c.Lines {
		if w.lines[l].at > from && w.r.blocks[l] == 0 && w.r.c.Passages[w.lines[l].passage].Kind != dialog.KindUser { // a unit of a result stays whole
			if r := w.loss(t, l) / float32(w.saves(l)); r < least {
				list = append(list, weak{l, r})
			}
		}
	}
	slices.SortFunc(list, func(a, b weak) int { return cmp.Or(cmp.Compare(a.rate, b.rate), cmp.Compare(a.line, b.line)) })
	saved := make([]float64, len(w.picks))
	for _, x := range list {
		l := x.line
		cost := w.saves(l)
		if w.loss(t, l)/float32(cost) >= least {
			continue // the other lines with the same content are gone
		}
		w.note(t, l, -1)
		if w.keptBelow(l) {
			for _, n := range w.v.phrasesOf(&w.lines[l+1]) {
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
	w.settle(0, len(w.r.c.Lines))
	return dropped
}

// saves returns the tokens that dropping line l saves.
func (w *choice) saves(l int) float64 {
	at, opened := w.lines[l].at, &w.passages[w.lines[l].passage].opened
	w.lines[l].at = 0
	*opened--
	cost := w.cost(core.Span{Start: l, End: l + 1})
	w.lines[l].at = at
	*opened++
	return cost
}

// loss returns the value lost by dropping line l: the terms and phrases that no other kept line has, and its
// contribution to adjacent lines.
func (w *choice) loss(t *tally, l int) float32 {
	e := w.v.estimate
	loss := float32(0)
	for _, n := range w.v.termsOf(&w.lines[l]) {
		if t.terms[n] == 1 {
			loss += w.terms[n].credit*e.Names[n] + e.Words[n]
		}
	}
	for _, n := range w.v.phrasesOf(&w.lines[l]) {
		if n < 0 && w.lines[l-1].at == 0 {
			continue
		}
		if n = max(n, ^n); t.phrases[n] == 1 {
			loss += e.Phrases[n]
		}
	}
	lends := func(k int) {
		for _, n := range w.v.termsOf(&w.lines[k]) {
			if t.terms[n] == 1 {
				loss += float32(w.r.o.Shares.Adjacent) * e.Names[n]
			}
		}
	}
	if w.keptAbove(l) {
		lends(l - 1)
	}
	if w.keptBelow(l) {
		lends(l + 1)
		for _, n := range w.v.phrasesOf(&w.lines[l+1]) {
			if n < 0 && t.phrases[^n] == 1 {
				loss += e.Phrases[^n]
			}
		}
	}
	return loss
}
