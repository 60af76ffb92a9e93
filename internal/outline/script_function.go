package outline

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
	return p.define(name, "function", first, open, p.trim(end), end, depth)
}

// signature reads parameters, result and body after the name of a function, from k. It returns
// the brace that opens the body, or -1 and the index after the statement.
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

// arrowType is typeEnd for the result of an arrow function, where the arrow after a type in
// round brackets is part of the type only if another one follows.
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
	inner := p.add(name, "class", first, open, p.closing(open), depth)
	p.members(open+1, min(p.closing(open), n), inner, level+1)
	return p.after(open)
}

// heritage is the brace that opens the body of a class or interface, from after its name.
func (p *script) heritage(k, n int) int {
	for k < n && p.kind(k) != '{' && p.kind(k) != ';' {
		k = p.step(k, "<([")
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
				m = max(p.angle(m), m)
			}
			if p.kind(m) == '(' && p.text(name) != "new" {
				p.add(p.text(name), "method", k, -1, p.trim(next), depth+1)
			}
		}
		k = max(next, k+1)
	}
	return p.after(open)
}

// key reads the name of a member at i, and returns the index after it.
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

// members reads the body of a class.
func (p *script) members(i, n, depth, level int) {
	read(i, n, level, func(i int) int { return p.member(i, n, depth, level) })
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
		return p.define(name, "method", first, open, p.trim(end), end, depth)
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
