package outline

import "strings"

// word reads a word of a header.
func (p *cfamily) word(h *header, j, n int) int {
	t := p.text(j)
	switch {
	case h.equals >= 0:
	case t == "template" && p.kind(j+1) == '<':
		if k := p.angle(j + 1); k > 0 {
			return k
		}
	case t == "operator" && (p.cpp || p.csharp) && h.params < 0:
		k := j + 1
		if p.is(k, "()") {
			k += 2
		}
		for k < min(n, j+maxOperator) && p.kind(k) != '(' && p.kind(k) != ';' && p.kind(k) != '{' {
			if p.kind(k) == '[' {
				k = p.after(k)
				continue
			}
			k++
		}
		if k < n && p.kind(k) == '(' {
			h.opName = strings.Join(strings.Fields(p.src[p.toks[j].pos:p.toks[k].pos]), " ")
			h.name, h.params = j, k
			return p.after(k)
		}
	case t == "typedef":
		h.typedef = true
	case t == "friend":
		h.friend = true
	case t == "using" && j == h.first, t == "import" && j == h.first && p.java, t == "package" && j == h.first && p.java:
		h.alias = true
	case t == "using" && p.cpp && p.kind(j-1) == '>' && p.isWord(j+1): // template <…> using
		h.alias = true
	case h.keyword < 0 && h.params < 0 && h.colon < 0 && cContainers[t] && p.containerAt(j):
		h.keyword = j
	case t == "where" && p.csharp && h.colon < 0:
		h.colon = j
	}
	return j + 1
}

// containerAt reports whether the word at j, one of cContainers, is a keyword here.
func (p *cfamily) containerAt(j int) bool {
	switch p.text(j) {
	case "record":
		return !p.c && p.isWord(j+1) && (p.kind(j+2) == '(' || p.kind(j+2) == '<' || p.kind(j+2) == '{' || p.kind(j+2) == ':' ||
			p.kind(j+2) == ';' || p.text(j+1) == "struct" || p.text(j+1) == "class" || p.text(j+2) == "implements")
	case "interface":
		return !p.c
	case "union":
		return p.c
	case "struct":
		return !p.java
	case "namespace":
		return !p.java && (p.cpp || p.csharp)
	case "class":
		return p.cpp || !p.c
	case "concept":
		return p.cpp && p.isWord(j+1)
	}
	return true
}

// bracket looks whether ( at j opens the parameters of a function.
func (p *cfamily) bracket(h *header, j int) {
	if h.equals >= 0 || h.alias {
		return
	}
	k := j - 1
	if p.c && h.params < 0 && p.parenthesized(j) { // type (name)(…)
		h.name, h.params = j+1, j+3
		return
	}
	if p.kind(k) == '>' { // name<T>(…)
		depth := 0
		for lo := max(h.first, j-maxAngle); k > lo; k-- {
			if p.kind(k) == '>' {
				depth++
			} else if p.kind(k) == '<' {
				depth--
				if depth == 0 {
					k--
					break
				}
			}
		}
	}
	if k < h.first || !p.isWord(k) {
		return
	}
	t := p.text(k)
	if p.notName(t) || h.keyword >= 0 && k == h.keyword {
		return
	}
	if h.params >= 0 {
		// MACRO(x) type name(…): what comes first was a macro.
		if !p.c || h.name != h.first || h.colon >= 0 || strings.ToUpper(p.text(h.name)) != p.text(h.name) || cNotCalls[t] || strings.ToUpper(t) == t {
			return
		}
	}
	if h.colon >= 0 && h.params < 0 && h.keyword < 0 && p.c {
		return // a bit field, or a label
	}
	h.name, h.params = k, j
}

// parenthesized reports whether (name)( begins at j.
func (p *cfamily) parenthesized(j int) bool {
	return p.isWord(j+1) && p.kind(j+2) == ')' && p.kind(j+3) == '(' && (p.isWord(j-1) || p.kind(j-1) == '*')
}

func (p *cfamily) notName(t string) bool {
	return notNames[t] || p.c && cNotNames[t] || p.csharp && csNotNames[t]
}

// functionPointer reports whether ( at j begins (*name)(…).
func (p *cfamily) functionPointer(j int) bool {
	k := p.kind(j + 1)
	return (k == '*' || k == '&' || k == '^') && p.kind(p.after(j)) == '('
}

// baseAfter reports whether the brackets seen belong to a macro between the keyword and
// the name of a class, or to its bases.
func (p *cfamily) baseAfter(h *header) bool {
	if h.colon >= 0 && h.params > h.colon {
		return true
	}
	t := p.text(h.name)
	return h.name == h.keyword+1 && (cNotCalls[t] || strings.ToUpper(t) == t) && p.isWord(p.after(h.params))
}

// maxOperator bounds, in tokens, the name of an operator or conversion.
const maxOperator = 60
