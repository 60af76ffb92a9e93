package value

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/media"
	"github.com/condensehq/condense/internal/plain"
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
