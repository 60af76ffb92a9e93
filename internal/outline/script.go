package outline

import "github.com/condensehq/condense/internal/plain"

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
	if level > maxDepth {
		return
	}
	for i < n {
		i = max(p.statement(i, n, depth, level), i+1)
	}
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
		case ';':
			return k + 1
		case ',':
			if comma {
				return k
			}
		case '}':
			return k + 1
		case '(', '[', '{':
			k = p.after(k)
			continue
		}
		k++
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
