package dialog

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Demands are found in four steps: a sentence is cut into words; its languages are those with the most marks in it;
// phrases that demand nothing are removed; the patterns of the languages are looked up by their first word, and the
// strongest match counts. The cost is linear in the sentence: a pattern has at most one gap.

// gapLong is the most words that a gap in a pattern can be.
const gapLong = 9

// maxDemandWords is the most words that are read of a sentence.
const maxDemandWords = 160

// Words that are any of many.
const (
	unknown uint16 = iota
	aNumber
	aName // of code, or a quotation
	firstWord
)

// A wordSet is a set of the words of the lexicon.
type wordSet []uint64

func (s wordSet) has(id uint16) bool { return s[id>>6]>>(id&63)&1 == 1 }

// A slot is one place in a pattern.
type slot struct {
	one    uint16  // the word, if it is only one
	set    wordSet // or the words
	suffix string  // or how the word ends
	kind   slotKind
}

type slotKind uint8

const (
	slotOne slotKind = iota
	slotSet
	slotNot // a word that is not in the set
	slotSuffix
	slotGap
	slotBorder
	slotEnd
)

// A role is the meaning of a sentence that a pattern matches.
type role uint8

const (
	roleDemand role = iota
	roleExcuse
	roleHedge
	roleAsk
)

// An anchor is where a pattern can begin.
type anchor uint8

const (
	anywhere  anchor = iota
	atClause         // where a clause begins
	noSubject        // not after a subject
)

type pattern struct {
	role   role
	is     Demand
	at     anchor
	weak   bool
	tongue int
	rest   []slot // after the first
}

// A lexicon is all tongues, ready to be looked up.
type lexicon struct {
	ids      map[string]uint16
	marks    []uint16 // bits of the tongues of which a word is a mark
	soft     []uint16 // bits of the tongues in which it only softens
	joins    []uint16
	subjects []uint16
	excuses  [][]pattern // by their first word
	others   [][]pattern
	han      uint16 // the tongues of signs
	kana     uint16
	latin    uint16
}

// demands returns the lexicon, which takes a few milliseconds to make: a program that reads no sentence does not make
// it.
var demands = sync.OnceValue(newLexicon)

func newLexicon() *lexicon {
	x := &lexicon{ids: map[string]uint16{}}
	for _, t := range tongues {
		x.learn(t.marks, t.subjects, t.soft, t.joins, t.asks, t.excuses, t.hedges, t.forbids, t.requires, t.prefers)
		for _, c := range t.classes {
			x.learn(c)
		}
	}
	n := int(firstWord) + len(x.ids)
	x.marks, x.soft, x.joins, x.subjects = make([]uint16, n), make([]uint16, n), make([]uint16, n), make([]uint16, n)
	x.excuses, x.others = make([][]pattern, n), make([][]pattern, n)
	for i := range tongues {
		t := &tongues[i]
		bit := uint16(1) << i
		for list, of := range map[string][]uint16{t.marks: x.marks, t.subjects: x.subjects, t.soft: x.soft, t.joins: x.joins} {
			for w := range strings.FieldsSeq(list) {
				of[x.id(w)] |= bit
			}
		}
		switch t.name {
		case "zh":
			x.han |= bit
		case "ja":
			x.kana |= bit
		default:
			x.latin |= bit
		}
		c := compiler{x: x, tongue: i, classes: t.classes}
		c.add(t.asks, roleAsk, NoDemand)
		c.add(t.excuses, roleExcuse, NoDemand)
		c.add(t.hedges, roleHedge, NoDemand)
		c.add(t.forbids, roleDemand, Forbids)
		c.add(t.requires, roleDemand, Requires)
		c.add(t.prefers, roleDemand, Prefers)
	}
	return x
}

// learn gives every word in lists an ID.
func (x *lexicon) learn(lists ...string) {
	for _, list := range lists {
		for item := range strings.FieldsFuncSeq(list, func(r rune) bool { return strings.ContainsRune(" \t\n,|^~?!+", r) }) {
			for w := range cutWords(item) {
				if w.id == unknown && x.ids[w.text] == 0 {
					x.ids[w.text] = firstWord + uint16(len(x.ids))
				}
			}
		}
	}
}

func (x *lexicon) id(s string) uint16 {
	for w := range cutWords(s) {
		if w.id != unknown {
			return w.id
		}
		return x.ids[w.text]
	}
	return unknown
}

// A compiler reads the patterns of a tongue.
type compiler struct {
	x       *lexicon
	tongue  int
	classes map[string]string
}

func (c *compiler) add(list string, r role, is Demand) {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		p := pattern{role: r, is: is, tongue: c.tongue}
		text, p.weak = strings.CutPrefix(text, "?")
		switch text[0] {
		case '^':
			p.at, text = atClause, text[1:]
		case '~':
			p.at, text = noSubject, text[1:]
		}
		for _, slots := range c.expand(strings.Fields(text)) {
			c.put(p, slots)
		}
	}
}

// put files p under its first word.
func (c *compiler) put(p pattern, slots []slot) {
	first := slots[0]
	p.rest = slots[1:]
	to := c.x.others
	if p.role == roleExcuse {
		to = c.x.excuses
	}
	switch first.kind {
	case slotOne:
		to[first.one] = append(to[first.one], p)
	case slotSet:
		for k, word := range first.set {
			for ; word != 0; word &= word - 1 {
				id := k<<6 | bits.TrailingZeros64(word)
				to[id] = append(to[id], p)
			}
		}
	case slotNot, slotSuffix, slotGap, slotBorder, slotEnd:
		panic("dialog: a pattern does not begin with a word")
	}
}

// expand returns the slots of a pattern, once for each of the phrases that are alternatives in it.
func (c *compiler) expand(items []string) [][]slot {
	out := [][]slot{nil}
	for _, item := range items {
		var phrases []string
		words := item
		if strings.Contains(item, "|") && item[0] != '!' {
			words = ""
			for a := range strings.SplitSeq(item, "|") {
				if n := len(c.slots(a)); n > 1 {
					phrases = append(phrases, a)
				} else {
					words += "|" + a
				}
			}
			words = strings.TrimPrefix(words, "|")
		}
		var next [][]slot
		for _, before := range out {
			for _, a := range append(phrases, words) {
				if a != "" {
					next = append(next, append(slices.Clip(before), c.slots(a)...))
				}
			}
		}
		out = next
	}
	return out
}

// slots returns the slots of one item of a pattern: signs of Chinese and Japanese are a slot each.
func (c *compiler) slots(item string) []slot {
	switch {
	case item == "..":
		return []slot{{kind: slotGap}}
	case item == "/":
		return []slot{{kind: slotBorder}}
	case item == "$":
		return []slot{{kind: slotEnd}}
	case item == "_":
		return []slot{{kind: slotNot, set: c.set("")}}
	case item[0] == '*':
		return []slot{{kind: slotSuffix, suffix: item[1:]}}
	case item[0] == '!':
		return []slot{{kind: slotNot, set: c.set(item[1:])}}
	case strings.ContainsAny(item, "|{"):
		return []slot{{kind: slotSet, set: c.set(item)}}
	}
	var out []slot
	for w := range cutWords(item) {
		id := w.id
		if id == unknown {
			id = c.x.ids[w.text]
		}
		out = append(out, slot{one: id})
	}
	return out
}

func (c *compiler) set(alternatives string) wordSet {
	s := make(wordSet, (len(c.x.marks)+63)/64)
	for a := range strings.SplitSeq(alternatives, "|") {
		list := a
		if name, ok := strings.CutPrefix(a, "{"); ok {
			if list, ok = c.classes[strings.TrimSuffix(name, "}")]; !ok {
				panic("dialog: no class of words " + a)
			}
		}
		for w := range strings.FieldsSeq(list) {
			id := c.x.id(w)
			s[id>>6] |= 1 << (id & 63)
		}
	}
	s[0] &^= 1 // words that are not in the lexicon are in no set
	return s
}

// A token is a word of a sentence.
type token struct {
	id     uint16
	border bool   // a sign that ends a clause is before it
	begins uint16 // the tongues in which a clause begins with it, a bit each
	idle   bool   // it is in a phrase that demands nothing
	text   string // without accents and apostrophes
}

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
					if i == 0 || softened(w[:i], p.tongue, x) {
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

// softened reports whether words say nothing by themselves.
func softened(w []token, tongue int, x *lexicon) bool {
	for i := range w {
		if x.soft[w[i].id]>>tongue&1 == 0 {
			return false
		}
	}
	return true
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
		for i := range tongues {
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

func isKana(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) }

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
