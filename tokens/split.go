package tokens

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
)

// A splitter returns the end of the piece of s that begins at p, p < len(s). Tokens never
// cross the border of a piece. A piece does not depend on what is before p: the patterns have
// no lookbehind.
//
// The encodings define their splitters as regular expressions. They are hand-written here,
// because a general engine would spend most of the time on them. Each function quotes its
// pattern; the order of the alternatives is their priority.
type splitter func(t *classes, s string, p int) int

// splitO200k splits as o200k_base:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitO200k(t *classes, s string, p int) int {
	k, n := t.at(s, p)
	switch {
	case k&(letter|mark) != 0:
		// A mark may be the prefix of a word or its first character. The results differ before
		// upper case letters only: there the first alternative takes the mark alone, before
		// the second is tried, and so does casedWord.
		return t.contraction(s, t.casedWord(s, p))
	case k&(number|eol) == 0:
		// Anything else may precede a word.
		if e := t.casedWord(s, p+n); e > p+n {
			return t.contraction(s, e)
		}
	case k == number:
		return t.digits(s, p)
	}
	if e := t.symbols(s, p, '/'); e > p {
		return e
	}
	return t.blanks(s, p)
}

// casedWord returns the end of the word at p by the first two alternatives of o200k_base,
// or p if there is none: head*tail+, or else head+tail*.
func (t *classes) casedWord(s string, p int) int {
	e, back := p, p
	for e < len(s) {
		k, n := t.at(s, e)
		if k&head == 0 {
			if k != lower {
				break
			}
			// head* stops before a lower case letter: tail+ goes on from here.
			return t.run(s, e+n, tail)
		}
		e += n
		if k != upper {
			back = e
		}
	}
	if back > p {
		// No lower case letter follows, so head* gives back characters until tail+ can
		// take one: the last that is in both sets.
		return back
	}
	return e // upper case letters only: the second alternative, or nothing
}

// splitCL100k splits as cl100k_base:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitCL100k(t *classes, s string, p int) int {
	if e := t.contraction(s, p); e > p {
		return e
	}
	k, n := t.at(s, p)
	switch {
	case k == number:
		return t.digits(s, p)
	case k&eol == 0:
		// A letter begins a word, anything else may precede one.
		if e := t.run(s, p+n, letter); e > p+n || k&letter != 0 {
			return e
		}
	}
	if e := t.symbols(s, p, '\n'); e > p {
		return e
	}
	return t.blanks(s, p)
}

// contraction returns the end of (?i:'s|'t|'re|'ve|'m|'ll|'d)? at p.
func (*classes) contraction(s string, p int) int {
	if p+1 >= len(s) || s[p] != '\'' {
		return p
	}
	const toLower = 'a' - 'A' // sets the bit; characters that are not letters match none below
	switch s[p+1] | toLower {
	case 's', 't', 'm', 'd':
		return p + 2
	case 'r', 'v':
		if p+2 < len(s) && s[p+2]|toLower == 'e' {
			return p + 3
		}
	case 'l':
		if p+2 < len(s) && s[p+2]|toLower == 'l' {
			return p + 3
		}
	}
	return p
}

// digits returns the end of \p{N}{1,3} at p, where there is one.
func (t *classes) digits(s string, p int) int {
	for range 3 {
		if p == len(s) {
			break
		}
		k, n := t.at(s, p)
		if k != number {
			break
		}
		p += n
	}
	return p
}

// symbols returns the end of ` ?[^\s\p{L}\p{N}]+[\r\n]*` at p, where the last set
// includes the character also; p if there is none.
func (t *classes) symbols(s string, p int, also byte) int {
	e := p
	if s[e] == ' ' {
		e++
	}
	first := e
	if e = t.run(s, e, other|mark); e == first {
		return p
	}
	for e < len(s) && (s[e] == '\n' || s[e] == '\r' || s[e] == also) {
		e++
	}
	return e
}

// blanks returns the end of the white space at p by the last three alternatives: up to the last line end of the run,
// if it has one; else all of it at the end of the text; else all but the last character, which may belong to the
// following text, but at least one.
func (t *classes) blanks(s string, p int) int {
	e, line, last := p, p, p
	for e < len(s) {
		k, n := t.at(s, e)
		if k&space == 0 {
			break
		}
		last = e
		e += n
		if k&eol != 0 {
			line = e
		}
	}
	switch {
	case line > p:
		return line
	case e < len(s) && last > p:
		return last
	}
	return e
}

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
		p = plain.On(s, len(s)-(n+1)*w.vocabulary.longest)
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
	piece = piece[plain.On(piece, from):]
	w.merger.merge(w.vocabulary, piece)
	starts := w.merger.starts
	for i := max(0, len(starts)-n); i < len(starts); i++ {
		if utf8.RuneStart(piece[starts[i]]) {
			return len(piece) - int(starts[i])
		}
	}
	return 0
}

// A class is a set of properties of a character that the splitters use. Every character has
// exactly one of the single bits, line ends have space as well.
type class uint8

const (
	upper  class = 1 << iota // \p{Lu} and \p{Lt}
	lower                    // \p{Ll}
	either                   // \p{Lm} and \p{Lo}: letters without case
	mark                     // \p{M}
	number                   // \p{N}
	space                    // \s
	eol                      // \r and \n
	other                    // everything else: punctuation, symbols, controls, unassigned

	letter = upper | lower | either
	// The two sets that o200k_base builds words from.
	head = upper | either | mark
	tail = lower | either | mark
)

const (
	pageBits = 8
	pageSize = 1 << pageBits
	pages    = (unicode.MaxRune + 1) / pageSize
)

// classes maps a character to its class: by a byte table for ASCII, by a table of pages
// for the rest. Equal pages are stored once.
type classes struct {
	ascii [256]class // by byte; 0 for first bytes of longer characters
	index [pages]uint8
	pages [][pageSize]class
}

// loadClasses builds the table from package unicode, as tiktoken-go's regular
// expressions do, so that both follow the same version of Unicode.
var loadClasses = sync.OnceValue(func() *classes {
	flat := make([]class, unicode.MaxRune+1)
	for i := range flat {
		flat[i] = other
	}
	for _, t := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.Lu, upper},
		{unicode.Lt, upper},
		{unicode.Ll, lower},
		{unicode.Lm, either},
		{unicode.Lo, either},
		{unicode.M, mark},
		{unicode.N, number},
		{unicode.White_Space, space},
	} {
		for _, r := range t.table.R16 {
			for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
				flat[c] = t.class
			}
		}
		for _, r := range t.table.R32 {
			for c := r.Lo; c <= r.Hi; c += r.Stride {
				flat[c] = t.class
			}
		}
	}
	flat['\r'] |= eol
	flat['\n'] |= eol

	t := new(classes)
	copy(t.ascii[:utf8.RuneSelf], flat)
	seen := make(map[[pageSize]class]uint8)
	for i := range t.index {
		page := [pageSize]class(flat[i*pageSize:])
		at, ok := seen[page]
		if !ok {
			at = uint8(len(t.pages))
			seen[page] = at
			t.pages = append(t.pages, page)
		}
		t.index[i] = at
	}
	return t
})

// at returns the class of the character at s[i] and its length in bytes. The text must be
// valid UTF-8.
func (t *classes) at(s string, i int) (class, int) {
	if k := t.ascii[s[i]]; k != 0 {
		return k, 1
	}
	return t.wide(s, i)
}

// run returns the end of the characters at s[i] that are in the set.
func (t *classes) run(s string, i int, set class) int {
	for i < len(s) {
		k, n := t.ascii[s[i]], 1
		if k == 0 {
			k, n = t.wide(s, i)
		}
		if k&set == 0 {
			break
		}
		i += n
	}
	return i
}

func (t *classes) wide(s string, i int) (class, int) {
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.pages[t.index[uint32(r)>>pageBits%pages]][uint32(r)%pageSize], n
}
