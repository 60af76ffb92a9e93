package outline

import "strings"

// directive reads a line for the preprocessor, with its continuations, and answers its end.
//
// Both branches of a condition are read as long as brackets balance in the first. If they
// do not, the others are dropped: they would open the same brackets again.
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
