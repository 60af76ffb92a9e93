package outline

import (
	"cmp"
	"slices"
)

// maxDepth bounds how deep scopes are followed. What is deeper is skipped.
const maxDepth = 60

// maxAngle bounds, in tokens, how far a list of type parameters is followed.
const maxAngle = 400

// A parser walks over tokens. All indexes it takes may be len(toks).
type parser struct {
	src  string
	toks []token
	defs []found
}

// A found is a definition in offsets of bytes.
type found struct {
	name, kind string
	start      int // of its first byte
	body       int // of the bracket that opens the body, or -1
	end        int // of its last byte
	depth      int
}

func (p *parser) text(i int) string {
	if i < 0 || i >= len(p.toks) {
		return ""
	}
	t := p.toks[i]
	return p.src[t.pos:t.end]
}

// kind is the kind of a token, 0 beyond the last.
func (p *parser) kind(i int) byte {
	if i < 0 || i >= len(p.toks) {
		return 0
	}
	return p.toks[i].kind
}

func (p *parser) isWord(i int) bool { return p.kind(i) == word }

// after is the index after the bracket that i opens.
func (p *parser) after(i int) int { return min(int(p.toks[i].match), len(p.toks)-1) + 1 }

// closing is the index of the bracket that closes i, or of the end.
func (p *parser) closing(i int) int { return int(p.toks[i].match) }

// joined reports whether token i+1 follows i without a gap, as the parts of => do.
func (p *parser) joined(i int) bool {
	return i+1 < len(p.toks) && p.toks[i].end == p.toks[i+1].pos
}

// is reports whether the punctuation s begins at i.
func (p *parser) is(i int, s string) bool {
	for k := range len(s) {
		if p.kind(i+k) != s[k] || k > 0 && !p.joined(i+k-1) {
			return false
		}
	}
	return true
}

func (p *parser) newline(i int) bool { return i >= len(p.toks) || p.toks[i].nl }

// angle is the index after the type parameters or arguments that < at i opens, or 0 if
// that seems to be an operator.
func (p *parser) angle(i int) int {
	depth := 0
	for k, n := i, min(len(p.toks), i+maxAngle); k < n; {
		switch p.kind(k) {
		case '<':
			depth++
		case '>':
			if p.joined(k-1) && (p.kind(k-1) == '-' || p.kind(k-1) == '=') {
				break
			}
			depth--
			if depth == 0 {
				return k + 1
			}
		case '(', '[', '{':
			k = p.after(k)
			continue
		case ';', ')', ']', '}':
			return 0
		}
		k++
	}
	return 0
}

// add records a definition whose first, opening and last tokens are given; open is -1 if
// there is no body.
func (p *parser) add(name, kind string, first, open, last, depth int) {
	if name == "" || first >= len(p.toks) {
		return
	}
	f := found{name: name, kind: kind, start: int(p.toks[first].pos), body: -1, depth: depth}
	if open >= 0 && open < len(p.toks) {
		f.body = int(p.toks[open].pos)
	}
	last = min(last, len(p.toks)-1)
	f.end = max(int(p.toks[last].end)-1, f.start)
	p.defs = append(p.defs, f)
}

// definitions turns offsets into lines, and puts them into order.
func definitions(src string, fs []found) []Definition {
	if len(fs) == 0 {
		return nil
	}
	slices.SortStableFunc(fs, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	starts := lineStarts(src)
	lines := len(starts) - 1
	line := func(offset int) int {
		i, exact := slices.BinarySearch(starts[:lines], offset)
		if exact {
			i++
		}
		return i
	}
	defs := make([]Definition, len(fs))
	for i, f := range fs {
		d := Definition{Name: f.name, Kind: f.kind, Depth: f.depth, Start: line(f.start), End: line(f.end)}
		d.Body = d.End + 1
		if f.body >= 0 {
			d.Body = min(line(f.body)+1, d.Body)
		}
		defs[i] = d
	}
	return nest(defs)
}

// nest makes the definitions keep what Definitions promises, whatever the scanner found.
func nest(defs []Definition) []Definition {
	slices.SortStableFunc(defs, func(a, b Definition) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	var open []int // ends of the definitions around
	for i := range defs {
		d := &defs[i]
		for len(open) > 0 && open[len(open)-1] < d.Start {
			open = open[:len(open)-1]
		}
		if len(open) > 0 && d.End > open[len(open)-1] {
			d.End = open[len(open)-1]
			d.Body = min(d.Body, d.End+1)
		}
		open = append(open, d.End)
	}
	return defs
}
