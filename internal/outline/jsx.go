package outline

import (
	"strings"
	"unicode/utf8"
)

func decode(s string) (rune, int) { return utf8.DecodeRuneInString(s) }

// mayOpen reports whether < at i can open an element, judging by the bytes around it.
func (x *lexer) mayOpen(i int) bool {
	j := i - 1
	for j > 0 && x.src[j] <= ' ' {
		j--
	}
	if j < 0 {
		return true
	}
	if inWord[x.src[j]] {
		k := j
		for k > 0 && inWord[x.src[k-1]] {
			k--
		}
		return j-k < 10 && operandWords[x.src[k:j+1]]
	}
	return strings.IndexByte("(,=?:&|{}[;!>", x.src[j]) >= 0
}

// element returns the end of an element of JSX with all that it contains, or 0. Text in it is
// not code: an apostrophe there is not a quote.
func (x *lexer) element(i, depth int) int {
	src := x.src
	if i+1 >= len(src) || class[src[i+1]] != clsWord && src[i+1] != '>' {
		return 0
	}
	open := 0 // elements
	for j := i; j < len(src); {
		if src[j] != '<' {
			switch src[j] {
			case '{':
				if depth >= maxNesting {
					return x.guess()
				}
				j = x.code(j+1, '}', true, depth+1)
			default:
				j++
			}
			continue
		}
		closing := j+1 < len(src) && src[j+1] == '/'
		k, self := x.tag(j+1, depth)
		if k == 0 {
			return x.guess()
		}
		switch {
		case closing:
			open--
		case !self:
			open++
		}
		if open <= 0 {
			return k
		}
		j = k
	}
	return x.guess()
}

func (x *lexer) guess() int {
	x.guesses++
	return 0
}

// tag returns the end of the rest of a tag. It returns 0 if this is not a tag: type
// parameters, or the end of the file.
func (x *lexer) tag(j, depth int) (end int, self bool) {
	src := x.src
	for first := true; j < len(src); {
		switch c := src[j]; c {
		case '>':
			return j + 1, src[j-1] == '/'
		case '"', '\'':
			k := strings.IndexByte(src[j+1:], c)
			if k < 0 {
				return 0, false
			}
			j += k + 2
		case '{':
			if depth >= maxNesting {
				return 0, false
			}
			j = x.code(j+1, '}', true, depth+1)
		case '/':
			if strings.HasPrefix(src[j:], "/*") {
				j = x.comment(j)
			} else {
				j++
			}
		case '(', ')', ';', '&', '|', '[':
			return 0, false
		case '<': // <Table<Row> columns={…}>
			k := strings.IndexByte(src[j:min(len(src), j+200)], '>')
			if k < 0 {
				return 0, false
			}
			j += k + 1
		case ',':
			return 0, false // <T, U>(…) =>
		case ' ':
			if first && strings.HasPrefix(src[j:], " extends ") {
				return 0, false // <T extends U>(…) =>
			}
			first = false
			j++
		default:
			j++
		}
	}
	return 0, false
}
