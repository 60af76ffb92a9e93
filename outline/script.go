package outline

// A script scanner reads JavaScript and TypeScript, with or without JSX.
type script struct {
	parser
}

var (
	jsModifiers = set("export default declare async abstract public private protected static override readonly accessor get set")
	jsContinues = set("instanceof in of as satisfies extends is keyof implements")
	jsOpen      = set("typeof new await return extends keyof instanceof in of as satisfies is readonly infer unique asserts default delete yield async case throw else do")
	jsControl   = set("if for while switch with catch")
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

// decorators skips those at i.
func (p *script) decorators(i int) int {
	for p.kind(i) == '@' && p.isWord(i+1) {
		i += 2
		for p.kind(i) == '.' && p.isWord(i+1) {
			i += 2
		}
		if p.kind(i) == '(' {
			i = p.after(i)
		}
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

// trim is the last token of what ends before end, without semicolons.
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

// function reads a declaration whose keyword is at i.
func (p *script) function(first, i, n, depth int, exported bool) int {
	k := i + 1
	if p.kind(k) == '*' {
		k++
	}
	name := ""
	if p.isWord(k) {
		name = p.text(k)
		k++
	} else if exported {
		name = "default"
	}
	open, end := p.signature(k, n)
	if open < 0 {
		p.add(name, "function", first, -1, p.trim(end), depth)
		return end
	}
	p.add(name, "function", first, open, p.closing(open), depth)
	return p.after(open)
}

// signature reads type parameters, parameters, result and body from k. It answers the
// brace that opens the body, or -1 and the index after the statement.
func (p *script) signature(k, n int) (open, end int) {
	if p.kind(k) == '<' {
		e := p.angle(k)
		if e == 0 {
			return -1, p.end(k, n)
		}
		k = e
	}
	if p.kind(k) != '(' {
		return -1, p.end(k, n)
	}
	k = p.after(k)
	if p.kind(k) == ':' {
		k = p.typeEnd(k+1, n)
	}
	if p.kind(k) == '{' && k < n {
		return k, 0
	}
	return -1, p.rest(k, n)
}

// typeEnd is the index after the type that begins at k.
func (p *script) typeEnd(k, n int) int {
	operand := true // an operand is wanted
	for k < n {
		switch c := p.kind(k); {
		case c == '|' || c == '&' || c == '?' || p.is(k, "=>") || c == '.':
			if p.is(k, "=>") {
				k++
			}
			operand = true
		case c == ':' && !operand: // of a conditional type
			operand = true
		case operand && (c == '(' || c == '{' || c == '['):
			operand = false
			k = p.after(k)
			continue
		case c == '[' && !operand && !p.newline(k):
			k = p.after(k)
			continue
		case c == '<':
			e := p.angle(k)
			if e == 0 {
				return k
			}
			k = e
			continue
		case c == '-' && operand:
		case c == literal && operand:
			operand = false
		case c == word:
			switch t := p.text(k); {
			case t == "extends" || t == "is":
				operand = true
			case !operand:
				return k
			case t == "typeof" || t == "keyof" || t == "unique" || t == "readonly" || t == "infer" || t == "new" || t == "abstract":
			case t == "asserts" && p.isWord(k+1):
			default:
				operand = false
			}
		default:
			return k
		}
		k++
	}
	return n
}

// class reads a declaration or expression whose keyword is at i.
func (p *script) class(first, i, n, depth, level int, exported bool) int {
	k := i + 1
	name := ""
	if p.isWord(k) && p.text(k) != "extends" && p.text(k) != "implements" {
		name = p.text(k)
		k++
	} else if exported {
		name = "default"
	}
	open := p.heritage(k, n)
	if open >= n {
		return n
	}
	p.add(name, "class", first, open, p.closing(open), depth)
	inner := depth
	if name != "" {
		inner++
	}
	p.members(open+1, min(p.closing(open), n), inner, level+1)
	return p.after(open)
}

// heritage is the brace that opens the body of a class or interface, from after its name.
func (p *script) heritage(k, n int) int {
	for k < n && p.kind(k) != '{' && p.kind(k) != ';' {
		switch p.kind(k) {
		case '<':
			if e := p.angle(k); e > 0 {
				k = e
				continue
			}
		case '(', '[':
			k = p.after(k)
			continue
		}
		k++
	}
	if p.kind(k) != '{' {
		return n
	}
	return k
}

func (p *script) interfaceType(first, i, n, depth int) int {
	open := p.heritage(i+2, n)
	if open >= n {
		return i + 2
	}
	p.add(p.text(i+1), "interface", first, open, p.closing(open), depth)
	end := min(p.closing(open), n)
	for k := open + 1; k < end; {
		next := p.end(k, end)
		m := k
		for p.isWord(m) && (p.text(m) == "get" || p.text(m) == "set") && (p.isWord(m+1) || p.kind(m+1) == literal) {
			m++
		}
		name := m
		switch p.kind(m) {
		case word, literal:
			m++
			if p.kind(m) == '?' {
				m++
			}
			if p.kind(m) == '<' {
				if e := p.angle(m); e > 0 {
					m = e
				}
			}
			if p.kind(m) == '(' && p.text(name) != "new" {
				p.add(p.text(name), "method", k, -1, p.trim(next), depth+1)
			}
		}
		k = max(next, k+1)
	}
	return p.after(open)
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

// variables reads the declarators from i on.
func (p *script) variables(first, i, n, depth, level int) int {
	for {
		start := i
		if first >= 0 {
			start, first = first, -1
		}
		if !p.isWord(i) { // a pattern
			return p.end(i, n)
		}
		name := p.text(i)
		k := i + 1
		if p.kind(k) == '!' {
			k++
		}
		if p.kind(k) == ':' {
			k = p.typeEnd(k+1, n)
		}
		if p.kind(k) == '=' && !p.is(k, "=>") {
			k = p.value(name, "function", start, k+1, n, depth, level)
			if p.kind(k) != ',' {
				return k
			}
		}
		if p.kind(k) != ',' || k >= n {
			return p.rest(k, n)
		}
		i = k + 1
	}
}

// value reads an expression from k that is given to name, and adds a definition if it is a
// function or a class. It answers the index after it, at a comma or after the statement.
func (p *script) value(name, kind string, first, k, n, depth, level int) int {
	if p.kind(k) == '{' {
		p.object(k, depth, level)
		return p.until(p.after(k), n)
	}
	if p.text(k) == "class" && p.isWord(k) {
		open := p.heritage(k+1, n)
		if open >= n {
			return n
		}
		p.add(name, "class", first, open, p.closing(open), depth)
		p.members(open+1, min(p.closing(open), n), depth+1, level+1)
		return p.until(p.after(open), n)
	}
	open, end, ok := p.lambda(k, n)
	if !ok {
		// a = b = function …
		m := k
		for p.isWord(m) && p.kind(m+1) == '.' {
			m += 2
		}
		if p.isWord(m) && p.kind(m+1) == '=' && p.kind(m+2) != '=' && !p.is(m+1, "=>") && level < maxDepth {
			return p.value(name, kind, first, m+2, n, depth, level+1)
		}
		return p.until(k, n)
	}
	if open >= 0 {
		p.add(name, kind, first, open, p.closing(open), depth)
		return p.until(p.after(open), n)
	}
	p.add(name, kind, first, -1, p.trim(end), depth)
	return end
}

// lambda reads a function expression or arrow function from k: the brace of its body, or
// -1 and the index after the expression that is its body.
func (p *script) lambda(k, n int) (open, end int, ok bool) {
	if p.text(k) == "async" && p.isWord(k) && !p.is(k+1, "=>") {
		k++
	}
	if p.text(k) == "function" && p.isWord(k) {
		k++
		if p.kind(k) == '*' {
			k++
		}
		if p.isWord(k) {
			k++
		}
		open, end = p.signature(k, n)
		return open, end, open >= 0
	}
	switch p.kind(k) {
	case '<':
		if e := p.angle(k); e > 0 && p.kind(e) == '(' {
			k = e
		} else {
			return 0, 0, false
		}
		fallthrough
	case '(':
		k = p.after(k)
		if p.kind(k) == ':' {
			k = p.arrowType(k+1, n)
		}
	case word:
		k++
	default:
		return 0, 0, false
	}
	if !p.is(k, "=>") || k >= n {
		return 0, 0, false
	}
	k += 2
	if p.kind(k) == '{' && k < n {
		return k, 0, true
	}
	return -1, p.until(k, n), true
}

// arrowType is like typeEnd for the result of an arrow function, where the arrow after a
// type in round brackets is part of the type only if another one follows.
func (p *script) arrowType(k, n int) int {
	depth := 0
	arrow := -1
	for m := k; m < n; {
		switch c := p.kind(m); c {
		case '(', '[':
			m = p.after(m)
			continue
		case '{':
			// Either an object type, or the body after the arrow.
			if arrow == m-2 && depth == 0 {
				return arrow
			}
			m = p.after(m)
			continue
		case '<':
			if e := p.angle(m); e > 0 {
				m = e
				continue
			}
			return m
		case ';', ',', ')', ']', '}':
			if arrow >= 0 {
				return arrow
			}
			return m
		}
		if p.is(m, "=>") {
			if arrow < 0 || p.kind(arrow-1) == ')' {
				arrow = m
			}
			if p.kind(arrow-1) != ')' || p.kind(m+2) == '{' {
				return arrow
			}
			m += 2
			continue
		}
		if arrow >= 0 && p.newline(m) && p.isWord(m) {
			return arrow
		}
		m++
	}
	return k
}

// object reads the functions in an object literal.
func (p *script) object(open, depth, level int) {
	if level > maxDepth {
		return
	}
	n := min(p.closing(open), len(p.toks))
	for i := open + 1; i < n; {
		i = max(p.entry(i, n, depth, level+1), i+1)
	}
}

func (p *script) entry(i, n, depth, level int) int {
	first := i
	for p.isWord(i) && (p.text(i) == "async" || p.text(i) == "get" || p.text(i) == "set") &&
		(p.isWord(i+1) || p.kind(i+1) == literal || p.kind(i+1) == '*' || p.kind(i+1) == '[') {
		i++
	}
	if p.kind(i) == '*' {
		i++
	}
	name, k := p.key(i)
	if name == "" {
		return p.comma(i, n)
	}
	switch p.kind(k) {
	case '(', '<':
		if open, _ := p.signature(k, n); open >= 0 {
			p.add(name, "method", first, open, p.closing(open), depth)
			return p.comma(p.after(open), n)
		}
	case ':':
		if p.kind(k+1) == '{' {
			p.object(k+1, depth, level)
			return p.comma(p.after(k+1), n)
		}
		if open, end, ok := p.lambda(k+1, n); ok {
			if open < 0 {
				end = p.comma(k+1, n)
				p.add(name, "function", first, -1, p.trim(end), depth)
				return end
			}
			p.add(name, "function", first, open, p.closing(open), depth)
			return p.comma(p.after(open), n)
		}
	}
	return p.comma(k, n)
}

// key reads the name of a member at i, and answers the index after it.
func (p *script) key(i int) (name string, after int) {
	switch p.kind(i) {
	case word, literal:
		return p.text(i), i + 1
	case '#':
		if p.isWord(i + 1) {
			return "#" + p.text(i+1), i + 2
		}
	case '[':
		k := p.after(i)
		return p.src[p.toks[i].pos:p.toks[k-1].end], k
	}
	return "", i
}

// comma is the index after the next comma in [k, n).
func (p *script) comma(k, n int) int {
	for k < n {
		switch p.kind(k) {
		case ',':
			return k + 1
		case '(', '[', '{':
			k = p.after(k)
			continue
		}
		k++
	}
	return n
}

// members reads the body of a class.
func (p *script) members(i, n, depth, level int) {
	if level > maxDepth {
		return
	}
	for i < n {
		i = max(p.member(i, n, depth, level), i+1)
	}
}

func (p *script) member(i, n, depth, level int) int {
	i = p.decorators(i)
	if p.kind(i) == ';' {
		return i + 1
	}
	first := i
	for p.isWord(i) && jsModifiers[p.text(i)] {
		next := p.kind(i + 1)
		if next == '(' || next == '<' || next == '=' || next == ';' || next == ':' || next == '?' || next == '!' || next == 0 || i+1 >= n {
			break // a member of that name
		}
		if next == '{' {
			return p.after(i + 1) // static { … }
		}
		i = p.decorators(i + 1)
	}
	if p.kind(i) == '*' {
		i++
	}
	name, k := p.key(i)
	if name == "" {
		return p.end(i, n)
	}
	if p.kind(k) == '?' || p.kind(k) == '!' {
		k++
	}
	switch p.kind(k) {
	case '(', '<':
		open, end := p.signature(k, n)
		if open < 0 {
			p.add(name, "method", first, -1, p.trim(end), depth)
			return end
		}
		p.add(name, "method", first, open, p.closing(open), depth)
		return p.after(open)
	case ':':
		k = p.typeEnd(k+1, n)
	}
	if p.kind(k) == '=' {
		k = p.value(name, "method", first, k+1, n, depth, level)
		if p.kind(k) != ',' {
			return k
		}
	}
	return p.rest(k, n)
}

// expression reads an expression statement from i.
func (p *script) expression(first, i, n, depth, level int) int {
	if name, k := p.target(i, n); name != "" {
		k = p.value(name, "function", first, k, n, depth, level)
		if p.kind(k) != ',' {
			return k
		}
		return p.end(k, n)
	}
	p.wrapper(i, n, depth, level)
	return p.end(i, n)
}

// target reads what an assignment at i is to: the last name of a.b.c = , and the index
// after the sign.
func (p *script) target(i, n int) (name string, after int) {
	for k := i; k < n; {
		switch p.kind(k) {
		case word:
			name = p.text(k)
			k++
		case '.':
			k++
		case '[':
			if k == i {
				return "", 0
			}
			e := p.after(k)
			name = p.src[p.toks[k].pos:p.toks[e-1].end]
			k = e
		case '=':
			if p.kind(k+1) == '=' || p.is(k, "=>") {
				return "", 0
			}
			return name, k + 1
		default:
			return "", 0
		}
	}
	return "", 0
}

// wrapper looks into a function that is called where it stands, as modules were written
// before there were modules: (function () { … })().
func (p *script) wrapper(i, n, depth, level int) {
	if k := p.kind(i); k == '!' || k == '+' || k == '-' || k == ';' || p.text(i) == "void" && k == word {
		i++
	}
	if p.kind(i) == '(' && i < n {
		if open, _, ok := p.lambda(i+1, n); ok && open >= 0 {
			p.statements(open+1, min(p.closing(open), n), depth, level+1)
		}
	}
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
