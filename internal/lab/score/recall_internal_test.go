package score

import (
	"container/heap"

	"github.com/condensehq/condense/core"
)

// RecallCost returns how many recalls a model that knows the future makes of what view leads to, until the panel
// is target, and the tokens of what they return, each with overhead tokens for the call. A recall returns a whole
// part or, by lines, up to seven lines. It is greedy. Reached is the panel that it ends at.
func (s *Scorer) RecallCost(view []core.Message, target float64, whole bool, overhead float64) (calls int, tokens, reached float64) {
	r := s.read(view)
	panel, _ := s.Score(view).Panel()
	can := s.reached(view)
	o := newOracle(s)
	o.credit, o.words, o.grams = r.credit, r.words, r.grams
	if whole {
		o.queue = nil
		for _, part := range s.reachable().parts {
			o.add(part.Start, part.End)
		}
	}
	for i := range o.queue {
		o.queue[i].rate = 1e9 // looked at again before it is taken
	}
	heap.Init(&o.queue)
	families := 0.0
	for _, per := range []float64{o.perUnit, o.perWord, o.perGram} {
		if per > 0 {
			families++
		}
	}
	now := func() float64 {
		sum := 0.0
		for i, credit := range o.credit {
			sum += credit * s.units[i].weight * o.perUnit
		}
		for i, ok := range o.words {
			if ok {
				sum += s.words[i].weight * o.perWord
			}
		}
		for _, ok := range o.grams {
			if ok {
				sum += o.perGram
			}
		}
		return sum / families
	}
	for o.queue.Len() > 0 && panel < target {
		c := o.queue[0]
		gain, size := o.value(c.span)
		reachable := true
		for l := c.span.Start; l < c.span.End; l++ {
			reachable = reachable && can[l]
		}
		if size == 0 || gain <= 0 || !reachable {
			heap.Pop(&o.queue)
			continue
		}
		if rate := gain / (size + overhead); rate < c.rate-1e-12 {
			o.queue[0].rate = rate
			heap.Fix(&o.queue, 0)
			continue
		}
		heap.Pop(&o.queue)
		o.take(c.span)
		calls++
		tokens += size + overhead
		panel = now()
	}
	return calls, tokens, panel
}
