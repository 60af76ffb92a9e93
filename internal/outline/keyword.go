package outline

import "strings"

// A grammar describes how a language with a keyword for every definition uses them.
type grammar struct {
	// functions and types map a keyword to the kind it defines. The members of a type are
	// read, the statements of a function are not.
	functions, types map[string]string
	// plain have no body that is read: they end at the end of the statement.
	plain map[string]string
	// modifiers may precede a keyword in a statement, with arguments in round brackets.
	modifiers map[string]bool
	// lines says that a line break ends a statement that could end there.
	lines bool
	// blocks says that functions may be defined in the branches of an if.
	blocks bool
}

// A keywords scanner reads languages with a keyword for every definition.
type keywords struct {
	parser
	*grammar
}

func scanKeywords(g *grammar) func(*language, string) []Definition {
	return func(l *language, src string) []Definition {
		p := &keywords{parser{src: src, toks: lex(src, l.is).toks}, g}
		p.scope(0, len(p.toks), 0, 0)
		return definitions(src, p.defs)
	}
}

func (p *keywords) scope(i, n, depth, level int) {
	read(i, n, level, func(i int) int { return p.statement(i, n, depth, level) })
}

// prelude skips attributes, annotations and the rest of the previous statement.
func (p *keywords) prelude(i, n int) int {
	for i < n {
		switch p.kind(i) {
		case ';', '}', ')', ']', ',':
			i++
		case '#':
			if p.kind(i+1) == '!' {
				i++
			}
			if p.kind(i+1) != '[' {
				return i + 1
			}
			i = p.after(i + 1)
		case '@':
			i += 2
			for p.kind(i) == '.' || p.kind(i) == ':' {
				i += 2
			}
			if p.kind(i) == '(' && !p.newline(i) {
				i = p.after(i)
			}
		default:
			return i
		}
	}
	return i
}

func (p *keywords) statement(i, n, depth, level int) int {
	i = p.prelude(i, n)
	first := i
	for i < n && p.isWord(i) && p.modifiers[p.text(i)] && (p.types[p.text(i)] == "" || p.keyword(i+1)) {
		i++
		if p.kind(i) == '(' && !p.newline(i) {
			i = p.after(i)
		}
		if p.kind(i) == literal && p.text(i-1) == "extern" {
			i++
		}
		if p.kind(i) == '@' {
			i = p.prelude(i, n)
		}
	}
	if !p.isWord(i) || i >= n {
		return p.skipStatement(i, n, depth, level, first)
	}
	t := p.text(i)
	if kind, ok := p.functions[t]; ok {
		if next, ok := p.function(first, i, n, depth, kind); ok {
			return next
		}
	}
	if kind, ok := p.types[t]; ok {
		if next, ok := p.typ(first, i, n, depth, level, kind); ok {
			return next
		}
	}
	if kind, ok := p.plain[t]; ok && p.isWord(i+1) {
		end := p.end(i+1, n)
		p.add(p.text(i+1), kind, first, -1, p.trim(end), depth)
		return end
	}
	return p.skipStatement(i, n, depth, level, first)
}

// keyword reports whether the word at i has a meaning of its own at the beginning of a
// statement: class func x() is a function, class x a class.
func (p *keywords) keyword(i int) bool {
	t := p.text(i)
	return p.isWord(i) && (p.modifiers[t] || p.functions[t] != "" || p.types[t] != "" || t == "var" || t == "let")
}

// skipStatement skips a statement that defines nothing here. It reads the blocks of extern and
// of namespaces.
func (p *keywords) skipStatement(i, n, depth, level, first int) int {
	if t := p.text(i); p.blocks && (t == "if" || t == "else" || t == "elseif") && i < n {
		if i++; p.kind(i) == '(' {
			i = p.after(i)
		}
		if p.kind(i) == '{' {
			p.scope(i+1, min(p.closing(i), n), depth, level+1)
			return p.after(i)
		}
		return i
	}
	if p.kind(i) == '{' && i < n {
		if p.text(first) == "extern" || p.text(first) == "unsafe" {
			p.scope(i+1, min(p.closing(i), n), depth, level+1)
		}
		return p.after(i)
	}
	return p.end(i, n)
}

// function reads a function whose keyword is at i.
func (p *keywords) function(first, i, n, depth int, kind string) (next int, ok bool) {
	k := i + 1
	for p.kind(k) == '&' {
		k++
	}
	if p.kind(k) == '<' { // fun <T> name
		k = max(p.angle(k), k)
	}
	if p.kind(k) == '(' && p.text(i) == "func" && p.isWord(p.after(k)) { // a receiver
		k, kind = p.after(k), "method"
	}
	name := ""
	switch t := p.text(i); {
	case t == "init" || t == "deinit" || t == "subscript":
		name = t
		k = i + 1
		for p.kind(k) == '?' || p.kind(k) == '!' {
			k++
		}
		if c := p.kind(k); c != '(' && c != '<' && (c != '{' || t != "deinit") {
			return 0, false
		}
	case p.isWord(k):
		name = p.text(k)
		k++
		for p.kind(k) == '.' || p.kind(k) == '<' || p.kind(k) == '?' { // fun Type<T>.name
			switch p.kind(k) {
			case '<':
				e := p.angle(k)
				if e == 0 || p.kind(e) != '.' && p.kind(e) != '?' {
					goto parameters
				}
				k = e
			case '?':
				k++
			default:
				if !p.isWord(k + 1) {
					goto parameters
				}
				name = p.text(k + 1)
				k += 2
			}
		}
	case kind == "func" && p.kind(k) != '(' && p.kind(k) != 0:
		m := k // an operator
		for m < n && p.kind(m) != '(' && m < k+4 {
			m++
		}
		if p.kind(m) != '(' {
			return 0, false
		}
		name = strings.TrimSpace(p.src[p.toks[k].pos:p.toks[m].pos])
		k = m
	default:
		return 0, false
	}
parameters:
	open, end := p.body(k, n)
	return p.define(name, kind, first, open, p.trim(end), end, depth), true
}

// typ reads a type, module or implementation whose keyword is at i.
func (p *keywords) typ(first, i, n, depth, level int, kind string) (next int, ok bool) {
	k := i + 1
	name := ""
	switch {
	case p.text(i) == "impl":
		name, k = p.implemented(k, n)
	case p.text(i) == "macro_rules":
		if p.kind(k) != '!' || !p.isWord(k+1) {
			return 0, false
		}
		name = p.text(k + 1)
		k += 2
		if b := p.kind(k); b == '{' || b == '(' || b == '[' {
			p.add(name, kind, first, k, p.closing(k), depth)
			return p.after(k), true
		}
		return 0, false
	case p.kind(k) == '{' && (kind == "object" || kind == "namespace"): // without a name
	case p.isWord(k):
		if p.types[p.text(k)] != "" && p.isWord(k+1) { // enum class X
			kind = p.text(i)
			k++
		}
		name = p.text(k)
		k++
		for (p.kind(k) == '.' || p.kind(k) == '\\') && p.isWord(k+1) {
			name += p.text(k) + p.text(k+1)
			k += 2
		}
	default:
		return 0, false
	}
	open, end := p.body(k, n)
	if open < 0 {
		p.add(name, kind, first, -1, p.trim(end), depth)
		return end, true
	}
	inner := p.add(name, kind, first, open, p.closing(open), depth)
	if kind != "struct" && kind != "union" && kind != "enum" || p.lines {
		p.scope(open+1, min(p.closing(open), n), inner, level+1)
	}
	return p.after(open), true
}

// implemented is the name of the type that impl … is for.
func (p *keywords) implemented(k, n int) (name string, after int) {
	if p.kind(k) == '<' {
		k = max(p.angle(k), k)
	}
	begin := k
	for k < n && p.kind(k) != '{' && p.kind(k) != ';' {
		switch p.kind(k) {
		case '(', '[':
			if name == "" && k == begin {
				name = strings.Join(strings.Fields(p.src[p.toks[k].pos:p.toks[p.after(k)-1].end]), " ")
			}
		case word:
			switch t := p.text(k); t {
			case "where":
				return name, k
			case "for":
				if p.kind(k+1) != '<' {
					name, begin = "", k+1
				}
			case "dyn", "mut", "const", "unsafe":
			default:
				name = t
			}
		case '&':
			if begin == k {
				begin++
			}
		}
		k = p.step(k, "<([")
	}
	return name, k
}

// body finds the brace that opens the body of the definition named before k. If there is none,
// it returns -1 and the index after the statement.
func (p *keywords) body(k, n int) (open, end int) {
	for k < n {
		if p.lines && p.toks[k].nl && p.ends(k) {
			return -1, k
		}
		switch p.kind(k) {
		case '{':
			if t := p.text(k - 1); t == "interface" || t == "struct" { // a result of Go
				k = p.after(k)
				continue
			}
			return k, 0
		case ';', '}':
			return -1, k + 1
		case '=':
			if p.is(k, "==") {
				k++
			} else if !p.is(k, "=>") {
				return -1, p.end(k, n)
			}
		}
		k = p.step(k, "<([")
	}
	return -1, n
}

// end is the index after the statement that k is in.
func (p *keywords) end(k, n int) int {
	for begin := k; k < n; {
		if k > begin && p.lines && p.toks[k].nl && p.ends(k) {
			return k
		}
		switch p.kind(k) {
		case ';', '}':
			return k + 1
		case '{':
			k = p.after(k)
			if !p.lines && p.kind(k) != '.' && p.kind(k) != ';' && p.kind(k) != ')' && p.kind(k) != '?' {
				return k
			}
			continue
		}
		k = p.step(k, "([")
	}
	return n
}

// trim returns the last token before end that is part of the statement.
func (p *keywords) trim(end int) int { return max(end-1, 0) }

// ends reports whether a statement can end before token k, which begins a line.
func (p *keywords) ends(k int) bool {
	switch p.kind(k - 1) {
	case word:
		if t := p.text(k - 1); t == "where" || t == "in" || t == "throws" || t == "by" {
			return false
		}
	case literal, ')', ']', '}', '>', '?', '!', ';', '{':
	case '+', '-':
		if p.kind(k-2) != p.kind(k-1) {
			return false
		}
	case '*':
		if p.kind(k-2) != '.' { // import x.*
			return false
		}
	default:
		return false
	}
	switch p.kind(k) {
	case word:
		t := p.text(k)
		return t != "where" && t != "throws" && t != "rethrows" && t != "by" && t != "async"
	case '{', '.', ':', '-', '=', '?', ',', '&', '|', '+', '*', '/', '<', '>':
		return false
	}
	return true
}

// kinds makes a table of "keyword" or "keyword=kind".
func kinds(words string) map[string]string {
	m := make(map[string]string)
	for w := range strings.FieldsSeq(words) {
		k, kind, ok := strings.Cut(w, "=")
		if !ok {
			kind = k
		}
		m[k] = kind
	}
	return m
}
