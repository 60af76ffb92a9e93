package tokens

import "math/bits"

const (
	// maxPiece is the size in bytes up to which pieces are merged as a whole. The working
	// memory is about 40 bytes for each byte.
	maxPiece = 1 << 20
	// maxKept is the size of the longest piece whose working memory a worker keeps.
	maxKept = 1 << 16

	// Words and parts of identifiers repeat, so most pieces have been merged before. A cache
	// of them makes prose, code and JSON 30 to 50 percent faster.
	cacheSize    = 1 << 13
	maxCacheable = 16 // bytes of a piece
)

// A worker has the working memory of one call.
type worker struct {
	*bpe
	merger merger
	cache  [cacheSize]cached
}

// cached is the count of a piece. A new piece replaces an old one.
type cached struct {
	lo, hi uint64 // the piece, zero padded
	size   uint8
	count  uint8
}

// count returns the tokens of s, which is valid UTF-8.
func (w *worker) count(s string) int {
	total := 0
	for p := 0; p < len(s); {
		e := w.split(w.classes, s, p)
		total += w.piece(s, p, e)
		p = e
	}
	return total
}

// piece returns the tokens of s[p:e], which is a piece.
func (w *worker) piece(s string, p, e int) int {
	// A piece that is a token is not merged. This is for speed and by definition: merging
	// would not arrive at some tokens.
	n := e - p
	switch {
	case n == 1 || w.vocabulary.rank(s, p, e) != noRank:
		return 1
	case n == 2:
		return 2
	case n <= maxCacheable:
		return w.cachedPiece(s, p, e)
	}
	total := 0
	for p < e {
		end := min(e, p+maxPiece)
		w.merger.merge(w.vocabulary, s[p:end])
		total += len(w.merger.starts)
		p = end
	}
	return total
}

func (w *worker) cachedPiece(s string, p, e int) int {
	n := e - p
	lo, hi := load(s, p, min(n, 8)), uint64(0)
	if n > 8 {
		hi = load(s, p+8, n-8)
	}
	c := &w.cache[spread(spread(lo)^hi)%cacheSize]
	if c.lo != lo || c.hi != hi || int(c.size) != n {
		w.merger.merge(w.vocabulary, s[p:e])
		*c = cached{lo, hi, uint8(n), uint8(len(w.merger.starts))}
	}
	return int(c.count)
}

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
