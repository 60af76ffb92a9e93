package value

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// A Media is content without lines: a picture, a document, a block of unknown kind. In an extract a mark replaces it,
// such as "[… image h:0123456789]" or, where nothing can be recalled, "[… image]", in the form of the mark at the end of a shortened result.
type Media struct {
	// by describes its passage: kind, name, target and message.
	by Passage
	// before is the index of the first passage after it.
	before int

	part core.Part // nil if a former extract had the mark
	mark string
}

// image reports whether m is a picture.
func (m *Media) image() bool {
	_, ok := m.part.(core.Image)
	return ok || strings.HasPrefix(m.mark, markStart+imageName+" ") || m.mark == markStart+imageName+"]"
}

// line returns the line that replaces m: its kind, and with handles its handle.
func (m *Media) line(handles bool) string {
	if m.mark != "" || m.part == nil {
		if name, _, ok := strings.Cut(m.mark, " "+handleMark); ok && !handles {
			return name + "]"
		}
		return m.mark
	}
	name := imageName
	if o, ok := m.part.(core.Opaque); ok {
		if name = o.Kind; !isName(name) {
			name = "attachment"
		}
	}
	if !handles {
		return markStart + name + "]"
	}
	return markStart + name + " " + handleMark + core.Handle(m.part) + "]"
}

const (
	markStart = "[" + GapMark + " "
	imageName = "image"
	// maxName is the longest name of a block, in bytes, for a mark, which should cost about a dozen tokens.
	maxName = 24
)

// isName reports whether a mark may contain s, the kind of a block.
func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// readMark parses the output of line.
func readMark(line string) (mark string, ok bool) {
	s, ok := strings.CutPrefix(line, markStart)
	if !ok {
		return "", false
	}
	name, rest, _ := strings.Cut(s, " ")
	if bare, whole := strings.CutSuffix(name, "]"); rest == "" && whole && isName(bare) {
		return line, true
	}
	handle, ok := strings.CutPrefix(rest, handleMark)
	if !ok || !isName(name) || !strings.HasSuffix(handle, "]") || !isHandle(handle[:len(handle)-1]) {
		return "", false
	}
	return line, true
}

// media adds content without lines that follows the last passage.
func (r *reader) media(by Passage, p core.Part) {
	r.c.Media = append(r.c.Media, Media{by: by, before: len(r.c.Passages), part: p})
}
