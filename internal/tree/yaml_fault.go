package tree

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
)

// The YAML parser reports the line where it gave up, which is often not the line with the
// mistake, in terms of its own state. locate reads a refused text again, line by line, for
// common mistakes: indentation, a missing space or colon, quotes and brackets.

// yamlFault returns the mistake in a text that the parser refused with err.
func yamlFault(text []byte, err error) *Error {
	s := yamlScan{lines: strings.Split(string(text), "\n")}
	if fault := s.locate(); fault != nil {
		return fault
	}
	return yamlSyntax(err)
}

var yamlLine = plain.Pattern(`^(?:yaml: )?line (\d+): `)

// plainWords replace the messages of the parser.
var plainWords = []struct{ parser, plain string }{
	{"did not find expected key", "a key is missing, or a line near this one is indented wrongly"},
	{"could not find expected ':'", "a colon is missing after a key"},
	{"mapping values are not allowed in this context", "a colon that is not allowed here; put the string in quotes"},
	{"did not find expected ',' or ']'", "a list that begins here is not closed, or a comma is missing"},
	{"did not find expected ',' or '}'", "a mapping that begins here is not closed, or a comma is missing"},
	{"did not find expected node content", "a value is missing"},
	{"cannot start any token", "put the string in quotes; indent with spaces, never tabs"},
}

func yamlSyntax(err error) *Error {
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	at := Position{Line: 1} // the parser does not mention line 1
	if m := yamlLine().FindStringSubmatch(problem); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		problem = problem[len(m[0]):]
	}
	for _, w := range plainWords {
		if strings.Contains(problem, w.parser) {
			problem = w.plain + " (" + problem + ")"
			break
		}
	}
	return &Error{at, "not valid YAML: " + problem}
}

// A yamlLevel is a mapping or list that the next line may belong to.
type yamlLevel struct {
	indent int
	entry  int  // number of the line of its last entry
	full   bool // this entry has a value on its own line
}

type yamlScan struct {
	lines  []string
	levels []yamlLevel
	block  int  // lines indented more than this belong to a block (| or >); -1 means none
	open   rune // the quote or bracket that is open at the end of the line; 0 means none
	opened Position
	depth  []rune // open brackets
}

func (s *yamlScan) locate() *Error {
	s.block = -1
	for i, line := range s.lines {
		line = strings.TrimRight(line, " \t\r")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		content := line[indent:]
		switch {
		case content == "" || s.block >= 0 && indent > s.block:
			continue
		case content[0] == '#' && s.open == 0:
			continue
		case indent == 0 && (strings.HasPrefix(content, "---") || strings.HasPrefix(content, "...") || content[0] == '%'):
			continue
		case s.open != 0:
			if s.left(content) {
				return s.unclosed()
			}
			s.scan(i+1, indent, content)
			continue
		case content[0] == '\t':
			return yamlFaultAt(i+1, indent, "a tab is used to indent; YAML indents with spaces")
		}
		s.block = -1
		if f := s.line(i+1, indent, content); f != nil {
			return f
		}
	}
	if s.open != 0 {
		return s.unclosed()
	}
	return nil
}

func yamlFaultAt(line, indent int, format string, args ...any) *Error {
	return &Error{Position{line, indent + 1}, "not valid YAML: " + fmt.Sprintf(format, args...)}
}

func (s *yamlScan) unclosed() *Error {
	what := "the bracket"
	if s.open == '"' || s.open == '\'' {
		what = "the quote"
	}
	return &Error{s.opened, fmt.Sprintf("not valid YAML: %s %c that is opened here is never closed", what, s.open)}
}

var (
	// blockKey begins a line of a mapping that is written in lines.
	blockKey = plain.Pattern(`^("[^"]*"|'[^']*'|[^\s"'#&*!|>@%{}\[\],` + "`" + `-][^#]*?|-[^\s#][^#]*?):(\s+|$)`)
	// tight is a key and its value without the space between.
	tight = plain.Pattern(`^([A-Za-z_][\w.-]*|"[^"]*"|'[^']*'):([^\s:/].*)$`)
)

// left reports whether a line in an open bracket looks like one that follows it.
func (s *yamlScan) left(content string) bool {
	return s.open != '"' && s.open != '\'' && blockKey().MatchString(content) && !strings.ContainsAny(content, "]}") && !strings.HasSuffix(content, ",")
}

// line checks a line that is not inside a quote, a bracket or a block.
func (s *yamlScan) line(number, indent int, content string) *Error {
	item := false
	for content == "-" || strings.HasPrefix(content, "- ") {
		if !item {
			if f := s.place(number, indent, content, true); f != nil {
				return f
			}
		}
		item = true
		rest := strings.TrimLeft(content[1:], " ")
		indent += len(content) - len(rest)
		if content = rest; content == "" || content[0] == '#' {
			return nil
		}
	}
	key := blockKey().FindStringSubmatch(content)
	if key == nil {
		return s.bare(number, indent, content, item)
	}
	if item {
		s.levels = append(s.levels, yamlLevel{indent: indent, entry: number})
	} else if f := s.place(number, indent, content, false); f != nil {
		return f
	}
	return s.value(number, indent+len(key[0]), content[len(key[0]):])
}

// place finds the level that an entry belongs to.
func (s *yamlScan) place(number, indent int, content string, item bool) *Error {
	var widths []string
	popped := false
	for n := len(s.levels); n > 0 && s.levels[n-1].indent > indent; n = len(s.levels) {
		popped = true
		s.levels = s.levels[:n-1]
	}
	n := len(s.levels)
	if n > 0 && s.levels[n-1].indent == indent {
		s.levels[n-1].entry, s.levels[n-1].full = number, false
		return nil
	}
	widths = append(widths, plain.Each(s.levels, func(l yamlLevel) string { return strconv.Itoa(l.indent) })...)
	name := quoteLine(strings.TrimRight(content, ":"))
	switch {
	case popped:
		return yamlFaultAt(number, indent, "%s is indented by %s, unlike every line above it; indent it as the lines that it belongs to (%s)",
			name, columns(indent), strings.Join(append(widths, strconv.Itoa(s.deeper(number))), ", "))
	case n > 0 && s.levels[n-1].full && !item:
		return yamlFaultAt(number, indent, "%s is indented more than line %d, which has a value already; indent both by the same", name, s.levels[n-1].entry)
	}
	s.levels = append(s.levels, yamlLevel{indent: indent, entry: number})
	return nil
}

// deeper returns the indentation of the line before line number.
func (s *yamlScan) deeper(number int) int {
	for i := number - 2; i >= 0; i-- {
		if line := s.lines[i]; strings.TrimSpace(line) != "" && strings.TrimSpace(line)[0] != '#' {
			return len(line) - len(strings.TrimLeft(line, " "))
		}
	}
	return 0
}

// quoteLine quotes part of a line, unless it may contain a secret.
func quoteLine(text string) string {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" :\"',[]{}", r) }) {
		if secret.Shown(word) {
			return "this line"
		}
	}
	return strconv.Quote(plain.Abbreviate(text))
}

func columns(n int) string {
	if n == 1 {
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}

// bare checks a line without a key: an element of a list, or the rest of a string.
func (s *yamlScan) bare(number, indent int, content string, item bool) *Error {
	if item {
		return s.value(number, indent, content)
	}
	n := len(s.levels)
	continues := n > 0 && s.levels[n-1].indent < indent
	if m := tight().FindStringSubmatch(content); m != nil {
		return yamlFaultAt(number, indent, "a space is missing after the colon; write %s", quoteLine(m[1]+": "+m[2]))
	}
	if n > 0 && !continues && content[0] != '"' && content[0] != '\'' && content[0] != '[' && content[0] != '{' && content[0] != '}' && content[0] != ']' {
		return yamlFaultAt(number, indent, "%s has no colon; a line is a key, a colon, a space and a value", quoteLine(content))
	}
	s.scan(number, indent, content)
	return nil
}

// value checks the text after a key or a dash.
func (s *yamlScan) value(number, column int, v string) *Error {
	if v == "" || v[0] == '#' {
		return nil
	}
	n := len(s.levels)
	switch v[0] {
	case '&', '!': // an anchor or a tag; its value may be on the next lines
		_, rest, _ := strings.Cut(v, " ")
		return s.value(number, column+len(v)-len(rest), strings.TrimLeft(rest, " "))
	case '|', '>':
		if n > 0 {
			s.block, s.levels[n-1].full = s.levels[n-1].indent, true
		}
		return nil
	case '@', '`', '%':
		return yamlFaultAt(number, column, "a string cannot begin with %c; put it in quotes", v[0])
	case '"', '\'', '[', '{':
		s.scan(number, column, v)
	default:
		text, _, _ := strings.Cut(v, " #")
		if strings.Contains(text, ": ") || strings.HasSuffix(text, ":") {
			return yamlFaultAt(number, column, "%s has a colon in it; put it in quotes", quoteLine(text))
		}
	}
	if n > 0 {
		s.levels[n-1].full = true
	}
	return nil
}

// scan follows quotes and brackets through part of a line.
func (s *yamlScan) scan(number, column int, text string) {
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		inQuote := s.open == '"' || s.open == '\''
		switch {
		case inQuote && s.open == '"' && r == '\\':
			i++
		case inQuote && r == s.open:
			s.open = 0
			if n := len(s.depth); n > 0 {
				s.open = s.depth[n-1]
			}
		case inQuote:
		case r == '#' && (i == 0 || runes[i-1] == ' '):
			return
		case r == '"' || r == '\'':
			if i > 0 && !strings.ContainsRune(" [{,:", runes[i-1]) {
				continue // an apostrophe in a word
			}
			if s.open == 0 {
				s.opened = Position{number, column + i + 1}
			}
			s.open = r
		case r == '[' || r == '{':
			if len(s.depth) == 0 {
				s.opened = Position{number, column + i + 1}
			}
			s.depth, s.open = append(s.depth, r), r
		case (r == ']' || r == '}') && len(s.depth) > 0:
			s.depth = s.depth[:len(s.depth)-1]
			s.open = 0
			if n := len(s.depth); n > 0 {
				s.open = s.depth[n-1]
			}
		}
	}
}
