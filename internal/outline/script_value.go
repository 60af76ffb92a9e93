package outline

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

// value reads an expression from k that is assigned to name, and adds a definition if it is a
// function or a class. It returns the index after it, at a comma or after the statement.
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
	if !ok && p.kind(k) == '(' && k < n {
		o := k + 1 // a = (b.c = { … })
		if _, after := p.target(o, n); after > 0 {
			o = after
		}
		if p.kind(o) == '{' {
			p.object(o, depth, level+1)
		}
	}
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

// object reads the functions in an object literal.
func (p *script) object(open, depth, level int) {
	n := min(p.closing(open), len(p.toks))
	read(open+1, n, level, func(i int) int { return p.entry(i, n, depth, level+1) })
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
		if open, _, ok := p.lambda(k+1, n); ok {
			if open < 0 {
				end := p.comma(k+1, n)
				p.add(name, "function", first, -1, p.trim(end), depth)
				return end
			}
			p.add(name, "function", first, open, p.closing(open), depth)
			return p.comma(p.after(open), n)
		}
	}
	return p.comma(k, n)
}

// comma is the index after the next comma in [k, n).
func (p *script) comma(k, n int) int {
	for k < n && p.kind(k) != ',' {
		k = p.step(k, "([{")
	}
	return min(k+1, n)
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

// target reads the target of an assignment at i: the last name of a.b.c = , and the index
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

// wrapper reads a function that is called where it is defined, as in modules of older code:
// (function () { … })().
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
