// Package outline folds source files to their signatures, so that a model that no longer has a file in its context
// still knows its definitions and their places.
//
// [Definitions] finds functions, types and headings with hand-written scanners: they know
// strings, comments and brackets, but no grammar. So they need no C compiler, take time linear
// in the text, and return a result for text that does not parse. Their results were compared
// with tree-sitter, language by language; see docs/outline.md.
//
// [Files] reads and folds the files that an agent has read. It never opens a file outside its
// root or one that is ignored.
package outline

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// A Definition is a named definition in a file. Lines count from 1, and
//
//	1 <= Start < Body <= End+1
//
// Lines Start to Body-1 are its signature, lines Body to End the rest: the statements of a
// function, the members of a type and the closing bracket. Body is End+1 if every line is part
// of the signature.
//
// Attributes, annotations, decorators and comments above a definition are not part of it.
type Definition struct {
	Name string
	// Kind is the language's name for it, in lower case: "func", "class", "method",
	// "interface", "heading" and so on. The set is open.
	Kind       string
	Start, End int
	Body       int
	// Depth is how many definitions enclose this one: 1 for a method of a class.
	Depth int
}

// Definitions returns the definitions of src that are not local to a function, in the order of
// their Start; of two that start on the same line, the outer one is first. A definition that
// starts within another one ends within it. For languages other than those of [Language] it
// returns nil.
//
// It accepts any text: malformed, hostile and binary text costs time and memory linear in its
// length and gives some list, possibly empty. For more than 1 GiB the list is always empty.
func Definitions(language, src string) []Definition {
	l := languages[language]
	if l == nil || src == "" || len(src) > maxSource {
		return nil
	}
	return l.scan(l, src)
}

// A language has the scanners' data about a language.
type language struct {
	exts string // extensions with the dot, separated by spaces
	scan func(*language, string) []Definition
	is   traits
}

// languages is read only.
var languages = map[string]*language{
	"go":         {".go", scanGo, backquoteRaw},
	"rust":       {".rs", scanKeywords(rustGrammar), nestedComments | lifetimes | multiline | rawHashes},
	"kotlin":     {".kt .kts", scanKeywords(kotlinGrammar), nestedComments | tripleQuotes | dollarCode | backquoteName},
	"swift":      {".swift", scanKeywords(swiftGrammar), nestedComments | tripleQuotes | hashQuotes | parenCode | backquoteName},
	"php":        {".php", scanKeywords(phpGrammar), hashComments | attributes | multiline | multiline1 | hereDocs | tags},
	"python":     {".py .pyi", scanIndented(pythonLines, pythonHead, ""), 0},
	"ruby":       {".rb .rake .gemspec", scanIndented(rubyLines, rubyHead, "end"), 0},
	"markdown":   {".md .markdown", scanMarkdown, 0},
	"c":          {".c .h", scanCFamily("c"), directives},
	"cpp":        {".cc .cpp .cxx .hpp .hh .hxx .ipp .inl .tpp", scanCFamily("cpp"), directives | rawParens},
	"java":       {".java", scanCFamily("java"), tripleQuotes},
	"javascript": {".js .jsx .mjs .cjs", scanScript, templates | regexps | jsx},
	"typescript": {".ts .mts .cts", scanScript, templates | regexps},
	"tsx":        {".tsx", scanScript, templates | regexps | jsx},
	"csharp":     {".cs", scanCFamily("csharp"), directives | tripleQuotes | verbatim},
}

var byExtension = func() map[string]string {
	m := make(map[string]string)
	for name, l := range languages {
		for ext := range strings.FieldsSeq(l.exts) {
			m[ext] = name
		}
	}
	return m
}()

// Language returns the language of a file, in lower case ("go", "csharp", "markdown"), by the
// extension of its name. It is "" for files that [Definitions] cannot fold.
func Language(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	return byExtension[strings.ToLower(path.Ext(name))]
}

var (
	rustGrammar = &grammar{
		functions: kinds("fn"),
		types:     kinds("struct enum union trait impl mod macro_rules=macro"),
		plain:     kinds("type"),
		modifiers: plain.Words("pub async unsafe extern default const crate auto"),
	}
	kotlinGrammar = &grammar{
		functions: kinds("fun"),
		types:     kinds("class interface object"),
		plain:     kinds("typealias=type"),
		modifiers: plain.Words(`public private protected internal open abstract final sealed data inner enum annotation
			inline noinline crossinline suspend tailrec operator infix external override lateinit const
			expect actual value companion`),
		lines: true,
	}
	swiftGrammar = &grammar{
		functions: kinds("func init deinit subscript"),
		types:     kinds("class struct enum protocol extension actor"),
		plain:     kinds("typealias=type"),
		modifiers: plain.Words(`public private fileprivate internal open final static class override mutating nonmutating
			required convenience dynamic lazy weak unowned indirect prefix postfix infix optional isolated
			nonisolated async distributed`),
		lines: true,
	}
	phpGrammar = &grammar{
		functions: kinds("function"),
		types:     kinds("class interface trait enum namespace"),
		modifiers: plain.Words("public private protected static abstract final readonly var"),
		blocks:    true,
	}
)

// maxDepth limits how deep scopes are followed. Deeper ones are skipped.
const maxDepth = 60

// maxAngle limits, in tokens, how far a list of type parameters is followed.
const maxAngle = 400

// A parser walks over tokens. All indexes it takes may be len(toks).
type parser struct {
	src  string
	toks []token
	defs []found
}

// A found is a definition as byte offsets.
type found struct {
	name, kind string
	start      int // of its first byte
	body       int // of the bracket that opens the body, or -1
	end        int // of its last byte
	depth      int
}

func (p *parser) text(i int) string {
	if i < 0 || i >= len(p.toks) {
		return ""
	}
	t := p.toks[i]
	return p.src[t.pos:t.end]
}

// kind is the kind of a token, 0 beyond the last.
func (p *parser) kind(i int) byte {
	if i < 0 || i >= len(p.toks) {
		return 0
	}
	return p.toks[i].kind
}

func (p *parser) isWord(i int) bool { return p.kind(i) == word }

// after is the index after the bracket that i opens.
func (p *parser) after(i int) int { return min(int(p.toks[i].match), len(p.toks)-1) + 1 }

// closing is the index of the bracket that closes i, or of the end.
func (p *parser) closing(i int) int { return int(p.toks[i].match) }

// joined reports whether token i+1 follows i without a gap, as the parts of => do.
func (p *parser) joined(i int) bool { return i+1 < len(p.toks) && p.toks[i].end == p.toks[i+1].pos }

// is reports whether the punctuation s begins at i.
func (p *parser) is(i int, s string) bool {
	for k := range len(s) {
		if p.kind(i+k) != s[k] || k > 0 && !p.joined(i+k-1) {
			return false
		}
	}
	return true
}

// annotation returns the token after an annotation: @ and a name, perhaps with dots and arguments.
func (p *parser) annotation(i int) int {
	for i += 2; p.kind(i) == '.' && p.isWord(i+1); {
		i += 2
	}
	if p.kind(i) == '(' {
		i = p.after(i)
	}
	return i
}

// step is the index after token k, or after the brackets that it opens, if they are of one of these kinds.
func (p *parser) step(k int, kinds string) int {
	switch c := p.kind(k); {
	case strings.IndexByte(kinds, c) < 0:
		return k + 1
	case c == '<':
		return max(p.angle(k), k+1)
	}
	return p.after(k)
}

// read calls statement for the statements of [i, n), each of which begins where the one before says that it ends.
func read(i, n, level int, statement func(i int) int) {
	for level <= maxDepth && i < n {
		i = max(statement(i), i+1)
	}
}

// define adds a definition whose body opens at open, or one without a body that has last as its last token. It returns the
// index after the body, or end.
func (p *parser) define(name, kind string, first, open, last, end, depth int) int {
	if open < 0 {
		p.add(name, kind, first, -1, last, depth)
		return end
	}
	p.add(name, kind, first, open, p.closing(open), depth)
	return p.after(open)
}

func (p *parser) newline(i int) bool { return i >= len(p.toks) || p.toks[i].nl }

// angle is the index after the type parameters or arguments that < at i opens, or 0 if
// that seems to be an operator.
func (p *parser) angle(i int) int {
	depth := 0
	for k, n := i, min(len(p.toks), i+maxAngle); k < n; {
		switch p.kind(k) {
		case '<':
			depth++
		case '>':
			if p.joined(k-1) && (p.kind(k-1) == '-' || p.kind(k-1) == '=') {
				break
			}
			depth--
			if depth == 0 {
				return k + 1
			}
		case '(', '[', '{':
			k = p.after(k)
			continue
		case ';', ')', ']', '}':
			return 0
		}
		k++
	}
	return 0
}

// add records a definition whose first, opening and last tokens are given; open is -1 if
// there is no body. It returns the depth of definitions within this one.
func (p *parser) add(name, kind string, first, open, last, depth int) (inner int) {
	if name == "" {
		return depth
	}
	if first >= len(p.toks) {
		return depth + 1
	}
	f := found{name: name, kind: kind, start: int(p.toks[first].pos), body: -1, depth: depth}
	if open >= 0 && open < len(p.toks) {
		f.body = int(p.toks[open].pos)
	}
	last = min(last, len(p.toks)-1)
	f.end = max(int(p.toks[last].end)-1, f.start)
	p.defs = append(p.defs, f)
	return depth + 1
}

// definitions converts offsets to lines and sorts the result.
func definitions(src string, fs []found) []Definition {
	if len(fs) == 0 {
		return nil
	}
	slices.SortStableFunc(fs, func(a, b found) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	starts := lineStarts(src)
	lines := len(starts) - 1
	line := func(offset int) int {
		i, exact := slices.BinarySearch(starts[:lines], offset)
		if exact {
			i++
		}
		return i
	}
	defs := make([]Definition, len(fs))
	for i, f := range fs {
		d := Definition{Name: f.name, Kind: f.kind, Depth: f.depth, Start: line(f.start), End: line(f.end)}
		d.Body = d.End + 1
		if f.body >= 0 {
			d.Body = min(line(f.body)+1, d.Body)
		}
		defs[i] = d
	}
	return nest(defs)
}

// nest makes defs satisfy the contract of Definitions, whatever the scanner found.
func nest(defs []Definition) []Definition {
	slices.SortStableFunc(defs, func(a, b Definition) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
	var open []int // ends of the definitions around
	for i := range defs {
		d := &defs[i]
		for len(open) > 0 && open[len(open)-1] < d.Start {
			open = open[:len(open)-1]
		}
		if len(open) > 0 && d.End > open[len(open)-1] {
			d.End = open[len(open)-1]
			d.Body = min(d.Body, d.End+1)
		}
		open = append(open, d.End)
	}
	return defs
}
