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
	if open < 0 {
		p.add(name, "function", first, -1, p.trim(end), depth)
		return end
	}
	p.add(name, "function", first, open, p.closing(open), depth)
	return p.after(open)
}

// signature reads what follows the name of a function from k: parameters, result, body. It answers the
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
