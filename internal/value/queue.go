package value

import "math"

// A candidate is a run of lines, and what it was worth by the token when it was last
// looked at.
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

// A queue yields the best candidate first. Most are never the best: only those of about the
// rate of the best are in order, in a heap that fits in the processor's cache however long
// the conversation is. The others wait, by steps of their rate.
type queue struct {
	best  heap
	step  int // of the worst that may be in best; those of lower steps wait
	waits [steps][]candidate
}

// The steps of rates: their exponent and the first bits of their fraction, so many to a
// doubling. What is not negative is ordered as its bits are.
const (
	stepShift = 23 - 4
	steps     = 1 << (31 - stepShift)
)

func stepOf(rate float32) int { return int(math.Float32bits(rate) >> stepShift) }

// newQueue returns a queue of all candidates of the lists. Their rates are above 0.
func newQueue(lists [][]candidate) *queue {
	q := &queue{step: steps}
	var counts [steps]int
	all := 0
	for _, list := range lists {
		for i := range list {
			counts[stepOf(list[i].rate)]++
		}
		all += len(list)
	}
	room := make([]candidate, all)
	for s, n := range counts {
		q.waits[s], room = room[:0:n], room[n:]
	}
	for _, list := range lists {
		for _, c := range list {
			q.push(c)
		}
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

// A heap has the best candidate first: what container/heap does, but no call through an
// interface and nothing allocated.
type heap []candidate //nolint:recvcheck // only push and pop change its length

// order makes a heap of any candidates.
func (h heap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

// sink puts candidate i, which may have become worse, where it belongs.
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
