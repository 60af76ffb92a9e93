package value

import (
	"slices"
	"sort"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/toolcall"
)

// Lines of results are chosen in readable units: a block (a definition, a paragraph, a hunk) or several of its lines.
// A single line tells a reader little, even if it has the word that is needed.
const (
	blockMost  = 30 // lines of a block
	blockSplit = 15 // a longer block is divided, at the earliest after this many lines
	blockLeast = 4  // a shorter block is joined to the block before it
	// unitLines is the least number of lines of a block that are chosen together, unless it has fewer.
	unitLines = 5
)

// findBlocks divides the results into blocks.
func (r *reading) findBlocks() {
	r.blocks = make([]int32, len(r.c.Lines))
	for p := range r.c.Passages {
		pass := &r.c.Passages[p]
		if pass.Kind == dialog.KindToolCall && !pass.partial && (pass.family == families[dialog.FamilyWrite] || pass.family == families[dialog.FamilyEdit]) {
			r.findWritten(pass)
			continue
		}
		if pass.Kind == dialog.KindToolCall && !pass.partial {
			if pass.family == families[dialog.FamilyCommand] && pass.Lines.End-pass.Lines.Start <= unitLines {
				for l := pass.Lines.Start; l < pass.Lines.End; l++ {
					r.blocks[l] = 1
				}
			}
			continue
		}
		if pass.Kind == dialog.KindAssistant {
			r.findParagraphs(pass)
			continue
		}
		if !pass.answers() || pass.family == families[dialog.FamilySearch] || pass.family == families[dialog.FamilyList] {
			continue // each line of a search or a list is a unit
		}
		if lines := r.c.Lines[pass.Lines.Start:pass.Lines.End]; slices.ContainsFunc(lines, func(l Line) bool { return l.template }) {
			continue // and of a log
		}
		block := int32(0) // number of the block, from 1; 0 is no block
		start := pass.Lines.Start
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			if l == pass.Lines.Start || r.begins(l, start, pass.Lines.End) {
				block, start = block+1, l
			}
			r.blocks[l] = block
		}
	}
}

// findParagraphs divides the assistant's texts into paragraphs. An announcement and the list after it are one
// paragraph.
func (r *reading) findParagraphs(pass *Passage) {
	block, start := int32(1), pass.Lines.Start
	for l := pass.Lines.Start; l < pass.Lines.End; l++ {
		line := &r.c.Lines[l]
		if l > pass.Lines.Start && !line.joins && l-start < blockMost {
			above := strings.TrimRight(r.c.Lines[l-1].Text, " *_")
			if !strings.HasSuffix(above, ":") && !strings.HasPrefix(above, "#") && (line.apart && !isItem(line.Text) || l-start >= blockSplit) {
				block, start = block+1, l
			}
		}
		r.blocks[l] = block
	}
}

// isItem reports whether a line is an item of a list, or of a table.
func isItem(s string) bool {
	s = strings.TrimLeft(s, " \t")
	rest := strings.TrimLeft(s, "0123456789")
	return strings.HasPrefix(s, "- ") || strings.HasPrefix(s, "* ") || strings.HasPrefix(s, "| ") || rest != s && (strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") "))
}

// findWritten divides the text that a call writes into blocks. Its other arguments are in no block.
func (r *reading) findWritten(pass *Passage) {
	block, start := int32(0), pass.Lines.Start
	for l := pass.Lines.Start; l < pass.Lines.End; l++ {
		if f := r.c.Lines[l].field; f != fieldNew && f != fieldOld {
			continue
		}
		first := l == pass.Lines.Start || r.c.Lines[l-1].field != r.c.Lines[l].field
		if first || r.begins(l, start, pass.Lines.End) {
			block, start = block+1, l
		}
		r.blocks[l] = block
	}
}

// begins reports whether a block begins at line l, given that the current block began at start. Line l is not the
// first of its passage.
func (r *reading) begins(l, start, end int) bool {
	line, above := &r.c.Lines[l], &r.c.Lines[l-1]
	if line.joins {
		return false
	}
	if line.Gap > 0 || line.under != above.under && line.under != int32(l-1) {
		return true
	}
	text, outer := content(line.Text)
	last, _ := content(above.Text)
	parts := above.after != "" || line.apart || !hasLetter(last)
	switch n := l - start; {
	case n < blockLeast || end-l < blockLeast:
		return false
	default:
		return outer && text != "" && parts || n >= blockSplit && (parts || n >= blockMost)
	}
}

// content returns a line of a file without its number, and whether it has no indentation.
func content(line string) (text string, outer bool) {
	_, _, line = toolcall.Gutter(line)
	return strings.TrimSpace(line), line != "" && line[0] != ' ' && line[0] != '\t'
}

// blockOf returns the lines of the block that line l is in; only l if it is in none.
func (v *rating) blockOf(l int) core.Span {
	s := core.Span{Start: l, End: l + 1}
	if v.r.blocks[l] == 0 {
		return s
	}
	for !v.lines[s.Start].first && v.r.blocks[s.Start-1] == v.r.blocks[l] {
		s.Start--
	}
	for !v.lines[s.End-1].last && v.r.blocks[s.End] == v.r.blocks[l] {
		s.End++
	}
	return s
}

// unit returns the lines that are chosen together with line l of a result: only l if it continues lines that are
// kept, else some lines around it in the same block.
func (w *choice) unit(l int) core.Span {
	s := core.Span{Start: l, End: l + 1}
	if w.keptAbove(l) || w.keptBelow(l) {
		return s
	}
	inBlock := func(k int) bool { return w.r.blocks[k] == w.r.blocks[l] }
	for below := true; s.End-s.Start < unitLines; below = !below {
		up := !w.lines[s.Start].first && inBlock(s.Start-1)
		down := !w.lines[s.End-1].last && inBlock(s.End)
		switch {
		case down && (below || !up):
			s.End++
		case up:
			s.Start--
		default:
			return s
		}
	}
	return s
}

const (
	// overshoot is the share of the room up to which lines are chosen: their estimated cost is mostly too high.
	overshoot = 1.08
	// reserve is the additional share that is chosen to fill room left at the end; minReserve is its minimum in
	// tokens.
	reserve    = 0.17
	minReserve = 300
)

// An extraction is what the first k picks of a choice make.
type extraction struct {
	r *reading
	w *choice
	k int32
}

func (w *choice) upTo(k int32) extraction { return extraction{w.r, w, max(k, 1)} }

// extract returns the messages with as many of w's picks as the room allows.
func extract(w *choice) Result {
	out, tokens, pick := w.fit()
	x := w.upTo(pick)
	return Result{Messages: out, Tokens: tokens, Lost: x.lostWords(), Cut: pick < w.requested || len(w.v.words.large) > 0, Kinds: x.account()}
}

// fit returns the messages with as many picks as the room allows, their tokens, and the last of these picks.
func (w *choice) fit() (messages []core.Message, tokens int, pick int32) {
	last := int32(len(w.picks) - 1)
	k := w.pickAt(float64(w.r.o.Room), last)
	var best []core.Message
	size, bestK := 0, int32(-1)
	high := last + 1 // the fewest picks known to be too many
	scale := 1.0     // of actual to estimated tokens
	for range 8 {
		out, tokens := w.upTo(k).render()
		if tokens <= w.r.o.Room && k > bestK {
			best, size, bestK = out, tokens, k
		}
		if tokens > w.r.o.Room {
			high = min(high, k)
		}
		scale = float64(tokens) / max(1, w.picks[k])
		next := w.pickAt(float64(w.r.o.Room)*0.999/scale, last)
		if tokens > w.r.o.Room && next >= k {
			next = k - max(1, k/100)
		}
		next = min(next, high-1)
		if next <= bestK || next < 0 {
			break
		}
		k = next
	}
	if bestK < w.worded {
		if best, size, bestK = w.fitWords(); bestK < w.worded || size > w.r.o.Room {
			return best, size, bestK
		}
		scale = float64(size) / max(1, w.picks[bestK])
	}
	if bestK < 0 {
		best, size = w.upTo(1).render()
		return best, size, 1
	}
	best, size = w.topUp(best, size, bestK, scale)
	return best, size, bestK
}

// pickAt returns the last pick that ends within an estimated size tokens.
func (w *choice) pickAt(size float64, last int32) int32 {
	return int32(sort.Search(int(last), func(k int) bool { return w.picks[k+1] > size }))
}

// topUp fills the remaining room with later picks that are small enough. Without any it returns its arguments.
func (w *choice) topUp(best []core.Message, size int, k int32, scale float64) ([]core.Message, int) {
	const tries, look = 6, 300 // picks
	later := make([][]int32, min(look, len(w.picks)-1-int(k)))
	for l := range w.lines {
		if i := int(w.lines[l].at - k - 1); i >= 0 && i < len(later) && !w.headless(l, k) {
			later[i] = append(later[i], int32(l))
		}
	}
	share := 1.0 // share of the remaining room to use: an estimate may be too low
	for range tries {
		if w.r.o.Room-size < max(8, w.r.o.Room/200) {
			break // not worth another rendering
		}
		left := share * float64(w.r.o.Room-size) / scale
		var taken []int
		for i, lines := range later {
			at := int(k) + 1 + i
			if cost := max(0, w.picks[at]-w.picks[at-1]); len(lines) > 0 && cost <= left {
				left -= cost
				taken = append(taken, i)
			}
		}
		if len(taken) == 0 {
			break
		}
		give := func(at func(i int) int32) {
			for _, i := range taken {
				for _, l := range later[i] {
					w.lines[l].at = at(i)
				}
			}
		}
		give(func(int) int32 { return k })
		out, tokens := w.upTo(k).render()
		if tokens > w.r.o.Room {
			give(func(i int) int32 { return k + 1 + int32(i) })
			share /= 2
			continue
		}
		for _, i := range taken {
			later[i] = nil
		}
		best, size = out, tokens
	}
	return best, size
}
