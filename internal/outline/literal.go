package outline

import (
	"strings"
	"unicode/utf8"
)

// skip returns the end of a comment (kind 0) or a literal that begins at i, or i if there is
// neither. Depth is the nesting of literals in code in literals.
func (x *lexer) skip(i, depth int) (end int, kind byte) {
	src := x.src
	n := len(src)
	switch src[i] {
	case '/':
		if i+1 < n && src[i+1] == '/' {
			j := x.line(i, n)
			for x.is&directives != 0 && j < n && strings.HasSuffix(strings.TrimSuffix(src[i:j], "\r"), `\`) {
				j = x.line(j+1, n)
			}
			return j, 0
		}
		if i+1 < n && src[i+1] == '*' {
			return x.comment(i), 0
		}
	case '#':
		if x.is&hashQuotes != 0 {
			if j := x.hashQuoted(i, i); j > 0 {
				return j, literal
			}
		}
		if x.is&hashComments != 0 && (x.is&attributes == 0 || i+1 >= n || src[i+1] != '[') {
			return x.line(i, n), 0
		}
	case '"':
		return x.double(i, depth), literal
	case '\'':
		return x.single(i)
	case '`':
		if x.is&backquoteRaw != 0 {
			if j := strings.IndexByte(src[i+1:], '`'); j >= 0 {
				return i + j + 2, literal
			}
			return n, literal
		}
		if x.is&templates != 0 {
			return x.quoted(i+1, '`', "${", '}', true, depth), literal
		}
	case '@', '$':
		if x.is&verbatim != 0 {
			return x.atString(i, depth)
		}
	case '<':
		if x.is&hereDocs != 0 && strings.HasPrefix(src[i:], "<<<") && x.guesses < maxGuesses {
			if j := x.hereDoc(i + 3); j > 0 {
				return j, literal
			}
		}
	}
	return i, 0
}

// comment returns the end of a comment in stars.
func (x *lexer) comment(i int) int {
	if x.is&nestedComments == 0 {
		if j := strings.Index(x.src[i+2:], "*/"); j >= 0 {
			return i + 2 + j + 2
		}
		return len(x.src)
	}
	depth := 1
	for i += 2; i < len(x.src); i++ {
		switch {
		case strings.HasPrefix(x.src[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(x.src[i:], "*/"):
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(x.src)
}

// double returns the end of the literal that begins with a double quote.
func (x *lexer) double(i, depth int) int {
	if x.is&tripleQuotes != 0 && strings.HasPrefix(x.src[i:], `"""`) {
		q := 3
		if x.is&verbatim != 0 {
			for i+q < len(x.src) && x.src[i+q] == '"' {
				q++
			}
		}
		return x.triple(i, q)
	}
	switch {
	case x.is&dollarCode != 0:
		return x.quoted(i+1, '"', "${", '}', x.is&multiline != 0, depth)
	case x.is&parenCode != 0:
		return x.quoted(i+1, '"', `\(`, ')', x.is&multiline != 0, depth)
	}
	return x.quoted(i+1, '"', "", 0, x.is&multiline != 0, depth)
}

// triple returns the end of a text block in q double quotes.
func (x *lexer) triple(i, q int) int {
	src := x.src
	fence := src[i : i+q]
	for j := i + q; j < len(src); {
		k := strings.IndexAny(src[j:], `"\`)
		if k < 0 {
			break
		}
		j += k
		switch {
		case src[j] == '\\' && x.is&verbatim == 0:
			j += 2
		case strings.HasPrefix(src[j:], fence):
			j += q
			for j < len(src) && src[j] == '"' { // """a""""
				j++
			}
			return j
		default:
			j++
		}
	}
	return len(src)
}

// quoted returns the end of a literal up to its quote. Code in it begins with opener and ends with
// closer. A literal that may not span lines ends before the line break.
func (x *lexer) quoted(i int, quote byte, opener string, closer byte, lines bool, depth int) int {
	src := x.src
	for i < len(src) {
		c := src[i]
		switch {
		case opener != "" && c == opener[0] && strings.HasPrefix(src[i:], opener) && depth < maxNesting:
			i = x.code(i+len(opener), closer, lines, depth+1)
		case c == '\\':
			i++
			if i < len(src) && src[i] == '\r' && i+1 < len(src) && src[i+1] == '\n' {
				i++
			}
			i++
		case c == quote:
			return i + 1
		case c == '\n' && !lines:
			return i
		default:
			i++
		}
	}
	return len(src)
}

// code returns the end of code within a literal, up to and including the bracket that closes
// it. Brackets of other kinds are ignored.
func (x *lexer) code(i int, closer byte, lines bool, depth int) int {
	src := x.src
	opener := byte('{')
	if closer == ')' {
		opener = '('
	}
	for open := 1; i < len(src); {
		if j, _ := x.skip(i, depth); j > i {
			i = j
			continue
		}
		switch c := src[i]; {
		case c == opener:
			open++
		case c == closer:
			open--
			if open == 0 {
				return i + 1
			}
		case c == '\n' && !lines:
			return i
		case c == '<' && x.is&jsx != 0 && x.guesses < maxGuesses && depth < maxNesting && x.mayOpen(i):
			if j := x.element(i, depth+1); j > 0 {
				i = j
				continue
			}
		}
		i++
	}
	return i
}

// single returns the end of the literal that begins with an apostrophe.
func (x *lexer) single(i int) (end int, kind byte) {
	src := x.src
	if x.is&lifetimes != 0 {
		switch {
		case i+1 >= len(src):
			return i + 1, literal
		case src[i+1] == '\\':
			return x.quoted(i+1, '\'', "", 0, false, 0), literal
		}
		_, size := utf8.DecodeRuneInString(src[i+1:])
		if i+1+size < len(src) && src[i+1+size] == '\'' {
			return i + size + 2, literal
		}
		j := i + 1
		for j < len(src) && inWord[src[j]] {
			j++
		}
		return j, literal
	}
	return x.quoted(i+1, '\'', "", 0, x.is&multiline1 != 0, 0), literal
}

// prefixed returns the end of a raw literal whose prefix is the word from i to j, or 0.
func (x *lexer) prefixed(i, j int) int {
	src := x.src
	prefix := src[i:j]
	switch {
	case x.is&rawParens != 0 && src[j] == '"' && strings.HasSuffix(prefix, "R") && len(prefix) <= 3:
		k := j + 1
		for k < len(src) && k-j <= 17 && src[k] != '(' && src[k] != '"' && src[k] > ' ' {
			k++
		}
		if k >= len(src) || src[k] != '(' {
			return 0
		}
		fence := ")" + src[j+1:k] + `"`
		if e := strings.Index(src[k:], fence); e >= 0 {
			return k + e + len(fence)
		}
		return len(src)
	case x.is&rawHashes != 0 && (prefix == "r" || prefix == "br" || prefix == "cr"):
		return x.hashQuoted(i, j)
	}
	return 0
}

// hashQuoted returns the end of a raw literal whose hashes begin at j, or 0.
func (x *lexer) hashQuoted(i, j int) int {
	src := x.src
	k := j
	for k < len(src) && src[k] == '#' && k-j < 256 {
		k++
	}
	if k >= len(src) || src[k] != '"' || i == j && k == j {
		return 0
	}
	fence := `"` + src[j:k]
	if e := strings.Index(src[k+1:], fence); e >= 0 {
		return k + 1 + e + len(fence)
	}
	return len(src)
}

// atString returns the end of a literal of C# with a prefix of @ and $.
func (x *lexer) atString(i, depth int) (end int, kind byte) {
	src := x.src
	j := i
	at, dollars := false, 0
	for j < len(src) && j-i < 8 && (src[j] == '@' || src[j] == '$') {
		at = at || src[j] == '@'
		if src[j] == '$' {
			dollars++
		}
		j++
	}
	if j >= len(src) || src[j] != '"' {
		return i, 0
	}
	if strings.HasPrefix(src[j:], `"""`) && (!at || dollars > 1) {
		return x.double(j, depth), literal
	}
	for j++; j < len(src); {
		c := src[j]
		switch {
		case c == '"' && at && j+1 < len(src) && src[j+1] == '"', c == '{' && dollars > 0 && j+1 < len(src) && src[j+1] == '{':
			j += 2
		case c == '"':
			return j + 1, literal
		case c == '\\' && !at:
			j += 2
		case c == '{' && dollars > 0 && depth < maxNesting:
			j = x.code(j+1, '}', at, depth+1)
		case c == '\n' && !at:
			return j, literal
		default:
			j++
		}
	}
	return len(src), literal
}

// hereDoc returns the end of a here document of PHP whose name begins at i, or 0.
func (x *lexer) hereDoc(i int) int {
	src := x.src
	eol := x.line(i, len(src))
	name := strings.Trim(src[i:eol], " \t\r'\"")
	if name == "" || class[name[0]] != clsWord {
		return 0
	}
	for eol < len(src) {
		begin := eol + 1
		eol = x.line(min(begin, len(src)), len(src))
		if begin > eol {
			break
		}
		text := strings.TrimLeft(src[begin:eol], " \t")
		if strings.HasPrefix(text, name) && (len(text) == len(name) || !inWord[text[len(name)]]) {
			return eol - len(text) + len(name)
		}
	}
	x.guesses++
	return 0
}

// regex returns the end of a regular expression on one line, or 0.
func (x *lexer) regex(i int) int {
	src := x.src
	inSet := false
	for j := i + 1; j < len(src); j++ {
		switch src[j] {
		case '\\':
			j++
		case '[':
			inSet = true
		case ']':
			inSet = false
		case '/':
			if inSet {
				continue
			}
			return j + 1 + wordEnd(src[j+1:])
		case '\n':
			x.noRegex = j
			return 0
		}
	}
	x.noRegex = len(src)
	return 0
}
