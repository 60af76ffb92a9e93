package value

import (
	"slices"
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
	case outer && text != "" && parts:
		return true
	case n >= blockSplit && (parts || n >= blockMost):
		return true
	}
	return false
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
