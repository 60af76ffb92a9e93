package outline

import "strings"

// A logical line is one line to the language: physical lines that an open bracket, a literal
// or a backslash joins. Blank lines and comments are skipped.
type logical struct {
	pos, end int // without the line break
	indent   int // columns
	first    int // physical lines
	last     int
}

// A head is the definition in a logical line.
type head struct {
	name, kind string
	function   bool // definitions inside are local
	hidden     bool // opens a scope that is not a definition
	closed     bool // ends on the same line
}

// scanIndented finds definitions by indentation. The lexer gives the lines; head parses the definition in a line;
// end, if not "", is the word that closes a definition at its indentation.
func scanIndented(split func(string) []logical, read func(string) (head, bool), end string) func(*language, string) []Definition {
	return func(_ *language, src string) []Definition {
		var defs []Definition
		type frame struct {
			indent, def int
			function    bool
			depth       int
		}
		var open []frame
		prev := 0 // the previous physical line of code
		closeTo := func(k, last int) {
			for _, f := range open[k:] {
				if f.def >= 0 {
					d := &defs[f.def]
					d.End = max(d.End, last)
					d.Body = min(d.Body, d.End+1)
				}
			}
			open = open[:k]
		}
		for _, l := range split(src) {
			text := src[l.pos:l.end]
			k := len(open)
			for k > 0 && (open[k-1].indent > l.indent || end == "" && open[k-1].indent == l.indent) {
				k--
			}
			closeTo(k, prev)
			if k > 0 && open[k-1].indent == l.indent && beginsWith(text, end) {
				closeTo(k-1, l.last)
			}
			prev = l.last
			if len(open) > 0 && open[len(open)-1].function {
				continue
			}
			h, ok := read(text)
			if !ok {
				continue
			}
			depth := 0
			if len(open) > 0 {
				depth = open[len(open)-1].depth
			}
			def := -1
			if !h.hidden {
				def = len(defs)
				defs = append(defs, Definition{Name: h.name, Kind: h.kind, Start: l.first, End: l.last, Body: l.last + 1, Depth: depth})
				depth++
			}
			if !h.closed {
				open = append(open, frame{l.indent, def, h.function, depth})
			}
		}
		closeTo(0, prev)
		// A literal that is never closed includes the last line break.
		lines := countLines(src)
		for i := range defs {
			d := &defs[i]
			d.End = min(d.End, lines)
			d.Body = min(d.Body, d.End+1)
		}
		return nest(defs)
	}
}

// beginsWith reports whether a line begins with the word end, if there is one.
func beginsWith(text, end string) bool {
	rest, begins := strings.CutPrefix(text, end)
	return end != "" && begins && (rest == "" || strings.IndexByte(":?!=", rest[0]) < 0 && !inWord[rest[0]])
}

// indentation returns the columns of the blanks at i, and the offset after them.
func indentation(src string, i int, blanks string) (columns, after int) {
	for ; i < len(src) && strings.IndexByte(blanks, src[i]) >= 0; i++ {
		if src[i] == '\t' {
			columns = columns/8*8 + 8
		} else {
			columns++
		}
	}
	return columns, i
}

// pythonLines splits a text of Python.
func pythonLines(src string) []logical {
	var out []logical
	line := 1
	for i := 0; i < len(src); {
		indent := 0
		indent, i = indentation(src, i, " \t\f")
		begin, code := i, i // of the code
		first, last := line, line
		open := 0
		for i < len(src) {
			c := src[i]
			if c == '\n' {
				i++
				line++
				if open > 0 && !pythonStart(src[i:]) {
					continue
				}
				break
			}
			switch {
			case c == '#':
				if k := strings.IndexByte(src[i:], '\n'); k >= 0 {
					i += k
				} else {
					i = len(src)
				}
				continue
			case c == '"' || c == '\'':
				j := pythonString(src, i)
				line += strings.Count(src[i:j], "\n")
				i = j
				code, last = i, line
				continue
			case c == '\\' && i+1 < len(src):
				i++
				if src[i] == '\r' && i+1 < len(src) && src[i+1] == '\n' {
					i++
				}
				if src[i] == '\n' {
					line++
				}
			case c == '(' || c == '[' || c == '{':
				open++
			case c == ')' || c == ']' || c == '}':
				open = max(open-1, 0)
			}
			i++
			if c > ' ' {
				code, last = i, line
			}
		}
		if code > begin {
			out = append(out, logical{begin, code, indent, first, last})
		}
	}
	return out
}

// pythonStart reports whether a line begins a definition. It cannot do so within brackets, so
// one of them was never closed.
func pythonStart(s string) bool {
	s = strings.TrimLeft(s[:min(len(s), 200)], " \t")
	return strings.HasPrefix(s, "def ") || strings.HasPrefix(s, "class ") || strings.HasPrefix(s, "async def ") || strings.HasPrefix(s, "@")
}

// pythonString is the offset after the literal that begins at i.
func pythonString(src string, i int) int {
	q := src[i]
	if len(src) >= i+3 && src[i+1] == q && src[i+2] == q {
		for j := i + 3; j < len(src); j++ {
			if src[j] == '\\' {
				j++
			} else if src[j] == q && strings.HasPrefix(src[j:], src[i:i+3]) {
				return j + 3
			}
		}
		return len(src)
	}
	for j := i + 1; j < len(src); j++ {
		switch src[j] {
		case '\\':
			j++
		case '\n':
			return j
		case q:
			return j + 1
		}
	}
	return len(src)
}

// pythonHead reads def and class.
func pythonHead(text string) (head, bool) {
	h := head{}
	rest, ok := strings.CutPrefix(text, "async")
	if ok {
		rest = strings.TrimLeft(rest, " \t")
	}
	switch {
	case strings.HasPrefix(rest, "def ") || strings.HasPrefix(rest, "def\t"):
		h.kind, h.function = "def", true
		rest = rest[3:]
	case !ok && (strings.HasPrefix(rest, "class ") || strings.HasPrefix(rest, "class\t")):
		h.kind = "class"
		rest = rest[5:]
	default:
		return h, false
	}
	rest = strings.TrimLeft(rest, " \t")
	k := wordEnd(rest)
	h.name = rest[:k]
	rest = strings.TrimLeft(rest[k:], " \t\\\r\n")
	if h.name == "" || rest == "" || rest[0] != '(' && rest[0] != ':' && rest[0] != '[' {
		return h, false
	}
	return h, true
}
