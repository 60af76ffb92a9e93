package smart

import (
	"strings"

	"github.com/condensehq/condense/internal/tooling"
)

// maxOpen bounds the work on one text.
const maxOpen = 64

// A called is a run of an assistant's text: a call if tool is set, else prose.
type called struct {
	text, tool string
	about      tooling.Use
}

// splitCalls finds the calls in an assistant's text. The runs, put together, are the text.
func splitCalls(text string) []called {
	var out []called
	from := 0 // where prose began
	open := map[string]bool{}
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			break
		}
		i += at
		at = i + 1
		if i > 0 && text[i-1] != '\n' {
			continue
		}
		name, ok := tag(text[i:])
		if !ok || !tooling.Textual(name) || open[name] {
			continue
		}
		end := callEnd(text[i:], name)
		if end < 0 {
			open[name] = true // none that follows is closed either
			continue
		}
		stop := i + end
		if i > from {
			out = append(out, called{text: text[from:i]})
		}
		out = append(out, called{text: text[i:stop], tool: name, about: xmlUse(name, text[i:stop])})
		from, at = stop, stop
	}
	if from < len(text) {
		out = append(out, called{text: text[from:]})
	}
	return out
}

// callEnd returns the end of the call that s begins with; -1 if it has none. A call that
// writes about calls holds some, each with its end.
func callEnd(s, name string) int {
	open, end := "<"+name+">", "</"+name+">"
	first, depth, at := -1, 0, 0
	for range 2 * maxOpen {
		z := strings.Index(s[at:], end)
		if z < 0 {
			return first
		}
		z += at
		if a := strings.Index(s[at:z], open); a >= 0 {
			depth++
			at += a + len(open)
			continue
		}
		at = z + len(end)
		if first < 0 {
			first = at
		}
		if depth--; depth == 0 {
			return at
		}
	}
	return first
}

// tag returns the name of the tag that s begins with.
func tag(s string) (string, bool) {
	for i := 1; i < len(s) && i < 40; i++ {
		switch c := s[i]; {
		case c == '>':
			return s[1:i], i > 1
		case 'a' <= c && c <= 'z', c == '_':
		default:
			return "", false
		}
	}
	return "", false
}

// element returns what stands in the first element called name in s, which is not the
// content of a file: those are asked for first or stand last.
func element(s, name string) string {
	in, _, _ := nextElement(s, name)
	return in
}

// nextElement returns what stands in the first element called name in s, and what follows
// the element.
func nextElement(s, name string) (in, after string, ok bool) {
	_, s, ok = strings.Cut(s, "<"+name+">")
	if !ok {
		return "", "", false
	}
	in, after, ok = strings.Cut(s, "</"+name+">")
	if !ok {
		return "", "", false
	}
	return strings.TrimSpace(in), after, true
}

func xmlUse(name, call string) tooling.Use {
	u := tooling.Use{Family: tooling.FamilyOf(name)}
	lines := tooling.ParseRange(element(call, "line_range"))
	for rest := call; ; {
		p, after, ok := nextElement(rest, "path")
		if !ok || p == "" {
			break
		}
		u.Files = append(u.Files, tooling.File{Path: tooling.Clean(p), Range: lines})
		rest = after
		if u.Family != tooling.Read {
			break // what follows is the content of a file
		}
	}
	if len(u.Files) > 1 {
		for k := range u.Files {
			u.Files[k].Range = tooling.Several // the results say what they show
		}
	}
	switch {
	case u.Family == tooling.Command:
		u.Target = element(call, "command")
	case u.Family == tooling.Search:
		u.Target = element(call, "regex")
	case len(u.Files) > 0:
		u.Target = u.Files[0].Path
	default:
		u.Target = element(call, "tool_name")
	}
	return u
}

// A shown is a run of the result of a read: one file, if file has a path.
type shown struct {
	text string
	file tooling.File
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

func fileOf(block string) (tooling.File, bool) {
	p := element(block, "path")
	if p == "" {
		return tooling.File{}, false
	}
	f := tooling.File{Path: tooling.Clean(p)}
	runs := strings.Count(block, "\n<content lines=\"")
	_, lines, ok := strings.Cut(block, "<content lines=\"")
	if !ok {
		f.Range = tooling.Several // an error, or a file whose content was not shown
		return f, true
	}
	if runs > 1 {
		f.Range = tooling.Several
		return f, true
	}
	lines, _, _ = strings.Cut(lines, "\"")
	f.Range = tooling.ParseRange(lines)
	if strings.Contains(block, "<notice>") {
		return f, true // only the first lines were shown
	}
	if f.Range.First == 1 {
		f.Range = tooling.Range{} // from its first line to the last one that there was
	}
	return f, true
}

// textError reports whether a result in text is that of a tool that failed.
func textError(s string) bool {
	s = s[:min(len(s), 300)]
	return strings.Contains(s, "<error>") || strings.Contains(s, "The tool execution failed")
}
