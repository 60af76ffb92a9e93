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
)

// maxIgnoreFile bounds the size of a file with patterns, in bytes.
const maxIgnoreFile = 1 << 20

// A level is the patterns of one file, for paths beneath its directory.
type level struct {
	source   string // for messages
	dir      []string
	patterns []pattern
}

// last is the last pattern of the level that names a path, or nil.
func (l *level) last(segs []string, isDir bool) *pattern {
	if len(segs) <= len(l.dir) {
		return nil
	}
	for i, d := range l.dir {
		if segs[i] != d {
			return nil
		}
	}
	for i := len(l.patterns) - 1; i >= 0; i-- {
		if p := &l.patterns[i]; p.match(segs[len(l.dir):], isDir) {
			return p
		}
	}
	return nil
}

// An ignorer decides which files beneath a root may not be read. Paths have slashes.
type ignorer struct {
	root   *os.Root
	above  []string          // from the top of the git repository to the root
	base   []*level          // lowest precedence first: info/exclude, .gitignore above the root
	extra  *level            // the caller's
	roo    *level            // .rooignore, which nothing overrides
	nested map[string]*level // by directory; nil: none
	failed map[string]error  // .gitignore that cannot be read
}

// newIgnorer reads the patterns that hold for a whole root. Patterns of directories above
// it count if they belong to the same git repository, because they do for git.
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

// repository reads the patterns of a git repository that are not beneath the root.
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

// ignored says why a file beneath the root may not be read, or nil.
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

// git is the pattern that decides on a path, and where it stands.
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

// level reads the .gitignore of a directory beneath the root, once.
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

// readIgnoreFile reads a file with patterns; one that does not exist has none. Git takes no
// link for a .gitignore, hence stat; Roo follows one to a .rooignore.
func readIgnoreFile(root *os.Root, name string, stat func(string) (fs.FileInfo, error)) (string, error) {
	info, err := stat(filepath.FromSlash(name))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
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
