package smart

import (
	"strings"

	"github.com/condensehq/condense/internal/dialog"
)

// maxOpen bounds the work on one text.
const maxOpen = 64

// A shown is a run of the result of a read: one file, if file has a path.
type shown struct {
	text string
	file dialog.File
}

// splitFiles finds the files in what a read answered, in Roo-Code's form:
//
//	<file><path>src/a.ts</path>
//	<content lines="1-50">
//	…
//	</content>
//	</file>
//
// The runs, put together, are the text. A text that is not of this form is one run of no
// file.
func splitFiles(text string) []shown {
	const open, end = "<file>", "</file>"
	if !strings.Contains(text, open) {
		return []shown{{text: text}}
	}
	var out []shown
	from := 0
	for at, tries := 0, 0; tries < maxOpen; tries++ {
		i := strings.Index(text[at:], open)
		if i < 0 {
			break
		}
		i += at
		at = i + len(open)
		block := text[i:]
		if n := strings.Index(block, "\n"+end); n >= 0 {
			block = block[:n+1+len(end)]
		} else if n := strings.Index(block, end); n >= 0 {
			block = block[:n+len(end)]
		} else {
			break
		}
		f, ok := fileOf(block)
		if !ok {
			continue
		}
		if i > from {
			out = append(out, shown{text: text[from:i]})
		}
		out = append(out, shown{text: block, file: f})
		from, at = i+len(block), i+len(block)
	}
	if from < len(text) {
		out = append(out, shown{text: text[from:]})
	}
	return out
}

func fileOf(block string) (dialog.File, bool) {
	p := dialog.Element(block, "path")
	if p == "" {
		return dialog.File{}, false
	}
	f := dialog.File{Path: dialog.CleanPath(p)}
	runs := strings.Count(block, "\n<content lines=\"")
	_, lines, ok := strings.Cut(block, "<content lines=\"")
	if !ok {
		f.Range = dialog.SeveralRanges // an error, or a file whose content was not shown
		return f, true
	}
	if runs > 1 {
		f.Range = dialog.SeveralRanges
		return f, true
	}
	lines, _, _ = strings.Cut(lines, "\"")
	f.Range = dialog.ParseRange(lines)
	if strings.Contains(block, "<notice>") {
		return f, true // only the first lines were shown
	}
	if f.Range.First == 1 {
		f.Range = dialog.LineRange{} // from its first line to the last one that there was
	}
	return f, true
}

// textError reports whether a result in text is that of a tool that failed.
func textError(s string) bool {
	s = s[:min(len(s), 300)]
	return strings.Contains(s, "<error>") || strings.Contains(s, "The tool execution failed")
}
