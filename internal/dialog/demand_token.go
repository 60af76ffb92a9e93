package dialog

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDemandWords is the most words that are read of a sentence.
const maxDemandWords = 160

// A token is a word of a sentence.
type token struct {
	id     uint16
	border bool   // a sign that ends a clause is before it
	begins uint16 // the tongues in which a clause begins with it, a bit each
	idle   bool   // it is in a phrase that demands nothing
	text   string // without accents and apostrophes
}

// read appends the words of s to w, and returns the tongues that it can be in, a bit each.
func (x *lexicon) read(s string, w []token) (words []token, in uint16) {
	var count [16]int
	for t := range cutWords(s) {
		if len(w) == maxDemandWords {
			break
		}
		if t.id == unknown {
			t.id = x.ids[t.text]
		}
		for m, i := x.marks[t.id], 0; m != 0; m, i = m>>1, i+1 {
			count[i] += int(m & 1)
		}
		w = append(w, t)
		if r, _ := utf8.DecodeRuneInString(t.text); r > unicode.MaxLatin1 {
			switch {
			case unicode.Is(unicode.Han, r):
				in |= x.han
			case isKana(r):
				in |= x.kana
			}
		}
	}
	switch {
	case in&x.kana != 0:
		in = x.kana
	case in == 0:
		most := 0
		for i := range tongues() {
			if count[i] > most {
				most, in = count[i], 0
			}
			if count[i] == most {
				in |= 1 << i
			}
		}
		in &= x.latin
	}
	for i := range w {
		switch {
		case i == 0 || w[i].border:
			w[i].begins = ^uint16(0)
		default:
			before := w[i-1]
			w[i].begins = before.begins&x.soft[before.id] | x.joins[before.id]
		}
	}
	return w, in
}

// cutWords yields the words of s. A name of code with its signs is one word, and so is a quotation.
func cutWords(s string) func(func(token) bool) {
	return func(yield func(token) bool) {
		border, closed := true, [2]bool{}
		for i := 0; i < len(s); {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == '`' || r == '"' && i > 0:
				q := 0
				if r == '"' {
					q = 1
				}
				if end := strings.IndexRune(s[i+1:], r); end > 0 && !closed[q] {
					if !yield(token{id: aName, border: border}) {
						return
					}
					border = false
					i += end + 2
					continue
				}
				closed[q] = true // there is no other one
				if len(s) == 1 {
					yield(token{id: aName})
				}
				i++
			case r == '#' && len(s) == 1:
				yield(token{id: aNumber})
				return
			case !isWordRune(r):
				border = border || strings.ContainsRune(",;:.!?*—–(，；：。！？（、「", r)
				i += n
			case unicode.Is(unicode.Han, r) || isKana(r):
				if !yield(token{text: s[i : i+n], border: border}) {
					return
				}
				border = false
				i += n
			default:
				t := token{border: border}
				i = t.word(s, i)
				border = false
				if !yield(t) {
					return
				}
			}
		}
	}
}

// word reads the word at s[i], and returns where it ends.
func (t *token) word(s string, i int) int {
	start, plain := i, true
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r < 0x80 && r >= 'a' && r <= 'z' || r == '-':
		case isWordRune(r):
			if unicode.Is(unicode.Han, r) || isKana(r) {
				n = 0
			}
			plain = false
		case r == '\'' || r == '’':
			plain = false
		case strings.ContainsRune("./_\\@:=", r) && joined(s, i+n): // a path or the like
			t.id = aName
		default:
			n = 0
		}
		if n == 0 {
			break
		}
		i += n
	}
	t.text = strings.TrimRight(s[start:i], "-'’")
	switch {
	case t.id == aName:
	case s[start] >= '0' && s[start] <= '9':
		t.id = aNumber
	case !plain:
		t.text = fold(t.text)
	}
	return i
}

// joined reports whether a letter or digit is at s[i].
func joined(s string, i int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	return isWordRune(r) && !unicode.Is(unicode.Han, r) && !isKana(r)
}

// fold returns s in lower case, without accents and apostrophes.
func fold(s string) string {
	var room [48]byte
	out := room[:0]
	for _, r := range s {
		switch r = unicode.ToLower(r); {
		case r == '\'' || r == '’':
			continue
		case r >= 0xc0 && r < 0x100:
			out = append(out, plainLetters[r-0xc0])
			if r == 'ß' {
				out = append(out, 's')
			}
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}

// plainLetters are the letters from À on without their accents.
const plainLetters = "aaaaaaaceeeeiiiidnooooo*ouuuuypsaaaaaaaceeeeiiiidnooooo/ouuuuypy"

func isKana(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) }

// Demands are found in four steps: a sentence is cut into words; its languages are those with the most marks in it;
// phrases that demand nothing are removed; the patterns of the languages are looked up by their first word, and the
// strongest match counts. The cost is linear in the sentence: a pattern has at most one gap.

// gapLong is the most words that a gap in a pattern can be.
const gapLong = 9

// of returns the demand of s. Of a question, weak patterns do not count.
func (x *lexicon) of(s string, asked bool) Demand {
	var room [maxDemandWords]token
	w, in := x.read(s, room[:0])
	for i := range w {
		for k := range x.excuses[w[i].id] {
			x.excuse(&x.excuses[w[i].id][k], w, i, in)
		}
	}
	best, bestWeak, hedged := NoDemand, NoDemand, asked
	for i := range w {
		if w[i].idle {
			continue
		}
		if list := x.others[w[i].id]; list != nil {
			for k := range list {
				p := &list[k]
				if in>>p.tongue&1 == 0 || p.role == roleDemand && p.is <= best || p.role == roleHedge && hedged {
					continue
				}
				if _, ok := x.match(p, w, i); !ok {
					continue
				}
				switch p.role {
				case roleAsk:
					if !slices.ContainsFunc(w[:i], func(t token) bool { return x.soft[t.id]>>p.tongue&1 == 0 }) {
						return NoDemand
					}
				case roleHedge:
					hedged = true
				case roleExcuse: // they are in a list of their own
				case roleDemand:
					if p.weak {
						bestWeak = max(bestWeak, p.is)
					} else {
						best = max(best, p.is)
					}
				}
			}
		}
	}
	if !hedged {
		best = max(best, bestWeak)
	}
	return best
}

// excuse marks the words that p matches at i.
func (x *lexicon) excuse(p *pattern, w []token, i int, in uint16) {
	if in>>p.tongue&1 == 0 {
		return
	}
	if end, ok := x.match(p, w, i); ok {
		for k := i; k < end; k++ {
			w[k].idle = true
		}
	}
}

// match reports whether p, whose first word is w[i], matches, and where it ends.
func (x *lexicon) match(p *pattern, w []token, i int) (end int, ok bool) {
	switch p.at {
	case anywhere:
	case atClause:
		if w[i].begins>>p.tongue&1 == 0 {
			return 0, false
		}
	case noSubject:
		if i > 0 && !w[i].border && x.subjects[w[i-1].id]>>p.tongue&1 == 1 {
			return 0, false
		}
	}
	return match(p.rest, w, i+1, false)
}

// match matches slots at w[at]. Over a border it goes only where border says so.
func match(slots []slot, w []token, at int, border bool) (end int, ok bool) {
	for k := range slots {
		s := &slots[k]
		switch s.kind {
		case slotOne, slotSet, slotNot, slotSuffix:
		case slotEnd:
			if at < len(w) {
				return 0, false
			}
			continue
		case slotBorder:
			if at >= len(w) || !w[at].border {
				return 0, false
			}
			border = true
			continue
		case slotGap:
			for n := range gapLong + 1 {
				if end, ok = match(slots[k+1:], w, at+n, border); ok {
					return end, true
				}
				if at+n >= len(w) || w[at+n].border && !border {
					break
				}
			}
			return 0, false
		}
		if at >= len(w) || w[at].border && !border || w[at].idle || !s.takes(&w[at]) {
			return 0, false
		}
		border = false
		at++
	}
	return at, true
}

func (s *slot) takes(w *token) bool {
	switch s.kind {
	case slotOne:
		return w.id == s.one
	case slotSet:
		return s.set.has(w.id)
	case slotNot:
		return !s.set.has(w.id)
	case slotSuffix:
		n := len(w.text) - len(s.suffix) // "feed" is not of the kind of "added"
		return n > 1 && w.text[n:] == s.suffix && w.text[n-1] != s.suffix[0]
	case slotGap, slotBorder, slotEnd:
	}
	return false
}
