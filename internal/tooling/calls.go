package tooling

import "strings"

// maxOpen bounds the work on one text.
const maxOpen = 64

// A Run is a run of an assistant's text: a call if Tool is set, else prose.
type Run struct {
	Text, Tool string
	About      Use
}

// Calls finds the calls in an assistant's text, as agents write them whose tools are called in text.
// The runs, put together, are the text. The cost is linear.
func Calls(text string) []Run {
	var out []Run
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
		name, ok := Tag(text[i:])
		if !ok || !Textual(name) || open[name] {
			continue
		}
		end := callEnd(text[i:], name)
		if end < 0 {
			open[name] = true // none that follows is closed either
			continue
		}
		stop := i + end
		if i > from {
			out = append(out, Run{Text: text[from:i]})
		}
		out = append(out, Run{Text: text[i:stop], Tool: name, About: xmlUse(name, text[i:stop])})
		from, at = stop, stop
	}
	if from < len(text) {
		out = append(out, Run{Text: text[from:]})
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

// Tag returns the name of the tag that s begins with.
func Tag(s string) (string, bool) {
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

// Element returns what is in the first element called name in s, which is not the
// content of a file: those are asked for first or stand last.
func Element(s, name string) string {
	in, _, _ := nextElement(s, name)
	return in
}

// nextElement returns what is in the first element called name in s, and what follows
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

func xmlUse(name, call string) Use {
	u := Use{Family: FamilyOf(name)}
	lines := ParseRange(Element(call, "line_range"))
	for rest := call; ; {
		p, after, ok := nextElement(rest, "path")
		if !ok || p == "" {
			break
		}
		u.Files = append(u.Files, File{Path: Clean(p), Range: lines})
		rest = after
		if u.Family != Read {
			break // what follows is the content of a file
		}
	}
	if len(u.Files) > 1 {
		for k := range u.Files {
			u.Files[k].Range = Several // the results say what they show
		}
	}
	switch {
	case u.Family == Command:
		u.Target = Element(call, "command")
	case u.Family == Search:
		u.Target = Element(call, "regex")
	case len(u.Files) > 0:
		u.Target = u.Files[0].Path
	default:
		u.Target = Element(call, "tool_name")
	}
	return u
}
