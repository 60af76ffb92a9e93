package outline

// A golang scanner reads Go. The parser of the standard library would also do for files that
// parse, at a fifth of the speed; an agent's files often do not parse.
type golang struct {
	keywords
}

func scanGo(l *language, src string) []Definition {
	p := &golang{keywords{parser{src: src, toks: lex(src, l.is).toks}, &grammar{lines: true}}}
	n := len(p.toks)
	for i := 0; i < n; {
		i = max(p.declaration(i, n), i+1)
	}
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
		for k := i + 2; k < end; {
			k = max(p.typ(k, k, end), k+1)
		}
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
