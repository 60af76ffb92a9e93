package tokens

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

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
