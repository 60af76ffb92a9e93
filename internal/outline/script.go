package outline

import (
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// A script scanner reads JavaScript and TypeScript, with or without JSX.
type script struct {
	parser
}

var (
	jsModifiers = plain.Words("export default declare async abstract public private protected static override readonly accessor get set")
	jsContinues = plain.Words("instanceof in of as satisfies extends is keyof implements")
	jsOpen      = plain.Words("typeof new await return extends keyof instanceof in of as satisfies is readonly infer unique asserts default delete yield async case throw else do")
	jsControl   = plain.Words("if for while switch with catch")
)

func scanScript(l *language, src string) []Definition {
	p := &script{parser{src: src, toks: lex(src, l.is).toks}}
	p.statements(0, len(p.toks), 0, 0)
	return definitions(src, p.defs)
}

// statements reads the statements from i to n.
func (p *script) statements(i, n, depth, level int) {
	read(i, n, level, func(i int) int { return p.statement(i, n, depth, level) })
}

// decorators skips decorators at i.
func (p *script) decorators(i int) int {
	for p.kind(i) == '@' && p.isWord(i+1) {
		i = p.annotation(i)
	}
	return i
}

func (p *script) statement(i, n, depth, level int) int {
	i = p.decorators(i)
	first, exported := i, false
	for p.isWord(i) && jsModifiers[p.text(i)] && (p.isWord(i+1) || p.kind(i+1) == '{' && p.text(i) == "default" || p.kind(i+1) == '(' && p.text(i) == "default" || p.kind(i+1) == '@') {
		exported = exported || p.text(i) == "default"
		if p.text(i) == "async" && p.text(i+1) != "function" {
			break
		}
		i = p.decorators(i + 1)
	}
	switch p.kind(i) {
	case word:
	case '{':
		if exported {
			p.object(i, depth, level)
		} else {
			p.statements(i+1, min(p.closing(i), n), depth, level+1)
		}
		return p.after(i)
	case '(', '!', '+', '-', ';':
		if exported {
			return p.value("default", "function", first, i, n, depth, level)
		}
		return p.expression(first, i, n, depth, level)
	default:
		return p.expression(first, i, n, depth, level)
	}
	t := p.text(i)
	named := p.isWord(i+1) && !p.newline(i+1)
	switch {
	case t == "function" && (p.isWord(i+1) || p.kind(i+1) == '*' || p.kind(i+1) == '('):
		return p.function(first, i, n, depth, exported)
	case t == "class" && (p.isWord(i+1) || p.kind(i+1) == '{'):
		return p.class(first, i, n, depth, level, exported)
	case t == "interface" && named:
		return p.interfaceType(first, i, n, depth)
	case t == "enum" && named:
		j := p.brace(i, n)
		p.add(p.text(i+1), "enum", first, j, p.last(j, n), depth)
		return p.past(j, n)
	case t == "const" && p.text(i+1) == "enum":
		j := p.brace(i, n)
		p.add(p.text(i+2), "enum", first, j, p.last(j, n), depth)
		return p.past(j, n)
	case (t == "namespace" || t == "module") && (named || p.kind(i+1) == literal && !p.newline(i+1)), t == "global" && p.kind(i+1) == '{':
		return p.namespace(first, i, n, depth, level)
	case t == "type" && named:
		end := p.end(i+2, n)
		p.add(p.text(i+1), "type", first, p.typeBody(i, end), p.trim(end), depth)
		return end
	case t == "const" || t == "let" || t == "var":
		return p.variables(first, i+1, n, depth, level)
	case jsControl[t] && (p.kind(i+1) == '(' || p.text(i+1) == "await"):
		j := i + 1
		if p.isWord(j) {
			j++
		}
		if p.kind(j) != '(' {
			return j
		}
		return p.after(j)
	case t == "else" || t == "try" || t == "finally" || t == "do":
		return i + 1
	case t == "import":
		return p.end(i+1, n)
	case p.kind(i+1) == ':' && !exported: // a label
		return i + 2
	case exported:
		return p.value("default", "function", first, i, n, depth, level)
	}
	return p.expression(first, i, n, depth, level)
}

// brace is the next { in [i, n), or n.
func (p *script) brace(i, n int) int {
	for i < n && p.kind(i) != '{' {
		i++
	}
	return i
}

func (p *script) last(j, n int) int {
	if j >= n {
		return n - 1
	}
	return p.closing(j)
}

func (p *script) past(j, n int) int {
	if j >= n {
		return n
	}
	return p.after(j)
}

// trim returns the last token before end that is not a semicolon.
func (p *script) trim(end int) int {
	end--
	for end > 0 && (p.kind(end) == ';' || p.kind(end) == ',') {
		end--
	}
	return end
}

// typeBody is the brace of an object type in a type definition that spans lines, or -1.
func (p *script) typeBody(i, end int) int {
	for k := i; k < end; k++ {
		switch p.kind(k) {
		case '{':
			return k
		case '=':
			if p.kind(k+1) != '{' {
				return k
			}
		case '<':
			if e := p.angle(k); e > 0 {
				k = e - 1
			}
		}
	}
	return -1
}

func (p *script) namespace(first, i, n, depth, level int) int {
	j := p.brace(i, n)
	if j >= n {
		return p.end(i+1, n)
	}
	name := ""
	if p.text(i) == "global" {
		name = "global"
	} else if j > i+1 {
		name = p.src[p.toks[i+1].pos:p.toks[j-1].end]
	}
	for k := i + 1; k < j; k++ {
		if c := p.kind(k); c != word && c != '.' && c != literal {
			return p.end(i+1, n)
		}
	}
	p.add(name, "namespace", first, j, p.closing(j), depth)
	p.statements(j+1, min(p.closing(j), n), depth+1, level+1)
	return p.after(j)
}

// until is the index of the next comma, or after the end of the statement.
func (p *script) until(k, n int) int { return p.stop(k, k, n, true) }

// end is the index after the statement or member that begins at k.
func (p *script) end(k, n int) int { return p.stop(k, k+1, n, false) }

// rest is the index after the statement or member that k may still be in.
func (p *script) rest(k, n int) int { return p.stop(k, k, n, false) }

// stop looks for the end of a statement, from token least on.
func (p *script) stop(k, least, n int, comma bool) int {
	for k < n {
		c := p.kind(k)
		if k >= least && p.toks[k].nl && p.ends(k) {
			return k
		}
		switch c {
		case ';', '}':
			return k + 1
		case ',':
			if comma {
				return k
			}
		}
		k = p.step(k, "([{")
	}
	return n
}

// ends reports whether a statement can end before token k, which begins a line.
func (p *script) ends(k int) bool {
	switch c := p.kind(k - 1); c {
	case word:
		if jsOpen[p.text(k-1)] {
			return false
		}
	case literal, ')', ']', '}', '!', ';':
	case '>':
		if p.is(k-2, "=>") {
			return false
		}
	case '+', '-':
		if p.kind(k-2) != c {
			return false
		}
	default:
		return false
	}
	switch p.kind(k) {
	case word:
		return !jsContinues[p.text(k)]
	case literal, '}', '@', '#', '{', '!', '~':
		return p.src[p.toks[k].pos] != '`'
	case '[', '(', '*':
		return true
	}
	return false
}

// A golang scanner reads Go. The parser of the standard library would also do for files that
// parse, at a fifth of the speed; an agent's files often do not parse.
type golang struct {
	keywords
}

func scanGo(l *language, src string) []Definition {
	p := &golang{keywords{parser{src: src, toks: lex(src, l.is).toks}, &grammar{lines: true}}}
	n := len(p.toks)
	read(0, n, 0, func(i int) int { return p.declaration(i, n) })
	return definitions(src, p.defs)
}

// declaration reads the top-level declaration at i and returns the index after it.
func (p *golang) declaration(i, n int) int {
	switch {
	case p.isWord(i) && p.text(i) == "func":
		if next, ok := p.function(i, i, n, 0, "func"); ok {
			return next
		}
	case p.isWord(i) && p.text(i) == "type" && p.kind(i+1) == '(':
		end := min(p.closing(i+1), n)
		read(i+2, end, 0, func(k int) int { return p.typ(k, k, end) })
		return p.after(i + 1)
	case p.isWord(i) && p.text(i) == "type" && p.isWord(i+1):
		return p.typ(i, i+1, n)
	}
	return p.end(i, n)
}

// typ reads a type whose name is at i.
func (p *golang) typ(first, i, n int) int {
	end := p.end(i, n)
	if !p.isWord(i) {
		return end
	}
	k := i + 1
	if p.kind(k) == '[' && p.isWord(k+1) && p.kind(k+2) != ']' { // type parameters, not an array
		k = p.after(k)
	}
	if p.kind(k) == '=' {
		k++
	}
	kind, open := "type", -1
	if t := p.text(k); (t == "struct" || t == "interface") && p.kind(k+1) == '{' {
		kind, open = t, k+1
	}
	p.add(p.text(i), kind, first, open, p.trim(end), 0)
	if kind != "interface" {
		return end
	}
	body := min(p.closing(open), n)
	for k := open + 1; k < body; {
		next := max(min(p.end(k, body), body), k+1)
		if p.isWord(k) && p.kind(k+1) == '(' {
			p.add(p.text(k), "method", k, -1, p.trim(next), 1)
		}
		k = next
	}
	return end
}

// mayOpen reports whether < at i can open an element, judging by the bytes around it.
func (x *lexer) mayOpen(i int) bool {
	j := i - 1
	for j > 0 && x.src[j] <= ' ' {
		j--
	}
	if j < 0 {
		return true
	}
	if inWord[x.src[j]] {
		k := j
		for k > 0 && inWord[x.src[k-1]] {
			k--
		}
		return j-k < 10 && operandWords[x.src[k:j+1]]
	}
	return strings.IndexByte("(,=?:&|{}[;!>", x.src[j]) >= 0
}

// element returns the end of an element of JSX with all that it contains, or 0. Text in it is
// not code: an apostrophe there is not a quote.
func (x *lexer) element(i, depth int) int {
	src := x.src
	if i+1 >= len(src) || class[src[i+1]] != clsWord && src[i+1] != '>' {
		return 0
	}
	open := 0 // elements
	for j := i; j < len(src); {
		if src[j] != '<' {
			switch src[j] {
			case '{':
				if depth >= maxNesting {
					return x.guess()
				}
				j = x.code(j+1, '}', true, depth+1)
			default:
				j++
			}
			continue
		}
		closing := j+1 < len(src) && src[j+1] == '/'
		k, self := x.tag(j+1, depth)
		if k == 0 {
			return x.guess()
		}
		switch {
		case closing:
			open--
		case !self:
			open++
		}
		if open <= 0 {
			return k
		}
		j = k
	}
	return x.guess()
}

func (x *lexer) guess() int {
	x.guesses++
	return 0
}

// tag returns the end of the rest of a tag. It returns 0 if this is not a tag: type
// parameters, or the end of the file.
func (x *lexer) tag(j, depth int) (end int, self bool) {
	src := x.src
	for first := true; j < len(src); {
		switch c := src[j]; c {
		case '>':
			return j + 1, src[j-1] == '/'
		case '"', '\'':
			k := strings.IndexByte(src[j+1:], c)
			if k < 0 {
				return 0, false
			}
			j += k + 2
		case '{':
			if depth >= maxNesting {
				return 0, false
			}
			j = x.code(j+1, '}', true, depth+1)
		case '/':
			if strings.HasPrefix(src[j:], "/*") {
				j = x.comment(j)
			} else {
				j++
			}
		case '(', ')', ';', '&', '|', '[':
			return 0, false
		case '<': // <Table<Row> columns={…}>
			k := strings.IndexByte(src[j:min(len(src), j+200)], '>')
			if k < 0 {
				return 0, false
			}
			j += k + 1
		case ',':
			return 0, false // <T, U>(…) =>
		case ' ':
			if first && strings.HasPrefix(src[j:], " extends ") {
				return 0, false // <T extends U>(…) =>
			}
			first = false
			j++
		default:
			j++
		}
	}
	return 0, false
}
