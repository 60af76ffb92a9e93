package tokens

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
