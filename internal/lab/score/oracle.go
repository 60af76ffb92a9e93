package score

import (
	"container/heap"

	"github.com/condensehq/condense/core"
)

// Oracle returns the lines of the prefix that are worth most for the panel at budget
// tokens by c, as one message: the upper bound. It knows the future, which no strategy does. It
// takes, again and again, the line, or the run of up to seven lines around one, that adds
// most to the panel per token.
func (s *Scorer) Oracle(budget int, c core.Counter) []core.Message {
	return fitted(budget, c, s.oracle)
}

func (s *Scorer) oracle(budget int) []core.Message {
	o := newOracle(s)
	used := 0.0
	for o.queue.Len() > 0 {
		c := o.queue[0]
		gain, size := o.value(c.span)
		if size == 0 || gain <= 0 || used+size > float64(budget) {
			heap.Pop(&o.queue)
			continue
		}
		if rate := gain / size; rate < c.rate-1e-12 {
			o.queue[0].rate = rate
			heap.Fix(&o.queue, 0)
			continue
		}
		heap.Pop(&o.queue)
		o.take(c.span)
		used += size
	}
	return s.render(o.keep)
}

type oracle struct {
	s      *Scorer
	sizes  []float64
	keep   []bool
	credit []float64
	words  []bool
	grams  []bool
	queue  candidates

	perUnit, perWord, perGram float64
}

type candidate struct {
	span core.Span
	rate float64 // an upper bound of value per token, mostly
}

// candidates are a heap, the best first; see [heap.Interface].
type candidates []candidate //nolint:recvcheck // the interface demands both

func (q candidates) Len() int           { return len(q) }
func (q candidates) Less(i, j int) bool { return q[i].rate > q[j].rate }
func (q candidates) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push adds x.
func (q *candidates) Push(x any) { *q = append(*q, x.(candidate)) } //nolint:errcheck,forcetypeassert // only this file pushes

// Pop removes the last.
func (q *candidates) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func newOracle(s *Scorer) *oracle {
	o := &oracle{s: s, keep: make([]bool, len(s.prefix.lines)), credit: make([]float64, len(s.units)), words: make([]bool, len(s.words)), grams: make([]bool, len(s.grams))}
	o.sizes = s.lineTokens()
	var units, words float64
	for i := range s.units {
		units += s.units[i].weight
	}
	for i := range s.words {
		words += s.words[i].weight
	}
	if units > 0 {
		o.perUnit = 1 / units
	}
	if len(s.words) >= fewestWords {
		o.perWord = 1 / words
	}
	if len(s.grams) >= fewestGrams {
		o.perGram = 1 / float64(len(s.grams))
	}
	lines := s.prefix.lines
	for i := range lines {
		if len(lines[i].units)+len(lines[i].words)+len(lines[i].grams) == 0 {
			continue
		}
		start, end := i, i+1
		o.add(start, end)
		for range 3 {
			if !lines[start].first {
				start--
			}
			if !lines[end-1].last {
				end++
			}
			if start != i || end != i+1 {
				o.add(start, end)
			}
		}
	}
	heap.Init(&o.queue)
	return o
}

func (o *oracle) add(start, end int) {
	span := core.Span{Start: start, End: end}
	if gain, size := o.value(span); gain > 0 {
		o.queue = append(o.queue, candidate{span: span, rate: gain / size})
	}
}

// lineCredit is what line i would give its units if the lines of span were kept.
func (o *oracle) lineCredit(i int, span core.Span) float64 {
	kept := func(j int) bool { return j >= span.Start && j < span.End || o.keep[j] }
	c := creditLine
	l := &o.s.prefix.lines[i]
	if l.first || kept(i-1) {
		c += creditNeighbour
	}
	if l.last || kept(i+1) {
		c += creditNeighbour
	}
	return max(c, l.long)
}

// value returns what taking the lines of span would add to the panel, and its tokens.
func (o *oracle) value(span core.Span) (gain, size float64) {
	lines := o.s.prefix.lines
	// The lines around it, if they are kept, gain a neighbour.
	for i := max(0, span.Start-1); i < min(len(lines), span.End+1); i++ {
		l := &lines[i]
		inside := i >= span.Start && i < span.End
		if !inside && !o.keep[i] {
			continue
		}
		if len(l.units) > 0 {
			c := o.lineCredit(i, span)
			for _, u := range l.units {
				gain += max(0, c-o.credit[u]) * o.s.units[u].weight * o.perUnit
			}
		}
		if o.keep[i] {
			continue
		}
		size += o.sizes[i]
		for _, g := range l.grams {
			if !o.grams[g] {
				gain += o.perGram
			}
		}
		for _, w := range l.words {
			if !o.words[w] {
				gain += o.s.words[w].weight * o.perWord
			}
		}
	}
	return gain, size
}

// take keeps the lines of span.
func (o *oracle) take(span core.Span) {
	lines := o.s.prefix.lines
	for i := span.Start; i < span.End; i++ {
		o.keep[i] = true
	}
	for i := max(0, span.Start-1); i < min(len(lines), span.End+1); i++ {
		if !o.keep[i] {
			continue
		}
		l := &lines[i]
		c := o.lineCredit(i, core.Span{})
		for _, u := range l.units {
			o.credit[u] = max(o.credit[u], c)
		}
		for _, w := range l.words {
			o.words[w] = true
		}
		for _, g := range l.grams {
			o.grams[g] = true
		}
	}
}
