package outline

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSignature bounds a signature, in bytes: what is longer is data, not a signature.
const maxSignature = 240

// Fold writes the outline of a file for a model to read, or "" if the language is not
// known or nothing is defined:
//
//	# server.go
//	12--40 | type Server struct
//	42--61 | func (s *Server) Serve(l net.Listener) error
//
// The first line has the name of the file, the others the first and last line of a
// definition and its signature on one line, indented as in the file. Of definitions that
// begin on the same line only the outer one is shown.
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

// writeSignature writes a header on one line: indentation as it is, other white space
// collapsed, without the bracket that opens the body.
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
			for room > 0 && !utf8.RuneStart(word[room]) {
				room--
			}
			b.WriteString(strings.ToValidUTF8(word[:room], "\uFFFD"))
			b.WriteString(" …")
			return
		}
		b.WriteString(strings.ToValidUTF8(word, "\uFFFD"))
		written += len(word)
	}
}

// countLines is the number of lines of src.
func countLines(src string) int {
	n := strings.Count(src, "\n")
	if src != "" && src[len(src)-1] != '\n' {
		n++
	}
	return n
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
