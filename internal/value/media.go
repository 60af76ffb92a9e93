package value

import (
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/media"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// A Media is content without lines: a picture, a document, a block of unknown kind. In an extract a mark replaces it,
// such as "[… image 1024x768 h:0123456789]" or, where nothing can be recalled, "[… PDF, 3 pages]", in the form of the mark
// at the end of a shortened result.
type Media struct {
	// by describes its passage: kind, name, target and message.
	by Passage
	// before is the index of the first passage after it.
	before int

	part   core.Part // nil if a former extract had the mark
	label  string    // of part
	medium bool      // part is an image, a document, audio or video
	mark   string
}

// image reports whether m is a picture.
func (m *Media) image() bool {
	_, ok := m.part.(core.Image)
	return ok || strings.HasPrefix(m.mark, markStart+imageName+" ") || m.mark == markStart+imageName+"]"
}

// line returns the line that replaces m: its label, and with handles its handle.
func (m *Media) line(handles bool) string {
	if m.mark != "" || m.part == nil {
		if name, _, ok := strings.Cut(m.mark, " "+handleMark); ok && !handles {
			return name + "]"
		}
		return m.mark
	}
	if !handles {
		return markStart + m.label + "]"
	}
	return markStart + m.label + " " + handleMark + core.Handle(m.part) + "]"
}

const (
	markStart = "[" + GapMark + " "
	imageName = "image"
)

// labelForm is the form of a label: the kind of a medium, or the name of a block, with the size if it is known. With a
// longer name a mark would cost more than about a dozen tokens.
var labelForm = plain.Pattern(`^(?:[a-z_]{1,24}|PDF)(?: \d{1,6}x\d{1,6}|, \d{1,6} (?:pages?|s))?$`)

// Label describes content without lines in a few words: "image 1024x768", "PDF, 3 pages", or its kind. It reports whether it is
// a medium.
func Label(p core.Part) (label string, medium bool) {
	switch p := p.(type) {
	case core.Image:
		return media.OfImage(p.Data).String(), true
	case core.Opaque:
		if all := media.Find([]byte(p.JSON)); len(all) > 0 {
			return all[0].String(), true
		}
		if labelForm().MatchString(p.Kind) {
			return p.Kind, false
		}
	case core.Text, core.ToolCall, core.ToolResult, core.Reasoning:
	}
	return "attachment", false
}

// readMark parses the output of line.
func readMark(line string) (mark string, ok bool) {
	s, starts := strings.CutPrefix(line, markStart)
	s, ends := strings.CutSuffix(s, "]")
	label, handle, handled := strings.Cut(s, " "+handleMark)
	if !starts || !ends || !labelForm().MatchString(label) || handled && !isHandle(handle) {
		return "", false
	}
	return line, true
}

// media adds content without lines that follows the last passage.
func (r *reader) media(by Passage, p core.Part) {
	label, medium := Label(p)
	r.c.Media = append(r.c.Media, Media{by: by, before: len(r.c.Passages), part: p, label: label, medium: medium})
}

// cutText returns the text of a user's message, made of the passages from first up to end, without the lines that are
// not kept. Each gap has a mark on a line of its own; the mark of the largest gap has the number of lines and the
// handle.
func (x extraction) cutText(text string, first, end int, handle string) string {
	gaps := x.gaps(text, first, end)
	largest := 0
	for i, g := range gaps {
		if g.End-g.Start > gaps[largest].End-gaps[largest].Start {
			largest = i
		}
	}
	var b strings.Builder
	at := 0
	for i, g := range gaps {
		b.WriteString(text[at:g.Start])
		if g.Start > 0 && text[g.Start-1] != '\n' {
			b.WriteByte('\n')
		}
		if i == largest {
			gone := text[g.Start:g.End]
			mark := lostMark(strings.Count(strings.Trim(gone, "\n"), "\n")+1, false, handle)
			if x.r.o.Counter.Count(core.Text(mark)) > x.r.o.Counter.Count(core.Text(gone)) {
				mark = GapMark
			}
			b.WriteString(mark)
		} else {
			b.WriteString(GapMark)
		}
		if g.End < len(text) && text[g.End] != '\n' {
			b.WriteByte('\n')
		}
		at = g.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// gaps returns the removed ranges of a text, in order. Lines without a letter or digit between two removed lines are
// removed, too. Text outside of any passage, such as the header of a result, is kept.
func (x extraction) gaps(text string, first, end int) []core.Span {
	var out []core.Span
	at, gap := 0, true // gap: the text before at may be removed
	for l := x.r.c.Passages[first].Lines.Start; l < x.r.c.Passages[end-1].Lines.End; l++ {
		line := x.r.c.Lines[l].Text
		if strings.TrimSpace(line) == "" {
			continue
		}
		i := strings.Index(text[at:], line)
		if i < 0 {
			return nil // the text is not a sequence of its lines, and is kept
		}
		start := at + i
		between := text[at:start]
		at = start + len(line)
		if x.kept(l) {
			gap = false
			continue
		}
		switch {
		case gap && len(out) > 0 && out[len(out)-1].End == start-len(between) && !hasLetter(between):
			out[len(out)-1].End = at
		case gap && len(out) == 0 && !hasLetter(between):
			out = append(out, core.Span{End: at})
		default:
			out = append(out, core.Span{Start: start, End: at})
		}
		gap = true
	}
	if n := len(out); gap && n > 0 && out[n-1].End == at && !hasLetter(text[at:]) {
		out[n-1].End = len(text)
	}
	return wholeElements(text, out)
}

// wholeElements adjusts gaps so that the tags of an element are kept with any of its content: who wrote that is known by them only. Those
// that a program puts into messages keep them even around the mark; any other goes as a whole.
func wholeElements(text string, gaps []core.Span) []core.Span {
	if len(gaps) == 0 {
		return nil
	}
	// in returns the gap with a part of a tag; nil if there is none.
	in := func(tag core.Span) *core.Span {
		k := sort.Search(len(gaps), func(k int) bool { return gaps[k].End > tag.Start })
		if k == len(gaps) || gaps[k].Start >= tag.End {
			return nil
		}
		return &gaps[k]
	}
	var stay []core.Span
	pairs := dialog.Pairs(text)
	if e, ok := dialog.First(text); ok && !slices.Contains(pairs, e) {
		pairs = append(pairs, e)
	}
	for _, e := range pairs {
		open, end := in(e.Open), in(e.Close)
		by := toolcall.Elements()[e.Name].By
		if open != nil && open == end && open.Start <= e.Open.Start && e.Close.End <= open.End && by != toolcall.Program && by != toolcall.Agent {
			continue // all of it goes
		}
		if open != nil || end != nil {
			stay = append(stay, e.Open, e.Close)
		}
	}
	slices.SortFunc(stay, func(a, b core.Span) int { return a.Start - b.Start })
	var out []core.Span
	next := 0
	for _, g := range gaps {
		for ; next < len(stay) && stay[next].Start < g.End; next++ {
			if tag := stay[next]; tag.End > g.Start {
				if hasLetter(text[g.Start:max(g.Start, tag.Start)]) {
					out = append(out, core.Span{Start: g.Start, End: tag.Start})
				}
				g.Start = min(tag.End, g.End)
				if tag.End > g.End {
					break // the tag continues in the next text
				}
			}
		}
		if hasLetter(text[g.Start:g.End]) {
			out = append(out, g)
		}
	}
	return out
}

// hasLetter reports whether there is a letter or digit in s.
func hasLetter(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
