package outline

import "strings"

// A pattern is a line of a .gitignore. Its rules are those of gitignore(5); the tests
// compare with git itself.
type pattern struct {
	prefix   string   // of an anchored one: what comes before the first special byte
	segments []string // the rest between slashes, or the whole if it may match at any depth
	anchored bool
	dirOnly  bool
	negated  bool
	line     string
}

// parsePatterns reads the lines of a .gitignore.
func parsePatterns(text string) []pattern {
	var out []pattern
	text = strings.TrimPrefix(text, "\uFEFF")
	for line := range strings.SplitSeq(text, "\n") {
		line = trimPattern(strings.TrimSuffix(line, "\r"))
		p := pattern{line: line}
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '!' {
			p.negated = true
			line = line[1:]
		}
		if s, ok := strings.CutSuffix(line, "/"); ok {
			p.dirOnly = true
			line = s
		}
		if line == "" {
			continue
		}
		p.anchored = strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if p.anchored {
			k := strings.IndexAny(line, `*?[\`)
			if k < 0 {
				k = len(line)
			}
			p.prefix, line = line[:k], line[k:]
		}
		p.segments = splitPattern(line)
		out = append(out, p)
	}
	return out
}

// splitPattern splits at slashes that are not part of a set.
func splitPattern(line string) []string {
	var out []string
	begin := 0
	for i := 0; i < len(line); {
		switch line[i] {
		case '/':
			out = append(out, line[begin:i])
			begin = i + 1
		case '\\':
			i++
		case '[':
			if n, _ := globSet(line[i:], 0); n > 0 {
				i += n
				continue
			}
		}
		i++
	}
	out = append(out, line[begin:])
	for i, s := range out {
		if len(s) > 2 && strings.Trim(s, "*") == "" {
			out[i] = "**"
		}
	}
	return out
}

// trimPattern removes trailing spaces that no backslash protects.
func trimPattern(line string) string {
	for strings.HasSuffix(line, " ") {
		k := len(line) - 1
		slashes := 0
		for k-1-slashes >= 0 && line[k-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 1 {
			break
		}
		line = line[:k]
	}
	return line
}

// match reports whether p names the file or directory whose path is made of segs, relative
// to the directory of the pattern.
func (p *pattern) match(segs []string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if !p.anchored {
		return glob(p.segments[0], segs[len(segs)-1])
	}
	// Git, too, compares the prefix first. It is seen in a**/b, where ** then begins what is
	// left and stands for directories.
	rest, ok := strings.CutPrefix(strings.Join(segs, "/"), p.prefix)
	return ok && matchSegments(p.segments, strings.Split(rest, "/"))
}

// matchSegments matches a path. A segment ** stands for any number of directories, and at
// the end for at least one thing. It goes back to the last ** only, so the time is bounded
// by the product of the lengths.
func matchSegments(pat, segs []string) bool {
	i, j := 0, 0
	star, from := -1, 0
	for j < len(segs) {
		switch {
		case i < len(pat) && pat[i] == "**":
			if i == len(pat)-1 {
				return true
			}
			star, from = i, j
			i++
		case i < len(pat) && glob(pat[i], segs[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return i == len(pat)
}

// glob matches one segment. It goes back to the last * only.
func glob(pat, s string) bool {
	i, j := 0, 0
	star, from := -1, 0
	for j < len(s) {
		if i < len(pat) && pat[i] == '*' {
			star, from = i, j
			i++
			continue
		}
		if i < len(pat) {
			if n, ok := globByte(pat[i:], s[j]); ok {
				i += n
				j++
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		i, j = star+1, from
	}
	for i < len(pat) && pat[i] == '*' {
		i++
	}
	return i == len(pat)
}

// globByte matches a byte with the first element of a pattern, of n bytes. Like git, it
// knows bytes, not characters.
func globByte(pat string, c byte) (n int, ok bool) {
	switch pat[0] {
	case '?':
		return 1, true
	case '\\':
		if len(pat) == 1 {
			return 0, false
		}
		return 2, pat[1] == c
	case '[':
		return globSet(pat, c)
	}
	return 1, pat[0] == c
}

// globSet matches a byte with the set that a pattern begins with.
func globSet(pat string, c byte) (n int, ok bool) {
	i := 1
	negated := i < len(pat) && (pat[i] == '!' || pat[i] == '^')
	if negated {
		i++
	}
	for first := true; ; first = false {
		if i >= len(pat) {
			return 0, false // never closed: matches nothing
		}
		if pat[i] == ']' && !first {
			return i + 1, ok != negated
		}
		if strings.HasPrefix(pat[i:], "[:") {
			if end := strings.Index(pat[i+2:], ":]"); end >= 0 {
				in, known := posix[pat[i+2:i+2+end]]
				if !known {
					return 0, false
				}
				ok = ok || in(c)
				i += end + 4
				continue
			}
		}
		lo := pat[i]
		if lo == '\\' && i+1 < len(pat) {
			i++
			lo = pat[i]
		}
		i++
		hi := lo
		if i+1 < len(pat) && pat[i] == '-' && pat[i+1] != ']' {
			i++
			hi = pat[i]
			if hi == '\\' && i+1 < len(pat) {
				i++
				hi = pat[i]
			}
			i++
		}
		ok = ok || c == lo || lo <= c && c <= hi // as git: [z-a] is z
	}
}

var posix = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  func(c byte) bool { return c > ' ' && c < 0x7f },
	"lower":  func(c byte) bool { return c >= 'a' && c <= 'z' },
	"print":  func(c byte) bool { return c >= ' ' && c < 0x7f },
	"punct":  func(c byte) bool { return c > ' ' && c < 0x7f && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' },
	"upper":  func(c byte) bool { return c >= 'A' && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' },
}

func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
