package dialog

import (
	_ "embed"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/internal/plain"
)

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
	for _, t := range tongues() {
		for _, list := range t.lists {
			x.learn(list)
		}
	}
	n := int(firstWord) + len(x.ids)
	x.marks, x.soft, x.joins, x.subjects = make([]uint16, n), make([]uint16, n), make([]uint16, n), make([]uint16, n)
	x.excuses, x.others = make([][]pattern, n), make([][]pattern, n)
	for i := range tongues() {
		t := &tongues()[i]
		bit := uint16(1) << i
		for list, of := range map[string][]uint16{"marks": x.marks, "subjects": x.subjects, "soft": x.soft, "joins": x.joins} {
			for w := range strings.FieldsSeq(t.lists[list]) {
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
		c := compiler{x: x, tongue: i, lists: t.lists}
		c.add("asks", roleAsk, NoDemand)
		c.add("excuses", roleExcuse, NoDemand)
		c.add("hedges", roleHedge, NoDemand)
		c.add("forbids", roleDemand, Forbids)
		c.add("requires", roleDemand, Requires)
		c.add("prefers", roleDemand, Prefers)
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
	x      *lexicon
	tongue int
	lists  map[string]string
}

func (c *compiler) add(list string, r role, is Demand) {
	for text := range strings.SplitSeq(c.lists[list], ",") {
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
			next = append(next, plain.Each(plain.Only(append(phrases, words), func(a string) bool { return a != "" }),
				func(a string) []slot { return append(slices.Clip(before), c.slots(a)...) })...)
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
			if list, ok = c.lists["{"+name]; !ok {
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

// A tongue is how people demand things in one language. Words are compared in lower case, without accents and
// apostrophes ("don't" is dont), and each sign of Chinese and Japanese is a word.
//
// Its lists are, by name: marks, frequent words by which the language is recognized (none for one with signs of its own); subjects,
// after which a verb is no imperative; soft, with which a clause only begins; joins, after which another clause begins; classes of
// words, whose names are in braces; and patterns: asks, beginnings of questions, even of those without a mark; excuses, which demand
// nothing, and whose words match no other pattern; hedges, signs of a report; forbids, requires and prefers.
//
// Patterns are separated by commas. A pattern is a sequence of words within a clause:
//
//	a|b     one of these words, or of a class of that name in braces
//	a+b|c   a phrase or a word
//	!a|b    a word that is none of these
//	_       any word
//	*ing    a word that ends so
//	#       a number; ` is a name or a quotation
//	..      up to gapLong words, or none; once in a pattern
//	/       the next word begins another clause
//	$       the sentence ends
//
// A pattern with ^ before it matches where a clause begins, one with ~ not after a subject of the language. One with ?
// is weak: it counts only in a sentence without a hedge.
type tongue struct {
	name  string
	lists map[string]string
}

//go:embed demand_words.txt
var tonguesText string

// tongues are the languages of the file: "= NAME" begins one, "LIST:" a list, and a tab a line that continues it.
var tongues = sync.OnceValue(func() (all []tongue) {
	list := ""
	for line := range strings.Lines(tonguesText) {
		if name, begins := strings.CutPrefix(line, "= "); begins {
			all = append(all, tongue{strings.TrimSpace(name), map[string]string{}})
			continue
		}
		if !strings.HasPrefix(line, "\t") {
			list, line, _ = strings.Cut(line, ":")
		}
		if strings.TrimSpace(line) != "" {
			all[len(all)-1].lists[list] += line
		}
	}
	return all
})
