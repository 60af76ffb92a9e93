package outline

import (
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// body looks at { at j. Done means that the statement ends before next.
func (p *cfamily) body(h *header, j, n, depth int, class string) (next int, done bool) {
	end := p.closing(j)
	next = p.after(j)
	switch {
	case h.equals >= 0 && h.opName == "": // = { … }
		return next, false
	case h.keyword >= 0 && (h.params < 0 || !p.c || h.params < h.keyword || p.baseAfter(h)):
		next = p.container(h, j, n, depth)
		h.name, h.params, h.colon = -1, -1, -1 // brackets so far belonged to the type
		return next, !p.c || p.text(h.keyword) == "namespace"
	case h.params >= 0:
		if h.colon > h.params && p.cpp && (p.kind(j-1) == '>' || p.isWord(j-1) && !cSpecifiers[p.text(j-1)]) {
			return next, false
		}
		p.add(p.name(h), p.functionKind(h, class), h.first, j, end, depth)
		return next, true
	case p.isWord(h.first) && p.text(h.first) == "extern" && j == h.first+2:
		p.scope(j+1, min(end, n), depth, class)
		return next, true
	case p.csharp && class != "" && (p.isWord(j-1) || p.kind(j-1) == ']') && j-1 > h.first:
		p.property(h, j, end, depth)
		if p.kind(next) == '=' {
			return next, false
		}
		return next, true
	case p.java && class != "" && p.text(j-1) == class: // of a record, without parameters
		p.add(class, "constructor", h.first, j, end, depth)
		return next, true
	case p.c && j > h.first && p.isWord(j-1) && p.text(h.first) != "namespace":
		return next, false // int x{3};
	}
	return next, true
}

var cSpecifiers = plain.Words("const noexcept override final volatile try mutable throw requires")

func (p *cfamily) name(h *header) string {
	if h.opName != "" {
		return h.opName
	}
	if p.kind(h.name-1) == '~' {
		return "~" + p.text(h.name)
	}
	return p.text(h.name)
}

func (p *cfamily) functionKind(h *header, class string) string {
	switch {
	case class == "" && !p.is(h.name-2, "::"):
		return "function"
	case p.text(h.name) == class:
		return "constructor"
	}
	return "method"
}

// container reads a type or namespace with its members and returns the index after it.
func (p *cfamily) container(h *header, j, n, depth int) int {
	kind := p.text(h.keyword)
	end := p.closing(j)
	name := p.containerName(h, j)
	inner := p.add(name, kind, h.first, j, end, depth)
	from := j + 1
	switch kind {
	case "enum":
		if !p.java {
			return p.after(j)
		}
		for from < end && p.kind(from) != ';' { // the constants
			from = p.step(from, "([{")
		}
	case "namespace":
		name = ""
	}
	p.scope(from, min(end, n), inner, name[strings.LastIndexAny(name, ":.")+1:])
	return p.after(j)
}

// containerName is the name of the type whose body j opens, or "".
func (p *cfamily) containerName(h *header, j int) string {
	k := h.keyword + 1
	if t := p.text(k); t == "class" || t == "struct" {
		k++
	}
	if p.text(h.keyword) == "namespace" {
		var parts []string
		for ; k < j; k++ {
			if p.isWord(k) && p.text(k) != "inline" && p.kind(k+1) != '(' {
				parts = append(parts, p.text(k))
			}
		}
		sep := "."
		if p.cpp {
			sep = "::"
		}
		return strings.Join(parts, sep)
	}
	if !p.c {
		if p.isWord(k) {
			return p.text(k)
		}
		return ""
	}
	name := ""
	for k < j {
		switch p.kind(k) {
		case word:
			if t := p.text(k); t != "final" && !cNotCalls[t] {
				name = t
			}
			if p.kind(k+1) == '(' { // a macro
				if p.text(k) == name {
					name = ""
				}
				k = p.after(k + 1)
				continue
			}
		case '<':
			return name
		case ':':
			if !p.is(k, "::") {
				return name
			}
			k++
		}
		k = p.step(k, "[")
	}
	return name
}

// property reads a property or an event of C# with accessors in braces.
func (p *cfamily) property(h *header, j, end, depth int) {
	k := j - 1
	if p.kind(k) == ']' { // this[int i]
		for k > h.first && p.text(k) != "this" {
			k--
		}
	}
	t := p.text(k)
	if t == "get" || t == "set" || t == "add" || t == "remove" || t == "init" || p.notName(t) {
		return
	}
	last := end
	if next := p.after(j); p.kind(next) == '=' {
		for next < len(p.toks) && p.kind(next) != ';' && p.kind(next) != '}' {
			next = p.step(next, "([{")
		}
		last = next
	}
	p.add(t, "property", h.first, j, last, depth)
}

// expression reads a member of C# that is defined by => at j.
func (p *cfamily) expression(h header, j, n, depth int) int {
	end := j + 2
	for end < n && p.kind(end) != ';' {
		if p.kind(end) == '}' {
			return end
		}
		end = p.step(end, "([{")
	}
	switch {
	case h.params >= 0:
		p.add(p.name(&h), "method", h.first, -1, end, depth)
	case h.equals == j && j-1 > h.first && p.isWord(j-1):
		p.add(p.text(j-1), "property", h.first, -1, end, depth)
	case h.equals == j && p.kind(j-1) == ']':
		p.add("this", "property", h.first, -1, end, depth)
	}
	return end + 1
}

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

// typedefName is the name that a typedef ending at j defines.
func (p *cfamily) typedefName(h header, j int) string {
	for k := h.first + 1; k < j; k = p.step(k, "<([{") {
		if p.kind(k) == '(' && p.parenthesized(k) {
			return p.text(k + 1)
		}
		if p.kind(k) == '(' && p.functionPointer(k) {
			for m := k + 1; m < p.closing(k); m++ {
				if p.isWord(m) && !p.isWord(m+1) {
					return p.text(m)
				}
			}
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
