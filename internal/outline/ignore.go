package outline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxIgnoreFile limits the size of a file with patterns, in bytes.
const maxIgnoreFile = 1 << 20

// A level is the patterns of one file, for paths under its directory.
type level struct {
	source   string // for messages
	dir      []string
	patterns []pattern
}

// last returns the last pattern of the level that matches a path, or nil.
func (l *level) last(segs []string, isDir bool) *pattern {
	if len(segs) <= len(l.dir) {
		return nil
	}
	if !slices.Equal(segs[:len(l.dir)], l.dir) {
		return nil
	}
	for i := len(l.patterns) - 1; i >= 0; i-- {
		if p := &l.patterns[i]; p.match(segs[len(l.dir):], isDir) {
			return p
		}
	}
	return nil
}

// An ignorer decides which files under a root may not be read. Paths have slashes.
type ignorer struct {
	root   *os.Root
	above  []string          // from the top of the git repository to the root
	base   []*level          // lowest precedence first: info/exclude, .gitignore above the root
	extra  *level            // the caller's
	roo    *level            // .rooignore, which nothing overrides
	nested map[string]*level // by directory; nil: none
	failed map[string]error  // .gitignore that cannot be read
}

// newIgnorer reads the patterns that apply to a whole root. Patterns of directories above it
// apply if they belong to the same git repository, as in git.
func newIgnorer(root *os.Root, extra []string) (*ignorer, error) {
	g := &ignorer{root: root, nested: make(map[string]*level), failed: make(map[string]error)}
	g.extra = &level{source: "the settings", patterns: parsePatterns(strings.Join(extra, "\n"))}
	text, err := readIgnoreFile(root, ".rooignore", root.Stat)
	if err != nil {
		return nil, err
	}
	g.roo = &level{source: ".rooignore", patterns: parsePatterns(text)}
	dir, err := filepath.Abs(root.Name())
	if err != nil {
		return nil, err
	}
	for top := dir; ; {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return g, g.repository(top, dir)
		}
		parent := filepath.Dir(top)
		if parent == top {
			return g, nil
		}
		top = parent
	}
}

// Ignored returns a function that reports whether git ignores a file under root, by its name with slashes.
func Ignored(root *os.Root) (func(name string) bool, error) {
	g, err := newIgnorer(root, nil)
	return func(name string) bool { return g.ignored(name) != nil }, err
}

// repository reads the patterns of a git repository that are not under the root.
func (g *ignorer) repository(top, dir string) error {
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return err
	}
	if rel != "." {
		g.above = strings.Split(filepath.ToSlash(rel), "/")
	}
	read := func(dir []string, name string) error {
		r, err := os.OpenRoot(filepath.Join(append([]string{top}, dir...)...))
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }() // read only
		text, err := readIgnoreFile(r, name, r.Lstat)
		g.base = append(g.base, &level{path.Join(path.Join(dir...), name), dir, parsePatterns(text)})
		return err
	}
	if err := read(nil, ".git/info/exclude"); err != nil {
		return err
	}
	for k := range g.above {
		if err := read(g.above[:k], ".gitignore"); err != nil {
			return err
		}
	}
	return nil
}

// ignored returns why a file under the root may not be read, or nil.
func (g *ignorer) ignored(name string) error {
	segs := strings.Split(name, "/")
	full := append(append([]string(nil), g.above...), segs...)
	for k := 1; k <= len(segs); k++ {
		if segs[k-1] == ".git" {
			return errors.New("ignored: part of a git repository")
		}
		isDir := k < len(segs)
		if p := g.roo.last(segs[:k], isDir); p != nil && !p.negated {
			return fmt.Errorf("ignored by %s: %s", g.roo.source, p.line)
		}
		p, source, err := g.git(segs[:k], full[:len(g.above)+k], isDir)
		if err != nil {
			return err
		}
		if p != nil && !p.negated {
			return fmt.Errorf("ignored by %s: %s", source, p.line)
		}
	}
	return nil
}

// git returns the pattern that decides on a path, and its source.
func (g *ignorer) git(segs, full []string, isDir bool) (*pattern, string, error) {
	if p := g.extra.last(segs, isDir); p != nil {
		return p, g.extra.source, nil
	}
	for k := range slices.Backward(segs) {
		l, err := g.level(segs[:k])
		if err != nil {
			return nil, "", err
		}
		if p := l.last(segs, isDir); p != nil {
			return p, l.source, nil
		}
	}
	for _, l := range slices.Backward(g.base) {
		if p := l.last(full, isDir); p != nil {
			return p, l.source, nil
		}
	}
	return nil, "", nil
}

// level reads the .gitignore of a directory under the root, once.
func (g *ignorer) level(dir []string) (*level, error) {
	name := path.Join(path.Join(dir...), ".gitignore")
	if l, ok := g.nested[name]; ok {
		return l, g.failed[name]
	}
	text, err := readIgnoreFile(g.root, name, g.root.Lstat)
	l := &level{name, dir, parsePatterns(text)}
	g.nested[name], g.failed[name] = l, err
	return l, err
}

// readIgnoreFile reads a file with patterns; a missing file has none. Git does not follow a
// link for a .gitignore, so stat is a parameter; Roo follows one for a .rooignore.
func readIgnoreFile(root *os.Root, name string, stat func(string) (fs.FileInfo, error)) (string, error) {
	info, err := stat(filepath.FromSlash(name))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return "", nil
		}
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", nil
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile+1))
	if err == nil && len(text) > maxIgnoreFile {
		err = fmt.Errorf("%s: more than %d bytes", name, maxIgnoreFile)
	}
	return string(text), err
}

// A pattern is a line of a .gitignore. Its rules are those of gitignore(5); the tests
// compare with git itself.
type pattern struct {
	prefix   string   // of an anchored pattern: the text before the first special byte
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
	// Git also compares the prefix first. The difference shows in a**/b, where ** then begins
	// the rest and matches directories.
	rest, ok := strings.CutPrefix(strings.Join(segs, "/"), p.prefix)
	return ok && matchSegments(p.segments, strings.Split(rest, "/"))
}

// matchSegments matches a path. A segment ** matches any number of directories, and at the end
// at least one name. It backtracks to the last ** only, so the time is bounded by the product
// of the lengths.
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

// glob matches one segment. It backtracks to the last * only.
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
// matches bytes, not characters.
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
