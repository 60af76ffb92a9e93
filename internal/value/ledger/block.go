package ledger

import (
	"slices"
	"strings"
	"unicode"
)

// A Block is lines of a file that belong together: a definition, a section.
type Block struct {
	File  *File
	First int // the number of its first line; 0 if unknown
	Lines []Line
}

// Bounds of blocks, in lines.
const (
	maxLines   = 30
	splitLines = 15 // a longer block is divided after so many lines at least
	minLines   = 4  // a shorter block is joined to the block before it
)

// Blocks divides the known text of a file. A block begins at a line without indentation after a blank or a closing
// line.
func (f *File) Blocks() []Block {
	var out []Block
	for i := range f.Runs {
		r := &f.Runs[i]
		start := 0
		add := func(end int) {
			b := Block{File: f, Lines: r.Lines[start:end]}
			if r.First > 0 {
				b.First = r.First + start
			}
			out = append(out, b.trimmed())
			start = end
		}
		for k := 1; k < len(r.Lines); k++ {
			n := k - start
			apart := !hasWord(r.Lines[k-1].Text)
			text := r.Lines[k].Text
			outer := text != "" && text[0] != ' ' && text[0] != '\t' && hasWord(text)
			if n >= minLines && len(r.Lines)-k >= minLines && outer && apart || n >= splitLines && apart && hasWord(text) || n >= maxLines {
				add(k)
			}
		}
		add(len(r.Lines))
	}
	return out
}

// Past reports whether the file was changed, in a way that is not known, since b was seen.
func (b Block) Past() bool {
	return slices.ContainsFunc(b.Lines, func(l Line) bool { return l.Times > 0 && l.Seen < b.File.Unsure })
}

// trimmed returns b without blank lines at its ends.
func (b Block) trimmed() Block {
	for len(b.Lines) > 0 && strings.TrimSpace(b.Lines[0].Text) == "" {
		b.Lines = b.Lines[1:]
		if b.First > 0 {
			b.First++
		}
	}
	for len(b.Lines) > 0 && strings.TrimSpace(b.Lines[len(b.Lines)-1].Text) == "" {
		b.Lines = b.Lines[:len(b.Lines)-1]
	}
	return b
}

// hasWord reports whether a line has a letter or a digit.
func hasWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
