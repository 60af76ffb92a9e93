package tokens

import "unicode/utf8"

// How a text is cut. A piece does not depend on the text before it, so the text after the end of a piece has the same
// pieces on its own. So does the text before it, except for white space at its end, which may be two pieces before a
// letter and one at the end of the text. Inside a piece the same applies to tokens: no merge crosses the border
// between two, so the tokens before and after it are the tokens of these bytes on their own. But a part of a piece
// may be split differently from the whole. Therefore the cut is made at the last token that fits, and counted; if
// there are more tokens than expected, which is rare, the next attempts are one token lower, then two, four and so
// on, and at last between the pieces.

// prefix returns the length of the longest prefix of s that it finds with at most n tokens,
// for 0 < n < len(s).
func (w *worker) prefix(s string, n int) int {
	total, p, before := 0, 0, 0
	var e int
	for {
		if p == len(s) {
			return p
		}
		e = w.split(w.classes, s, p)
		if (e-p)/w.vocabulary.longest > n-total {
			break // the rest is not counted: it may be long
		}
		size := w.piece(s, p, e)
		if total+size > n {
			break
		}
		total += size
		before, p = p, e
	}
	for keep, step := n-total, 1; keep > 0; keep, step = keep-step, 2*step {
		cut := p + w.cutAfter(s[p:e], keep)
		if cut > p && w.count(s[:cut]) <= n {
			return cut
		}
	}
	if w.count(s[:p]) <= n {
		return p
	}
	return before
}

// cutAfter returns where to cut a piece so that n tokens are before, or as many as
// possible below n.
func (w *worker) cutAfter(piece string, n int) int {
	// Tokens that would end near the cut-off end are far too many.
	piece = piece[:min(len(piece), (n+1)*w.vocabulary.longest, maxPiece)]
	w.merger.merge(w.vocabulary, piece)
	starts := w.merger.starts
	i := min(n, len(starts)-1)
	for !utf8.RuneStart(piece[starts[i]]) {
		i--
	}
	return int(starts[i])
}

// suffix returns where the longest suffix of s begins that it finds with at most n tokens, for
// 0 < n < len(s).
func (w *worker) suffix(s string, n int) int {
	p := 0
	if len(s)/w.vocabulary.longest > n {
		// This much certainly has more than n tokens.
		p = nextRune(s, len(s)-(n+1)*w.vocabulary.longest)
	}
	total, e := w.count(s[p:]), p
	for total > n {
		p, e = e, w.split(w.classes, s, e)
		total -= w.piece(s, p, e)
	}
	for keep, step := n-total, 1; keep > 0 && e > p; keep, step = keep-step, 2*step {
		cut := e - w.cutBefore(s[p:e], keep)
		if cut < e && w.count(s[cut:]) <= n {
			return cut
		}
	}
	return e
}

// cutBefore is like cutAfter from the end: it returns how many bytes to leave.
func (w *worker) cutBefore(piece string, n int) int {
	from := max(0, len(piece)-(n+1)*w.vocabulary.longest, len(piece)-maxPiece)
	piece = piece[nextRune(piece, from):]
	w.merger.merge(w.vocabulary, piece)
	starts := w.merger.starts
	for i := max(0, len(starts)-n); i < len(starts); i++ {
		if utf8.RuneStart(piece[starts[i]]) {
			return len(piece) - int(starts[i])
		}
	}
	return 0
}

// nextRune returns the offset of the first character of s that starts at i or later; 0 for 0, whatever is there.
func nextRune(s string, i int) int {
	for 0 < i && i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}
