package value

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

// A queue is a heap with the best candidate first: what container/heap does, but no call
// through an interface and nothing allocated.
type queue []candidate //nolint:recvcheck // only push and pop change its length

// order makes a heap of any candidates.
func (q queue) order() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

// sink puts candidate i, which may have become worse, where it belongs.
func (q queue) sink(i int) {
	c := q[i]
	for {
		k := 2*i + 1
		if k >= len(q) {
			break
		}
		if k+1 < len(q) && q[k+1].before(q[k]) {
			k++
		}
		if !q[k].before(c) {
			break
		}
		q[i] = q[k]
		i = k
	}
	q[i] = c
}

func (q *queue) push(c candidate) {
	*q = append(*q, c)
	h := *q
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = c
}

// pop drops the best candidate.
func (q *queue) pop() {
	h := *q
	last := len(h) - 1
	h[0] = h[last]
	*q = h[:last]
	if last > 0 {
		h[:last].sink(0)
	}
}
