package outline

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// maxSignature limits a signature, in bytes: longer ones are data, not signatures.
const maxSignature = 240

// Fold returns the outline of a file for a model to read, or "" if the language is unknown or
// nothing is defined:
//
//	# server.go
//	12--40 | type Server struct
//	42--61 | func (s *Server) Serve(l net.Listener) error
//
// The first line has the name of the file, the others the first and last line of a definition
// and its signature on one line, indented as in the file. Of definitions that begin on the
// same line only the outer one is shown.
func Fold(name, src string) string {
	defs := Definitions(Language(name), src)
	if len(defs) == 0 {
		return ""
	}
	lines := lineStarts(src)
	var b strings.Builder
	b.WriteString("# " + path.Base(strings.ReplaceAll(name, `\`, "/")) + "\n")
	for i, d := range defs {
		if i > 0 && d.Start == defs[i-1].Start {
			continue // the line has been shown
		}
		b.WriteString(strconv.Itoa(d.Start) + "--" + strconv.Itoa(d.End) + " | ")
		writeSignature(&b, src[lines[d.Start-1]:lines[d.Body-1]])
		b.WriteByte('\n')
	}
	return b.String()
}

// writeSignature writes a header on one line: indentation unchanged, other white space collapsed, without the bracket
// that opens the body.
func writeSignature(b *strings.Builder, header string) {
	text := strings.TrimLeft(header, " \t")
	b.WriteString(header[:len(header)-len(text)])
	text = strings.TrimRight(text, " \t\r\n\f\v")
	if short, ok := strings.CutSuffix(text, "{"); ok {
		text = strings.TrimRight(short, " \t\r\n\f\v")
	}
	written := 0
	for word := range strings.FieldsSeq(text) {
		if written > 0 {
			b.WriteByte(' ')
			written++
		}
		if room := max(maxSignature-written, 0); len(word) > room {
			b.WriteString(strings.ToValidUTF8(word[:plain.Back(word, room)], "\uFFFD"))
			b.WriteString(" …")
			return
		}
		b.WriteString(strings.ToValidUTF8(word, "\uFFFD"))
		written += len(word)
	}
}

// lineStarts gives the offset of every line and, last, the length of src, as if src ended
// with a line break.
func lineStarts(src string) []int {
	starts := make([]int, 1, 1+len(src)/24)
	for i := 0; i < len(src); i++ {
		if src[i] == '\n' && i+1 < len(src) {
			starts = append(starts, i+1)
		}
	}
	return append(starts, len(src))
}

// DefaultChars is the default budget of [Files], Roo-Code's.
const DefaultChars = 50_000

// Roo's constants of the budget, in UTF-16 code units: with less room than minRoom left it
// stops, otherwise it fills the room up to cutMargin with the beginning of the outline.
const (
	minRoom   = 200
	cutMargin = 100
)

// Folded is the outline of several files.
type Folded struct {
	Blocks  []Block   // in the order of the paths
	Skipped []Skipped // likewise
}

// A Block is the outline of one file, wrapped for a model to read:
//
//	<system-reminder>
//	## File Context: server.go
//	# server.go
//	12--40 | type Server struct
//
//	</system-reminder>
type Block struct {
	Path string // as given
	Text string
	Cut  bool // the budget cut it; the text says so
}

// Skipped reports why a file has no block.
type Skipped struct {
	Path string // as given
	Err  error
}

// Pack makes a block of the result of define for each path, in order, until chars UTF-16 code
// units are used, as Roo-Code does: the first outline that does not fit is cut, or left out if
// fewer than 200 units remain, and define is not called for the paths after it. A path for
// which define returns an error or "" is skipped. Line breaks between the blocks are not
// counted, and the cut allows 100 units for the wrapping: a long path may exceed that.
func Pack(paths []string, chars int, define func(path string) (string, error)) Folded {
	var f Folded
	used := 0
	for i, p := range paths {
		text, err := define(p)
		if err == nil && text == "" {
			err = errNothing
		}
		if err != nil {
			f.Skipped = append(f.Skipped, Skipped{p, err})
			continue
		}
		block := wrap(p, text)
		if n := len(utf16.Encode([]rune(block))); used+n <= chars {
			f.Blocks = append(f.Blocks, Block{Path: p, Text: block})
			used += n
			continue
		}
		if room := chars - used; room >= minRoom {
			text = prefix(text, room-cutMargin) + "\n... (truncated)"
			f.Blocks = append(f.Blocks, Block{Path: p, Text: wrap(p, text), Cut: true})
			i++
		}
		f.Skipped = append(f.Skipped, plain.Each(paths[i:], func(p string) Skipped { return Skipped{p, errBudget} })...)
		break
	}
	return f
}

// FileHead begins the text of a block.
const FileHead = "## File Context: "

func wrap(path, text string) string {
	return toolcall.ReminderOpen + "\n" + FileHead + path + "\n" + text + "\n" + toolcall.ReminderClose
}

// prefix is the longest prefix of s of at most n UTF-16 code units.
func prefix(s string, n int) string {
	for i, r := range s {
		n -= utf16.RuneLen(r)
		if n < 0 {
			return s[:i]
		}
	}
	return s
}

// scanMarkdown finds headings. A section lasts until the next heading of its level or
// above. Fenced code has no headings.
func scanMarkdown(_ *language, src string) []Definition {
	var defs []Definition
	var open []int // indexes of the sections around
	var levels []int
	line, last := 0, 0
	fence := ""
	var prev string // the line before, if it can be the text of a heading
	closeTo := func(level, end int) {
		for len(open) > 0 && levels[len(levels)-1] >= level {
			defs[open[len(open)-1]].End = end
			open, levels = open[:len(open)-1], levels[:len(levels)-1]
		}
	}
	begin := func(name string, level, start int) {
		closeTo(level, start-1)
		defs = append(defs, Definition{Name: name, Kind: "heading", Start: start, Depth: len(open)})
		open, levels = append(open, len(defs)-1), append(levels, level)
	}
	frontMatter := strings.HasPrefix(src, "---\n") || strings.HasPrefix(src, "---\r\n")
	for text := range strings.Lines(src) {
		line++
		text = strings.TrimRight(text, " \t\r\n")
		if text != "" {
			last = line
		}
		bare := strings.TrimLeft(text, " ")
		indented := len(text)-len(bare) > 3
		if frontMatter {
			frontMatter = line == 1 || text != "---"
			continue
		}
		if fence != "" {
			if !indented && strings.HasPrefix(bare, fence) && strings.Trim(bare, fence[:1]) == "" {
				fence = ""
			}
			continue
		}
		before := prev
		prev = ""
		if indented || bare == "" {
			continue
		}
		if f := fenceOf(bare); f != "" {
			fence = f
			continue
		}
		if level := len(bare) - len(strings.TrimLeft(bare, "#")); level > 0 && level <= 6 {
			if name := bare[level:]; name == "" || name[0] == ' ' || name[0] == '\t' {
				name = strings.TrimSpace(name)
				if t := strings.TrimRight(name, "#"); t == "" || strings.HasSuffix(t, " ") {
					name = strings.TrimSpace(t)
				}
				begin(name, level, line)
				continue
			}
		}
		if before != "" {
			if strings.Trim(bare, "=") == "" {
				begin(before, 1, line-1)
				continue
			}
			if strings.Trim(bare, "-") == "" {
				begin(before, 2, line-1)
				continue
			}
		}
		if !ordered(bare) && (strings.IndexByte(">-*+|<", bare[0]) < 0 || strings.HasPrefix(bare, "**")) {
			prev = bare
		}
	}
	closeTo(0, last)
	for i := range defs {
		d := &defs[i]
		d.End = max(d.End, d.Start)
		d.Body = d.Start + 1
	}
	return nest(defs)
}

// ordered reports whether a line begins an item of an ordered list.
func ordered(s string) bool {
	k := 0
	for k < len(s) && k < 9 && isDigit(s[k]) {
		k++
	}
	return k > 0 && len(s) > k+1 && (s[k] == '.' || s[k] == ')') && s[k+1] == ' '
}

// fenceOf is the fence that a line of Markdown begins with, or "".
func fenceOf(s string) string {
	if c := s[0]; c == '`' || c == '~' {
		k := 0
		for k < len(s) && s[k] == c {
			k++
		}
		if k >= 3 && (c == '~' || strings.IndexByte(s[k:], '`') < 0) {
			return s[:k]
		}
	}
	return ""
}
