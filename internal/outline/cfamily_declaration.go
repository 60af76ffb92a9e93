package outline

// declaration looks at a statement without a body of its own that ends at j.
func (p *cfamily) declaration(h header, j, depth int, class string) {
	switch {
	case h.typedef:
		p.add(p.typedefName(h, j), "typedef", h.first, p.typedefBody(h, j), j, depth)
	case h.alias:
		if p.cpp && h.equals > 0 && p.isWord(h.equals-1) {
			p.add(p.text(h.equals-1), "using", h.first, -1, j, depth)
		}
	case h.keyword >= 0 && !p.c && h.params < 0 && p.text(h.keyword) == "namespace":
		p.add(p.containerName(&h, j), "namespace", h.first, -1, j, depth)
	case h.keyword >= 0 && p.text(h.keyword) == "concept":
		p.add(p.text(h.keyword+1), "concept", h.first, -1, j, depth)
	case h.keyword >= 0 && !p.c && p.isWord(h.keyword+1):
		p.add(p.text(h.keyword+1), p.text(h.keyword), h.first, -1, j, depth)
	case h.friend, h.params < 0, p.functionPointer(h.params):
	case h.name == h.first && h.opName == "" && p.kind(h.name-1) != '~' && p.text(h.name) != class:
		// FOO(x); is a macro.
	case h.equals >= 0 && h.opName == "" && h.equals < h.params:
	case p.c && p.callLike(h):
	case p.csharp && p.delegate(h):
		p.add(p.name(&h), "delegate", h.first, -1, j, depth)
	case (p.java || p.csharp) && (class == "" || h.equals >= 0):
	default:
		p.add(p.name(&h), p.functionKind(&h, class), h.first, -1, j, depth)
	}
}

// callLike reports whether the brackets hold values, not parameters, as in
// Foo x(1).
func (p *cfamily) callLike(h header) bool {
	k := h.params + 1
	switch p.kind(k) {
	case literal, '&', '-', '{', '!', '*', '+':
		return true
	case word:
		t := p.text(k)
		if t == "this" || t == "true" || t == "false" || t == "nullptr" || t == "NULL" || t == "sizeof" {
			return true
		}
		return p.kind(k+1) == '.' && !p.is(k+1, "...") || p.is(k+1, "->")
	}
	return false
}

func (p *cfamily) delegate(h header) bool {
	for k := h.first; k < h.name; k++ {
		if p.text(k) == "delegate" {
			return true
		}
	}
	return false
}

// typedefName is what a typedef that ends at j defines.
func (p *cfamily) typedefName(h header, j int) string {
	for k := h.first + 1; k < j; {
		switch p.kind(k) {
		case '(':
			if p.parenthesized(k) {
				return p.text(k + 1)
			}
			if p.functionPointer(k) {
				for m := k + 1; m < p.closing(k); m++ {
					if p.isWord(m) && !p.isWord(m+1) {
						return p.text(m)
					}
				}
			}
			k = p.after(k)
		case '[', '{':
			k = p.after(k)
		case '<':
			if e := p.angle(k); e > 0 {
				k = e
			} else {
				k++
			}
		default:
			k++
		}
	}
	for k := j - 1; k > h.first; k-- {
		switch p.kind(k) {
		case ')', ']':
			for k > h.first && p.toks[k].kind != '(' && p.toks[k].kind != '[' {
				k--
			}
		case word:
			if t := p.text(k); !cNotCalls[t] {
				return t
			}
		}
	}
	return ""
}

// typedefBody is the brace in a typedef that ends at j, or -1.
func (p *cfamily) typedefBody(h header, j int) int {
	for k := h.first; k < j; k++ {
		if p.kind(k) == '{' {
			return k
		}
	}
	return -1
}
