package outline

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// A cfamily scanner reads languages whose functions have no keyword: C, C++, Java and C#. A
// function is a name before round brackets; the rest of the statement distinguishes it from
// calls and variables.
type cfamily struct {
	parser
	c, cpp, java, csharp bool
}

var (
	cContainers = plain.Words("class struct union enum namespace interface record concept")
	// Words before round brackets that are not the name of a function.
	notNames = plain.Words(`if while for switch return catch throw new else do case default int void char short long
		float double const`)
	cNotNames = plain.Words(`sizeof alignof decltype defined delete static_assert _Static_assert alignas _Alignas
		__attribute__ __attribute __declspec __asm__ __asm asm noexcept requires explicit __extension__ typeof
		unsigned signed bool auto`)
	csNotNames = plain.Words("lock using fixed checked unchecked foreach when where sizeof typeof delegate bool")
	cNotCalls  = plain.Words("__attribute__ __attribute __declspec alignas _Alignas noexcept requires explicit decltype typeof __typeof__ throw __asm__ asm static_assert _Static_assert")
	csAccess   = plain.Words("public private protected signals slots default Q_SIGNALS Q_SLOTS")
)

func scanCFamily(name string) func(*language, string) []Definition {
	return func(l *language, src string) []Definition {
		x := lex(src, l.is)
		p := &cfamily{parser: parser{src: src, toks: x.toks}}
		switch name {
		case "c":
			p.c, p.cpp = true, looksCPP(src)
		case "cpp":
			p.c, p.cpp = true, true
		case "java":
			p.java = true
		default:
			p.csharp = true
		}
		p.scope(0, len(p.toks), 0, "")
		for _, m := range x.macros {
			text := strings.TrimSpace(strings.TrimSpace(src[m.pos+1 : m.end])[len("define"):])
			p.defs = append(p.defs, found{name: text[:wordEnd(text)], kind: "macro", start: m.pos, body: m.pos, end: m.end - 1})
		}
		return definitions(src, p.defs)
	}
}

// looksCPP reports whether a header named .h is of C++.
func looksCPP(src string) bool {
	signs := []string{"\nclass ", "\nnamespace ", "\ntemplate ", "\ntemplate<", "\nusing ", "public:", "private:", "protected:"}
	return slices.ContainsFunc(signs, func(s string) bool { return strings.Contains(src, s) })
}

// scope reads the statements from i to n. Class is the name of the type around them.
func (p *cfamily) scope(i, n, depth int, class string) {
	read(i, n, depth, func(i int) int { return p.statement(i, n, depth, class) })
}

// A header is a statement before its body or end.
type header struct {
	first   int // token that it begins with
	keyword int // class, struct, …; or -1
	name    int // before the parameters; or -1
	params  int // the bracket that opens them; or -1
	equals  int // the first = ; or -1
	colon   int // the first : after the parameters or the keyword; or -1
	typedef bool
	friend  bool
	alias   bool // using
	opName  string
}

// prelude skips text before a statement that is not part of it.
func (p *cfamily) prelude(i, n int) int {
	for i < n {
		switch k := p.kind(i); {
		case k == ';' || k == '}' || k == ')' || k == ']' || k == ',':
			i++
		case k == '@' && p.text(i+1) != "interface":
			i = p.annotation(i)
		case k == '[':
			i = p.after(i)
		case k == word && csAccess[p.text(i)] && p.kind(i+1) == ':' && !p.is(i+1, "::"):
			i += 2
		case k == word && csAccess[p.text(i)] && csAccess[p.text(i+1)] && p.kind(i+2) == ':':
			i += 3
		case k == word && p.c && p.loneMacro(i, n):
			i++
			if p.kind(i) == '(' {
				i = p.after(i)
			}
		default:
			return i
		}
	}
	return i
}

// loneMacro reports whether the word at i is a macro on a line of its own, without a
// semicolon, as __BEGIN_DECLS and Q_OBJECT are.
func (p *cfamily) loneMacro(i, n int) bool {
	t := p.text(i)
	if strings.ToUpper(t) != t || len(t) < 3 {
		return false
	}
	j := i + 1
	if p.kind(j) == '(' {
		j = p.after(j)
		return j < n && p.newline(j) && p.isWord(j)
	}
	return j < n && p.newline(j) && (p.isWord(j) || p.kind(j) == '[')
}

// statement reads one statement and returns the index after it.
func (p *cfamily) statement(i, n, depth int, class string) int {
	i = p.prelude(i, n)
	h := header{first: i, keyword: -1, name: -1, params: -1, equals: -1, colon: -1}
	for j := i; j < n; {
		switch p.kind(j) {
		case word:
			j = p.word(&h, j, n)
		case '<':
			if k := p.angle(j); k > 0 && k <= n && h.equals < 0 {
				j = k
			} else {
				j++
			}
		case '(':
			p.bracket(&h, j)
			j = p.after(j)
		case '[':
			j = p.after(j)
		case '@':
			// An annotation between modifiers, or of a type.
			if p.isWord(j+1) && p.text(j+1) != "interface" {
				j = p.annotation(j)
				continue
			}
			j++
		case '=':
			if h.equals < 0 {
				h.equals = j
			}
			if p.is(j, "=>") && p.csharp {
				return p.expression(h, j, n, depth)
			}
			j++
		case ':':
			if p.is(j, "::") {
				j += 2
				continue
			}
			if h.colon < 0 {
				h.colon = j
			}
			j++
		case '{':
			next, done := p.body(&h, j, n, depth, class)
			if done {
				return next
			}
			j = next
		case ';':
			p.declaration(h, j, depth, class)
			return j + 1
		case '}':
			return j + 1
		default:
			j++
		}
	}
	return n
}

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
			k = p.step(k, "[")
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
	case t == "using" && j == h.first, t == "import" && j == h.first && p.java, t == "package" && j == h.first && p.java,
		t == "using" && p.cpp && p.kind(j-1) == '>' && p.isWord(j+1): // template <…> using
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
		// MACRO(x) type name(…): the first name was a macro.
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
