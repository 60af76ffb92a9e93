package outline

import "strings"

// rubyLines splits a text of Ruby. Round and square brackets join lines, braces do not:
// they are mostly blocks.
func rubyLines(src string) []logical {
	r := &ruby{src: src}
	return r.lines()
}

type ruby struct {
	src     string
	here    []string // names of here documents whose text begins on the next line
	guesses int
}

func (r *ruby) lines() []logical {
	var out []logical
	src := r.src
	line := 1
	for i := 0; i < len(src); {
		if strings.HasPrefix(src[i:], "=begin") {
			j := strings.Index(src[i:], "\n=end")
			if j < 0 {
				return out
			}
			j = i + j + 5
			line += strings.Count(src[i:j], "\n")
			i = j
			for i < len(src) && src[i] != '\n' {
				i++
			}
			if i < len(src) {
				i++
				line++
			}
			continue
		}
		if strings.HasPrefix(src[i:], "__END__") && (len(src) == i+7 || src[i+7] == '\n' || src[i+7] == '\r') {
			return out
		}
		first, indent := line, 0
		for i < len(src) && (src[i] == ' ' || src[i] == '\t') {
			if src[i] == '\t' {
				indent = indent/8*8 + 8
			} else {
				indent++
			}
			i++
		}
		begin := i
		code, last := i, line
		open := 0
		for i < len(src) {
			c := src[i]
			if c == '\n' {
				j := i + 1
				if len(r.here) > 0 {
					j = r.documents(j)
					last = line + strings.Count(src[i:j], "\n") - 1
				}
				line += strings.Count(src[i:j], "\n")
				i = j
				if open > 0 && !rubyStart(src[i:]) {
					continue
				}
				break
			}
			j, skipped := r.skip(i, begin, 0)
			if skipped {
				line += strings.Count(src[i:j], "\n")
				if c != '#' {
					code, last = j, line
				}
				i = j
				continue
			}
			switch c {
			case '(', '[':
				open++
			case ')', ']':
				open = max(open-1, 0)
			}
			i++
			if c > ' ' {
				code, last = i, line
			}
		}
		if code > begin {
			out = append(out, logical{begin, code, indent, first, last})
		}
	}
	return out
}

// rubyStart reports whether a line begins with what cannot stand within brackets.
func rubyStart(s string) bool {
	s = strings.TrimLeft(s[:min(len(s), 200)], " \t")
	for _, k := range []string{"def ", "class ", "module "} {
		if strings.HasPrefix(s, k) {
			return true
		}
	}
	return false
}

// rubyHead reads def, class and module.
func rubyHead(text string) (head, bool) {
	h := head{}
	rest := text
	for range 4 { // private_class_method memoize def x
		k := wordEnd(rest)
		switch rest[:k] {
		case "def", "class", "module":
			h.kind = rest[:k]
		}
		if h.kind != "" || k == 0 || k >= len(rest) || rest[k] != ' ' {
			break
		}
		rest = strings.TrimLeft(rest[k:], " ")
	}
	if h.kind == "" {
		return h, false
	}
	if h.kind != "def" && len(rest) != len(text) {
		return h, false
	}
	rest = rest[len(h.kind):]
	if rest == "" || rest[0] != ' ' && rest[0] != '\t' && rest[0] != '<' {
		return h, false
	}
	rest = strings.TrimLeft(rest, " \t")
	h.closed = rubyCloses(text)
	if h.kind == "class" && strings.HasPrefix(rest, "<<") {
		h.hidden = true
		return h, true
	}
	k := 0
	for k < len(rest) && (inWord[rest[k]] || rest[k] == ':' && k+1 < len(rest) && (rest[k+1] == ':' || k > 0 && rest[k-1] == ':')) {
		k++
	}
	if h.kind != "def" {
		h.name = rest[:k]
		return h, h.name != ""
	}
	h.function = true
	h.name, rest = rubyMethod(rest, k)
	// def x(a) = …
	if strings.HasPrefix(rest, "(") {
		open := 0
		for k := range len(rest) {
			if rest[k] == '(' {
				open++
			} else if rest[k] == ')' {
				open--
				if open == 0 {
					rest = rest[k+1:]
					break
				}
			}
		}
	}
	rest = strings.TrimLeft(rest, " ")
	if strings.HasPrefix(rest, "= ") || strings.HasPrefix(rest, "=\n") {
		h.closed = true
	}
	return h, h.name != ""
}

// rubyMethod is the name of a method, whose first word has k bytes, and what follows.
func rubyMethod(rest string, k int) (name, after string) {
	if k < len(rest) && k > 0 && rest[k] == '.' { // self.x
		rest = rest[k+1:]
		k = wordEnd(rest)
	} else if i := strings.LastIndex(rest[:k], "::"); i >= 0 { // Text::x
		rest = rest[i+2:]
		k = wordEnd(rest)
	}
	if k > 0 {
		if k < len(rest) && (rest[k] == '?' || rest[k] == '!' || rest[k] == '=' && k+1 < len(rest) && strings.IndexByte("=~>", rest[k+1]) < 0) {
			k++
		}
		return rest[:k], rest[k:]
	}
	for k < len(rest) && strings.IndexByte("+-*/%<>=!~^&|[]`@", rest[k]) >= 0 {
		k++
	}
	return rest[:k], rest[k:]
}

// rubyCloses reports whether a line that opens a definition also ends it.
func rubyCloses(text string) bool {
	text = strings.TrimRight(text, " \t\r;")
	k := len(text) - len("end")
	return k > 0 && text[k:] == "end" && !inWord[text[k-1]] && text[k-1] != '.' && text[k-1] != ':'
}
