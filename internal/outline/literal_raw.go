package outline

import "strings"

// prefixed spans a raw literal whose prefix is the word from i to j, or answers 0.
func (x *lexer) prefixed(i, j int) int {
	src := x.src
	prefix := src[i:j]
	switch {
	case x.is&rawParens != 0 && src[j] == '"' && strings.HasSuffix(prefix, "R") && len(prefix) <= 3:
		k := j + 1
		for k < len(src) && k-j <= 17 && src[k] != '(' && src[k] != '"' && src[k] > ' ' {
			k++
		}
		if k >= len(src) || src[k] != '(' {
			return 0
		}
		fence := ")" + src[j+1:k] + `"`
		if e := strings.Index(src[k:], fence); e >= 0 {
			return k + e + len(fence)
		}
		return len(src)
	case x.is&rawHashes != 0 && (prefix == "r" || prefix == "br" || prefix == "cr"):
		return x.hashQuoted(i, j)
	}
	return 0
}

// hashQuoted spans a raw literal whose hashes begin at j, or answers 0.
func (x *lexer) hashQuoted(i, j int) int {
	src := x.src
	k := j
	for k < len(src) && src[k] == '#' && k-j < 256 {
		k++
	}
	if k >= len(src) || src[k] != '"' || i == j && k == j {
		return 0
	}
	fence := `"` + src[j:k]
	if e := strings.Index(src[k+1:], fence); e >= 0 {
		return k + 1 + e + len(fence)
	}
	return len(src)
}

// atString spans a literal of C# with a prefix of @ and $.
func (x *lexer) atString(i, depth int) (end int, kind byte) {
	src := x.src
	j := i
	at, dollars := false, 0
	for j < len(src) && j-i < 8 && (src[j] == '@' || src[j] == '$') {
		at = at || src[j] == '@'
		if src[j] == '$' {
			dollars++
		}
		j++
	}
	if j >= len(src) || src[j] != '"' {
		return i, 0
	}
	if strings.HasPrefix(src[j:], `"""`) && (!at || dollars > 1) {
		return x.double(j, depth), literal
	}
	for j++; j < len(src); {
		c := src[j]
		switch {
		case c == '"' && at && j+1 < len(src) && src[j+1] == '"', c == '{' && dollars > 0 && j+1 < len(src) && src[j+1] == '{':
			j += 2
		case c == '"':
			return j + 1, literal
		case c == '\\' && !at:
			j += 2
		case c == '{' && dollars > 0 && depth < maxNesting:
			j = x.code(j+1, '}', at, depth+1)
		case c == '\n' && !at:
			return j, literal
		default:
			j++
		}
	}
	return len(src), literal
}

// hereDoc spans a here document of PHP whose name begins at i, or answers 0.
func (x *lexer) hereDoc(i int) int {
	src := x.src
	eol := x.line(i, len(src))
	name := strings.Trim(src[i:eol], " \t\r'\"")
	if name == "" || class[name[0]] != clsWord {
		return 0
	}
	for eol < len(src) {
		begin := eol + 1
		eol = x.line(min(begin, len(src)), len(src))
		if begin > eol {
			break
		}
		text := strings.TrimLeft(src[begin:eol], " \t")
		if strings.HasPrefix(text, name) && (len(text) == len(name) || !inWord[text[len(name)]]) {
			return eol - len(text) + len(name)
		}
	}
	x.guesses++
	return 0
}

// regex spans a regular expression on one line, or answers 0.
func (x *lexer) regex(i int) int {
	src := x.src
	inSet := false
	for j := i + 1; j < len(src); j++ {
		switch src[j] {
		case '\\':
			j++
		case '[':
			inSet = true
		case ']':
			inSet = false
		case '/':
			if inSet {
				continue
			}
			return j + 1 + wordEnd(src[j+1:])
		case '\n':
			x.noRegex = j
			return 0
		}
	}
	x.noRegex = len(src)
	return 0
}
