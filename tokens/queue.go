package tokens

import "math/bits"

// A rankQueue holds possible merges and returns them by rank, all of one rank at a time. Ranks
// are small numbers, so each has a list of its own, and two levels of bit sets show which are
// not empty: adding and removing cost the same for any number of merges.
type rankQueue struct {
	nodes []node
	lists []int32  // by rank: the first node
	some  []uint64 // bit r is set if there are merges of rank r
	words []uint64 // bit w is set if some[w] is not 0
	low   int      // all words below are 0
}

// A node is a merge of the token that starts at start with the one after it.
type node struct{ start, next int32 }

// none ends a list.
const none = -1

// reset empties q and makes it ready for n ranks.
func (q *rankQueue) reset(n int) {
	q.nodes = q.nodes[:0]
	if len(q.lists) < n {
		q.lists = make([]int32, n)
		q.some = make([]uint64, n/64+1)
		q.words = make([]uint64, n/64/64+1)
	}
	q.low = len(q.words)
}

func (q *rankQueue) add(rank uint32, start int32) {
	next := int32(none)
	word, bit := int(rank/64), uint64(1)<<(rank%64)
	if q.some[word]&bit != 0 {
		next = q.lists[rank]
	}
	q.lists[rank] = int32(len(q.nodes))
	q.nodes = append(q.nodes, node{start, next})
	q.some[word] |= bit
	q.words[word/64] |= 1 << (word % 64)
	q.low = min(q.low, word/64)
}

// pop takes the list of the lowest rank. It returns none if the queue is empty.
func (q *rankQueue) pop() (rank uint32, first int32) {
	for ; q.low < len(q.words); q.low++ {
		if q.words[q.low] == 0 {
			continue
		}
		word := q.low*64 + bits.TrailingZeros64(q.words[q.low])
		rank := word*64 + bits.TrailingZeros64(q.some[word])
		q.some[word] &= q.some[word] - 1
		if q.some[word] == 0 {
			q.words[q.low] &= q.words[q.low] - 1
		}
		return uint32(rank), q.lists[rank]
	}
	return 0, none
}
