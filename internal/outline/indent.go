package outline

import (
	"bytes"
	"cmp"
	"context"
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

// A logical line is one line to the language: physical lines that an open bracket, a literal
// or a backslash joins. Blank lines and comments are skipped.
type logical struct {
	pos, end int // without the line break
	indent   int // columns
	first    int // physical lines
	last     int
}

// A head is the definition in a logical line.
type head struct {
	name, kind string
	function   bool // definitions inside are local
	hidden     bool // opens a scope that is not a definition
	closed     bool // ends on the same line
}

// scanIndented finds definitions by indentation. The lexer gives the lines; head parses the definition in a line;
// end, if not "", is the word that closes a definition at its indentation.
func scanIndented(split func(string) []logical, read func(string) (head, bool), end string) func(*language, string) []Definition {
	return func(_ *language, src string) []Definition {
		var defs []Definition
		type frame struct {
			indent, def int
			function    bool
			depth       int
		}
		var open []frame
		prev := 0 // the previous physical line of code
		closeTo := func(k, last int) {
			for _, f := range open[k:] {
				if f.def >= 0 {
					d := &defs[f.def]
					d.End = max(d.End, last)
					d.Body = min(d.Body, d.End+1)
				}
			}
			open = open[:k]
		}
		for _, l := range split(src) {
			text := src[l.pos:l.end]
			k := len(open)
			for k > 0 && (open[k-1].indent > l.indent || end == "" && open[k-1].indent == l.indent) {
				k--
			}
			closeTo(k, prev)
			if k > 0 && open[k-1].indent == l.indent && beginsWith(text, end) {
				closeTo(k-1, l.last)
			}
			prev = l.last
			if len(open) > 0 && open[len(open)-1].function {
				continue
			}
			h, ok := read(text)
			if !ok {
				continue
			}
			depth := 0
			if len(open) > 0 {
				depth = open[len(open)-1].depth
			}
			def := -1
			if !h.hidden {
				def = len(defs)
				defs = append(defs, Definition{Name: h.name, Kind: h.kind, Start: l.first, End: l.last, Body: l.last + 1, Depth: depth})
				depth++
			}
			if !h.closed {
				open = append(open, frame{l.indent, def, h.function, depth})
			}
		}
		closeTo(0, prev)
		// A literal that is never closed includes the last line break.
		lines := 1 + strings.Count(strings.TrimSuffix(src, "\n"), "\n")
		for i := range defs {
			d := &defs[i]
			d.End = min(d.End, lines)
			d.Body = min(d.Body, d.End+1)
		}
		return nest(defs)
	}
}

// beginsWith reports whether a line begins with the word end, if there is one.
func beginsWith(text, end string) bool {
	rest, begins := strings.CutPrefix(text, end)
	return end != "" && begins && (rest == "" || strings.IndexByte(":?!=", rest[0]) < 0 && !inWord[rest[0]])
}

// indentation returns the columns of the blanks at i, and the offset after them.
func indentation(src string, i int, blanks string) (columns, after int) {
	for ; i < len(src) && strings.IndexByte(blanks, src[i]) >= 0; i++ {
		if src[i] == '\t' {
			columns = columns/8*8 + 8
		} else {
			columns++
		}
	}
	return columns, i
}

// A splitter splits a text into logical lines.
type splitter struct {
	blanks        string   // of an indentation
	opens, closes string   // brackets that join lines
	starts        []string // of lines that cannot be within brackets: one of those was never closed
	// block returns the end of a comment of whole lines that begins at i, the length of the text if no code follows, else i.
	block func(i int) int
	// skip returns the end of a comment or literal at i on the line whose code starts at begin.
	skip func(i, begin int) (end int, ok bool)
	next func(i int) int // skips the here documents that begin at i
}

func (s *splitter) split(src string) []logical {
	var out []logical
	line := 1
	for i := 0; i < len(src); {
		if j := s.block(i); j > i {
			line += strings.Count(src[i:j], "\n")
			i = j
			continue
		}
		indent := 0
		indent, i = indentation(src, i, s.blanks)
		begin, code := i, i // of the code
		first, last := line, line
		open := 0
		for i < len(src) {
			c := src[i]
			if c == '\n' {
				j := s.next(i + 1)
				if j > i+1 {
					last = line + strings.Count(src[i:j], "\n") - 1
				}
				line += strings.Count(src[i:j], "\n")
				i = j
				rest := strings.TrimLeft(src[i:min(len(src), i+200)], " \t")
				if open > 0 && !slices.ContainsFunc(s.starts, func(start string) bool { return strings.HasPrefix(rest, start) }) {
					continue
				}
				break
			}
			if j, ok := s.skip(i, begin); ok {
				line += strings.Count(src[i:j], "\n")
				if c != '#' {
					code, last = j, line
				}
				i = j
				continue
			}
			switch {
			case strings.IndexByte(s.opens, c) >= 0:
				open++
			case strings.IndexByte(s.closes, c) >= 0:
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

// pythonLines splits a text of Python.
func pythonLines(src string) []logical {
	none := func(i int) int { return i }
	skip := func(i, _ int) (end int, ok bool) {
		switch c := src[i]; {
		case c == '#':
			if k := strings.IndexByte(src[i:], '\n'); k >= 0 {
				return i + k, true
			}
			return len(src), true
		case c == '"' || c == '\'':
			return pythonString(src, i), true
		case c == '\\' && strings.HasPrefix(src[i+1:], "\r\n"):
			return i + 3, true
		case c == '\\' && i+1 < len(src):
			return i + 2, true
		}
		return i, false
	}
	s := splitter{" \t\f", "([{", ")]}", []string{"def ", "class ", "async def ", "@"}, none, skip, none}
	return s.split(src)
}

// pythonString is the offset after the literal that begins at i.
func pythonString(src string, i int) int {
	q := src[i]
	if len(src) >= i+3 && src[i+1] == q && src[i+2] == q {
		for j := i + 3; j < len(src); j++ {
			if src[j] == '\\' {
				j++
			} else if src[j] == q && strings.HasPrefix(src[j:], src[i:i+3]) {
				return j + 3
			}
		}
		return len(src)
	}
	for j := i + 1; j < len(src); j++ {
		switch src[j] {
		case '\\':
			j++
		case '\n':
			return j
		case q:
			return j + 1
		}
	}
	return len(src)
}

// pythonHead reads def and class.
func pythonHead(text string) (head, bool) {
	h := head{}
	rest, ok := strings.CutPrefix(text, "async")
	if ok {
		rest = strings.TrimLeft(rest, " \t")
	}
	switch {
	case strings.HasPrefix(rest, "def ") || strings.HasPrefix(rest, "def\t"):
		h.kind, h.function = "def", true
		rest = rest[3:]
	case !ok && (strings.HasPrefix(rest, "class ") || strings.HasPrefix(rest, "class\t")):
		h.kind = "class"
		rest = rest[5:]
	default:
		return h, false
	}
	rest = strings.TrimLeft(rest, " \t")
	k := wordEnd(rest)
	h.name = rest[:k]
	rest = strings.TrimLeft(rest[k:], " \t\\\r\n")
	if h.name == "" || rest == "" || rest[0] != '(' && rest[0] != ':' && rest[0] != '[' {
		return h, false
	}
	return h, true
}

const defaultMaxBytes = 1 << 20

// maxLinks limits how many symbolic links are followed to a file.
const maxLinks = 16

// sniffed is how many bytes of a file are searched for a zero byte, which text files do not
// have. Git uses the same number.
const sniffed = 8000

// Options adjust [Files].
type Options struct {
	// Root is the directory that must contain all files, and that relative paths are relative
	// to. Required.
	Root string
	// Chars is the budget of all blocks together, in UTF-16 code units; 0 means
	// [DefaultChars].
	Chars int
	// MaxBytes is the size above which a file is not read; 0 means 1 MiB.
	MaxBytes int64
	// Ignore has patterns of more files that are not read, in the syntax of .gitignore, relative to Root. They take
	// precedence over .gitignore files, so !x reads a file that one of those ignores.
	Ignore []string
}

// Files reads and folds the files of paths, in order. Give the newest first, because the
// budget of [Pack] leaves out the last ones. A path that appears twice is read once.
//
// These are never opened, and are skipped with a reason:
//
//   - files outside of Root, even if a symbolic link leads to them;
//   - files that .gitignore files ignore, under Root and above it up to the top of its git
//     repository, with .git/info/exclude, as git does for files that are not tracked;
//   - files that the .rooignore in Root or Options.Ignore ignores, and files in .git;
//   - files of unknown languages, files that are not regular, and files above MaxBytes.
//
// A file with a zero byte near its beginning is skipped as binary. Files does not fail because
// of a single file: it fails if Root, or the patterns that apply to all of it, cannot be read,
// and with ctx.Err() if ctx ends.
func Files(ctx context.Context, paths []string, o Options) (Folded, error) {
	if o.Root == "" {
		return Folded{}, errors.New("outline: no root directory")
	}
	o.Chars = cmp.Or(o.Chars, DefaultChars)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	root, err := os.OpenRoot(o.Root)
	if err != nil {
		return Folded{}, fmt.Errorf("outline: %w", err)
	}
	defer func() { _ = root.Close() }() // read only
	r := &reader{root: root, max: o.MaxBytes, seen: make(map[string]bool)}
	if r.dir, err = filepath.Abs(o.Root); err == nil {
		r.real, err = filepath.EvalSymlinks(r.dir)
	}
	if err != nil {
		return Folded{}, fmt.Errorf("outline: %w", err)
	}
	if r.ignore, err = newIgnorer(root, o.Ignore); err != nil {
		return Folded{}, fmt.Errorf("outline: ignored files: %w", err)
	}
	f := Pack(paths, o.Chars, func(name string) (string, error) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		return r.fold(name)
	})
	return f, ctx.Err()
}

// A reader reads files under a root.
type reader struct {
	root      *os.Root
	dir, real string // the root, absolute; without links
	max       int64
	ignore    *ignorer
	seen      map[string]bool
}

// Reasons to skip a file.
var (
	errNothing  = errors.New("nothing to outline")
	errBudget   = errors.New("over the budget")
	errOutside  = errors.New("outside the root directory")
	errLanguage = errors.New("no outline for this kind of file")
	errRegular  = errors.New("not a regular file")
	errBinary   = errors.New("binary")
	errTwice    = errors.New("named before")
)

func (r *reader) fold(name string) (string, error) {
	if Language(name) == "" {
		return "", errLanguage
	}
	rel, err := r.local(name)
	if err != nil {
		return "", err
	}
	file, err := r.resolve(rel)
	if err != nil {
		return "", err
	}
	if err := r.ignore.ignored(rel); err != nil {
		return "", err
	}
	if file != rel {
		if err := r.ignore.ignored(file); err != nil {
			return "", err
		}
	}
	if r.seen[file] {
		return "", errTwice
	}
	r.seen[file] = true
	src, err := r.read(file)
	if err != nil {
		return "", err
	}
	return Fold(name, src), nil
}

// local returns a path relative to the root, with slashes.
func (r *reader) local(name string) (string, error) {
	rel := name
	if filepath.IsAbs(name) {
		var err error
		if rel, err = filepath.Rel(r.dir, name); err != nil || !filepath.IsLocal(rel) {
			if rel, err = filepath.Rel(r.real, name); err != nil {
				return "", errOutside
			}
		}
	}
	if !filepath.IsLocal(rel) || strings.ContainsRune(rel, 0) {
		return "", errOutside
	}
	return filepath.ToSlash(filepath.Clean(rel)), nil
}

// resolve follows the symbolic links of a path, so that their target can be checked.
func (r *reader) resolve(name string) (string, error) {
	done := "."
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		info, err := r.root.Lstat(filepath.FromSlash(next))
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", errors.New("too many symbolic links")
		}
		target, err := r.root.Readlink(filepath.FromSlash(next))
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.FromSlash(done), target)
		}
		if target, err = r.local(target); err != nil {
			return "", err
		}
		done, rest = ".", append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

// read opens a file that is not reached through a link. It cannot block: a pipe that replaces
// the file after the check is opened without waiting.
func (r *reader) read(name string) (string, error) {
	name = filepath.FromSlash(name)
	info, err := r.root.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errRegular
	}
	f, err := r.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	if info, err = f.Stat(); err != nil {
		return "", err
	}
	switch {
	case !info.Mode().IsRegular():
		return "", errRegular
	case info.Size() > r.max:
		return "", fmt.Errorf("larger than %d bytes", r.max)
	}
	text, err := io.ReadAll(io.LimitReader(f, r.max+1))
	switch {
	case err != nil:
		return "", err
	case int64(len(text)) > r.max:
		return "", fmt.Errorf("larger than %d bytes", r.max)
	case bytes.IndexByte(text[:min(len(text), sniffed)], 0) >= 0:
		return "", errBinary
	}
	return string(text), nil
}
