package outline

import (
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// A token is a word, a literal or one byte of punctuation. Comments, white space and
// preprocessor directives are not tokens.
type token struct {
	kind  byte // word, literal, or the byte itself
	nl    bool // a line break comes before it
	pos   int32
	end   int32
	match int32 // of a bracket: the index of its partner; of an open one that is never closed: len(tokens)
}

const (
	word    = 'w'
	literal = 'l'
)

// maxSource limits the scanned text: offsets are 32 bits wide.
const maxSource = 1 << 30

// maxGuesses limits how often the lexer looks ahead for something that may not be there (an
// element of JSX, the end of a here document), so that it stays linear.
const maxGuesses = 8

// maxNesting limits recursion into literals that contain code.
const maxNesting = 64

// traits describe the literals and comments of a language.
type traits uint32

const (
	hashComments   traits = 1 << iota // # to the end of the line
	nestedComments                    // /* /* */ */
	directives                        // lines that begin with # are for a preprocessor
	lifetimes                         // 'a is not a literal, 'a' is
	multiline                         // "…" may contain line breaks
	multiline1                        // '…' may
	tripleQuotes                      // """…"""
	rawParens                         // R"x(…)x"
	rawHashes                         // r#"…"#
	hashQuotes                        // #"…"#
	backquoteRaw                      // `…` without escapes
	templates                         // `…${ code }…`
	regexps                           // /…/ where an operand may be
	jsx                               // <a>text {code}</a> where an operand may be
	verbatim                          // @"…""…", $"…{ code }…"
	dollarCode                        // "…${ code }…"
	parenCode                         // "…\( code )…"
	hereDocs                          // <<<X
	attributes                        // #[…] is not a comment
	backquoteName                     // `…` is a word
	tags                              // code is between <?php and ?>
)

type lexer struct {
	src     string
	is      traits
	toks    []token
	open    []int32 // indexes of open brackets
	braces  int     // how many of them are {
	nl      bool
	guesses int
	noRegex int // no regular expression ends on the line before this offset
	macros  []span
	cond    []condition
}

// A span is a part of the source.
type span struct{ pos, end int }

// A condition is an #if that has not ended.
type condition struct {
	open, braces int  // at its beginning
	dead         bool // its branch so far is never compiled: #if 0
	skip         bool // tokens of this branch are dropped
}

// lex never fails: text that is not a program gives some tokens. A closing bracket that does
// not match is dropped if it is round or square; a brace closes everything within.
func lex(src string, is traits) *lexer {
	x := &lexer{src: src, is: is, nl: true}
	x.toks = make([]token, 0, len(src)/5+8)
	if strings.HasPrefix(src, "#!") {
		x.line(0, len(src))
	}
	x.run(x.start(), len(src))
	n := int32(len(x.toks))
	for _, i := range x.open {
		x.toks[i].match = n
	}
	return x
}

// start skips a byte order mark and the first line of a script.
func (x *lexer) start() int {
	i := 0
	if strings.HasPrefix(x.src, "\uFEFF") {
		i = 3
	}
	if strings.HasPrefix(x.src[i:], "#!") && x.is&attributes == 0 {
		i = x.line(i, len(x.src))
	}
	if x.is&tags != 0 {
		i = x.phpTag(i)
	}
	return i
}

// phpTag is the offset after the next <?php from i.
func (x *lexer) phpTag(i int) int {
	j := strings.Index(x.src[i:], "<?")
	if j < 0 {
		return len(x.src)
	}
	i += j + 2
	if len(x.src) >= i+3 && strings.EqualFold(x.src[i:i+3], "php") {
		i += 3
	}
	return i
}

func (x *lexer) run(i, n int) {
	src := x.src
	for i < n {
		c := src[i]
		switch class[c] {
		case clsSpace:
			i++
		case clsLine:
			x.nl = true
			i++
		case clsWord:
			if c == '$' && x.is&verbatim != 0 {
				i = x.punct(i)
				continue
			}
			j := i + 1
			for j < n && inWord[src[j]] {
				j++
			}
			if j < n && (src[j] == '"' || src[j] == '#') {
				if k := x.prefixed(i, j); k > 0 {
					x.emit(literal, i, k)
					i = k
					continue
				}
			}
			x.emit(word, i, j)
			i = j
		case clsDigit:
			j := x.number(i)
			x.emit(literal, i, j)
			i = j
		default:
			i = x.punct(i)
		}
	}
}

func (x *lexer) emit(kind byte, i, j int) {
	if len(x.cond) > 0 && x.cond[len(x.cond)-1].skip {
		return
	}
	x.toks = append(x.toks, token{kind: kind, nl: x.nl, pos: int32(i), end: int32(j), match: -1})
	x.nl = false
}

// punct handles everything that is not a word, a number or space, and returns the offset
// after it.
func (x *lexer) punct(i int) int {
	if j, kind := x.skip(i, 0); j > i {
		if kind != 0 {
			x.emit(kind, i, j)
		}
		if kind != literal && strings.IndexByte(x.src[i:j], '\n') >= 0 {
			x.nl = true
		}
		return j
	}
	c := x.src[i]
	switch c {
	case '#':
		if x.is&directives != 0 && x.nl {
			return x.directive(i)
		}
	case '<':
		if x.is&jsx != 0 && x.guesses < maxGuesses && x.operand() {
			if j := x.element(i, 0); j > 0 {
				x.emit(literal, i, j)
				return j
			}
		}
	case '/':
		if x.is&regexps != 0 && i >= x.noRegex && x.operand() {
			if j := x.regex(i); j > 0 {
				x.emit(literal, i, j)
				return j
			}
		}
	case '`':
		if x.is&backquoteName != 0 {
			if j := strings.IndexAny(x.src[i+1:min(len(x.src), i+200)], "`\n"); j > 0 && x.src[i+1+j] == '`' {
				x.emit(word, i+1, i+1+j)
				return i + j + 2
			}
		}
	case '?':
		if x.is&tags != 0 && strings.HasPrefix(x.src[i:], "?>") {
			x.emit(';', i, i+1)
			return x.phpTag(i + 2)
		}
	case '(', '[', '{', ')', ']', '}':
		x.bracket(c, i)
		return i + 1
	}
	x.emit(c, i, i+1)
	return i + 1
}

func (x *lexer) bracket(c byte, i int) {
	if len(x.cond) > 0 && x.cond[len(x.cond)-1].skip {
		return
	}
	k := int32(len(x.toks))
	switch c {
	case '(', '[', '{':
		x.open = append(x.open, k)
		if c == '{' {
			x.braces++
		}
	case '}':
		if x.braces == 0 {
			return
		}
		for {
			o := x.open[len(x.open)-1]
			x.open = x.open[:len(x.open)-1]
			x.toks[o].match = k
			if x.toks[o].kind == '{' {
				break
			}
		}
		x.braces--
	default:
		want := byte('(')
		if c == ']' {
			want = '['
		}
		if len(x.open) == 0 || x.toks[x.open[len(x.open)-1]].kind != want {
			return
		}
		x.toks[x.open[len(x.open)-1]].match = k
		x.open = x.open[:len(x.open)-1]
	}
	x.emit(c, i, i+1)
}

// operand reports whether an operand may be here, so that / and < are not operators.
func (x *lexer) operand() bool {
	if len(x.toks) == 0 {
		return true
	}
	t := x.toks[len(x.toks)-1]
	switch t.kind {
	case literal, ']', ')': // if (…) /x/ is not detected; a division is much more common.
		return false
	case '}':
		return t.pos+1 < int32(len(x.src)) && x.nl
	case '+', '-':
		// x++ / 2
		return len(x.toks) < 2 || x.toks[len(x.toks)-2].kind != t.kind
	case word:
		return operandWords[x.src[t.pos:t.end]]
	}
	return true
}

var operandWords = plain.Words(`return typeof instanceof in of new delete void throw case do else
	yield await default and or not if elsif unless when while until then`)

// line is the offset of the line break that ends the line of i, or n.
func (x *lexer) line(i, n int) int {
	if j := strings.IndexByte(x.src[i:n], '\n'); j >= 0 {
		return i + j
	}
	return n
}

// number spans digits, letters, points and digit separators.
func (x *lexer) number(i int) int {
	src := x.src
	j := i + 1
	for j < len(src) {
		c := src[j]
		switch {
		case inWord[c]:
		case c == '.' && j+1 < len(src) && class[src[j+1]] == clsDigit:
		case c == '\'' && x.is&directives != 0 && j+1 < len(src) && inWord[src[j+1]]:
		default:
			return j
		}
		j++
	}
	return j
}

const (
	clsPunct = iota
	clsSpace
	clsLine
	clsWord
	clsDigit
)

var class, inWord = func() (class [256]uint8, in [256]bool) {
	for c := range 256 {
		switch {
		case c == '\n':
			class[c] = clsLine
		case c <= ' ':
			class[c] = clsSpace
		case c >= '0' && c <= '9':
			class[c], in[c] = clsDigit, true
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '$', c >= 0x80:
			class[c], in[c] = clsWord, true
		}
	}
	return class, in
}()

// directive reads a line for the preprocessor, with its continuations, and returns its end.
//
// Both branches of a condition are read if brackets balance in the first. Otherwise the other
// branches are dropped: they would open the same brackets again.
func (x *lexer) directive(i int) int {
	src := x.src
	n := len(src)
	j := i
	for {
		j = x.directiveLine(j)
		if j >= n || !strings.HasSuffix(strings.TrimRight(src[i:j], " \t\r"), `\`) {
			break
		}
		j++
	}
	text := strings.TrimLeft(src[i+1:j], " \t")
	k := 0
	for k < len(text) && inWord[text[k]] {
		k++
	}
	rest := strings.TrimSpace(text[k:])
	switch text[:k] {
	case "define":
		if k := wordEnd(rest); k > 0 && k < len(rest) && rest[k] == '(' && !x.dropped() {
			x.macros = append(x.macros, span{i, j})
		}
	case "if", "ifdef", "ifndef":
		dead := text[:k] == "if" && rest == "0"
		x.cond = append(x.cond, condition{len(x.open), x.braces, dead, dead || x.dropped()})
	case "else", "elif", "elifdef", "elifndef":
		x.branch()
	case "endif":
		if len(x.cond) > 0 {
			x.cond = x.cond[:len(x.cond)-1]
		}
	}
	return j
}

// directiveLine is the end of the line from i; a comment in stars may span several.
func (x *lexer) directiveLine(i int) int {
	eol := x.line(i, len(x.src))
	if c := strings.Index(x.src[i:eol], "/*"); c >= 0 {
		if end := x.comment(i + c); end > eol {
			return x.line(end, len(x.src))
		}
	}
	return eol
}

func (x *lexer) dropped() bool { return len(x.cond) > 0 && x.cond[len(x.cond)-1].skip }

func (x *lexer) branch() {
	if len(x.cond) == 0 {
		return
	}
	c := &x.cond[len(x.cond)-1]
	outer := len(x.cond) > 1 && x.cond[len(x.cond)-2].skip
	switch {
	case outer:
	case c.dead:
		c.dead, c.skip = false, false
	default:
		c.skip = c.skip || len(x.open) != c.open || x.braces != c.braces
	}
}

// wordEnd is the length of the word that s begins with.
func wordEnd(s string) int {
	k := 0
	for k < len(s) && inWord[s[k]] {
		k++
	}
	return k
}
