package outline

import "strings"

// rubyLines splits a text of Ruby. Round and square brackets join lines, braces do not:
// they are mostly blocks.
func rubyLines(src string) []logical {
	r := &ruby{src: src}
	skip := func(i, begin int) (end int, ok bool) { return r.skip(i, begin, 0) }
	s := splitter{" \t", "([", ")]", []string{"def ", "class ", "module "}, r.block, skip, r.documents}
	return s.split(src)
}

type ruby struct {
	src     string
	here    []string // names of here documents whose text begins on the next line
	guesses int
}

// block returns the end of the comment from =begin to =end at i, or of the text from __END__.
func (r *ruby) block(i int) int {
	rest := r.src[i:]
	if strings.HasPrefix(rest, "=begin") {
		_, after, _ := strings.Cut(rest, "\n=end")
		_, after, _ = strings.Cut(after, "\n")
		return len(r.src) - len(after)
	}
	if after, ok := strings.CutPrefix(rest, "__END__"); ok && (after == "" || after[0] == '\n' || after[0] == '\r') {
		return len(r.src)
	}
	return i
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
	if h.kind == "" || h.kind != "def" && len(rest) != len(text) {
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

// rubyMethod returns the name of a method, whose first word has k bytes, and the rest.
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

// skip returns the end of a comment or literal at i on the line whose code starts at begin.
func (r *ruby) skip(i, begin, depth int) (end int, ok bool) {
	src := r.src
	next := byte(0)
	if i+1 < len(src) {
		next = src[i+1]
	}
	switch src[i] {
	case '#':
		if j := strings.IndexByte(src[i:], '\n'); j >= 0 {
			return i + j, true
		}
		return len(src), true
	case '"', '`':
		if src[i] == '`' && i > begin && strings.HasSuffix(src[begin:i], "def ") {
			return i + 1, true
		}
		return r.quoted(i+1, 0, src[i], true, depth), true
	case '\'':
		return r.quoted(i+1, 0, '\'', false, depth), true
	case '$', '\\':
		if next > ' ' && !inWord[next] {
			return i + 2, true
		}
	case '?':
		if next > ' ' && (i == begin || !inWord[src[i-1]] && src[i-1] != ')' && src[i-1] != ']') && (i+2 >= len(src) || !inWord[src[i+2]]) {
			if next == '\\' {
				return min(i+3, len(src)), true
			}
			return i + 2, true
		}
	case '/':
		if r.operand(i, begin) {
			return r.quoted(i+1, 0, '/', true, depth), true
		}
	case '%':
		if r.operand(i, begin) {
			if j := r.percent(i, depth); j > 0 {
				return j, true
			}
		}
	case '<':
		if next == '<' && r.guesses < maxGuesses {
			if j := r.hereName(i, begin); j > 0 {
				return j, true
			}
		}
	}
	return i, false
}

// operand reports whether an operand may be at i.
func (r *ruby) operand(i, begin int) bool {
	src := r.src
	j := i - 1
	for j >= begin && (src[j] == ' ' || src[j] == '\t') {
		j--
	}
	if j < begin {
		return true
	}
	if inWord[src[j]] || (src[j] == '?' || src[j] == '!') && j > begin && inWord[src[j-1]] {
		k := j
		for k > begin && (inWord[src[k-1]] || src[k] == '?' || src[k] == '!') && j-k < 12 {
			k--
		}
		if operandWords[src[k:j+1]] {
			return true
		}
		// puts /x/ is a call, a / b is not.
		return j < i-1 && i+1 < len(src) && src[i+1] > ' ' && src[i+1] != '=' && class[src[j]] == clsWord
	}
	return src[j] != ')' && src[j] != ']' && src[j] != '}' && src[j] != '"' && src[j] != '\'' && src[j] != '.'
}

// quoted returns the end of a literal, after its closing byte; opener, if not 0, nests.
func (r *ruby) quoted(i int, opener, closer byte, code bool, depth int) int {
	src := r.src
	for open := 1; i < len(src); i++ {
		c := src[i]
		switch {
		case c == '\\':
			i++
		case c == '#' && code && depth < maxNesting && i+1 < len(src) && src[i+1] == '{':
			i = r.code(i+2, depth+1) - 1
		case c == closer:
			open--
			if open == 0 {
				return i + 1
			}
		case opener != 0 && c == opener:
			open++
		}
	}
	return len(src)
}

// code returns the end of the code in #{…}.
func (r *ruby) code(i, depth int) int {
	begin := i
	for open := 1; i < len(r.src); {
		switch r.src[i] {
		case '{':
			open++
		case '}':
			open--
			if open == 0 {
				return i + 1
			}
		default:
			if j, ok := r.skip(i, begin, depth); ok && r.src[i] != '#' {
				i = j
				continue
			}
		}
		i++
	}
	return i
}

// percent returns the end of a literal such as %w[…] at i, or 0.
func (r *ruby) percent(i, depth int) int {
	src := r.src
	j := i + 1
	kind := byte('Q')
	if j < len(src) && strings.IndexByte("wWiIqQrxs", src[j]) >= 0 {
		kind = src[j]
		j++
	}
	if j >= len(src) || src[j] <= ' ' || inWord[src[j]] || src[j] == '=' {
		return 0
	}
	opener, closer := byte(0), src[j]
	switch closer {
	case '(':
		opener, closer = '(', ')'
	case '[':
		opener, closer = '[', ']'
	case '{':
		opener, closer = '{', '}'
	case '<':
		opener, closer = '<', '>'
	}
	return r.quoted(j+1, opener, closer, kind != 'q' && kind != 'w' && kind != 'i' && kind != 's', depth)
}

// hereName reads <<~X at i and returns the offset after it, or 0.
func (r *ruby) hereName(i, begin int) int {
	src := r.src
	j := i + 2
	marked := j < len(src) && (src[j] == '~' || src[j] == '-')
	if marked {
		j++
	}
	if j >= len(src) {
		return 0
	}
	quote := src[j]
	if quote == '"' || quote == '\'' || quote == '`' {
		k := strings.IndexByte(src[j+1:min(len(src), j+100)], quote)
		if k <= 0 {
			return 0
		}
		r.here = append(r.here, src[j+1:j+1+k])
		return j + k + 2
	}
	if class[quote] != clsWord || !marked && (quote < 'A' || quote > 'Z' || i > begin && inWord[src[i-1]]) || strings.HasSuffix(src[begin:i], "class ") {
		return 0
	}
	k := j
	for k < len(src) && inWord[src[k]] {
		k++
	}
	r.here = append(r.here, src[j:k])
	return k
}

// documents skips the here documents that begin at i.
func (r *ruby) documents(i int) int {
	src := r.src
	for _, name := range r.here {
		found := false
		for j := i; j < len(src) && !found; {
			eol := strings.IndexByte(src[j:], '\n')
			if eol < 0 {
				eol = len(src) - 1
			} else {
				eol += j
			}
			found = strings.TrimSpace(src[j:eol+1]) == name
			j = eol + 1
			if found {
				i = j
			}
		}
		if !found {
			r.guesses++
			break
		}
	}
	r.here = r.here[:0]
	return i
}
