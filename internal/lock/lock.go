// Package lock reads and writes condense.lock, the list of the plugins that somebody
// approved. A line is what sha256sum writes, for paths relative to the folder of the file:
//
//	9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  ours
//	60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752  tools/dedupe/
//
// A path that ends with a slash is a folder, and its digest that of all its files. Empty
// lines and those that begin with # say nothing. The file is for version control: one line
// a plugin, sorted when condense writes it, comments kept.
package lock

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Name is that of the file, beside the configuration that names the plugins.
const Name = "condense.lock"

// maxBytes is more than ten thousand plugins need.
const maxBytes = 1 << 20

// A File is a lock file as it was read. It is not safe for concurrent use.
type File struct {
	dir   string
	lines []line
}

// A line is a pin, or a text without meaning if it has no digest.
type line struct {
	text   string
	digest string // in lower case
	path   string // clean, with slashes, one at the end of a folder's
}

// Read reads the lock file of a folder. One that does not exist has no pins. The error
// names every line that is wrong.
func Read(dir string) (*File, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f := &File{dir: dir}
	text, err := readLimited(f.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := f.parse(text); err != nil {
		return nil, err
	}
	return f, nil
}

func readLimited(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && len(text) > maxBytes {
		err = fmt.Errorf("%s: larger than %d MiB", path, maxBytes>>20)
	}
	return text, err
}

// Path returns the path of the file.
func (f *File) Path() string { return filepath.Join(f.dir, Name) }

var pinned = regexp.MustCompile(`^([0-9a-fA-F]{64})  (\S(?:.*\S)?)$`)

func (f *File) parse(text []byte) error {
	var errs []error
	seen := map[string]int{}
	fault := func(n int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s:%d: %w", f.Path(), n, fmt.Errorf(format, args...)))
	}
	n := 0
	for s := range strings.Lines(string(text)) {
		n++
		s = strings.TrimRight(s, "\r\n")
		if trimmed := strings.TrimSpace(s); trimmed == "" || trimmed[0] == '#' {
			f.lines = append(f.lines, line{text: s})
			continue
		}
		m := pinned.FindStringSubmatch(s)
		if m == nil {
			fault(n, "%.100q is not a checksum of 64 hexadecimal digits, two spaces and a path", s)
			continue
		}
		l := line{text: s, digest: strings.ToLower(m[1]), path: clean(m[2])}
		if bad := badPath(m[2]); bad != "" {
			fault(n, "the path %.100q %s", m[2], bad)
		} else if first, ok := seen[l.path]; ok {
			fault(n, "%.100q stands in line %d already", l.path, first)
		}
		seen[l.path] = n
		f.lines = append(f.lines, l)
	}
	return errors.Join(errs...)
}

func clean(path string) string {
	c := filepath.ToSlash(filepath.Clean(filepath.FromSlash(path)))
	if strings.HasSuffix(path, "/") && c != "/" {
		c += "/"
	}
	return c
}

// badPath says why a path cannot stand in a file, or "".
func badPath(path string) string {
	for _, r := range path {
		if r < ' ' || r == 0x7f {
			return "holds a control character"
		}
	}
	if path != strings.TrimSpace(path) {
		return "begins or ends with a space"
	}
	return ""
}

// key returns how a plugin stands in the file.
func (f *File) key(path string, folder bool) string {
	if rel, err := filepath.Rel(f.dir, path); err == nil {
		path = rel
	}
	path = filepath.ToSlash(path)
	if folder {
		path += "/"
	}
	return clean(path)
}

// Digest returns the digest that pins the file or folder at an absolute path; empty if none
// does.
func (f *File) Digest(path string, folder bool) string {
	key := f.key(path, folder)
	for _, l := range f.lines {
		if l.path == key {
			return l.digest
		}
	}
	return ""
}

// Set pins the file or folder at an absolute path, for [File.Write]. The error says why its
// name cannot stand in a lock file.
func (f *File) Set(path string, folder bool, digest string) error {
	key := f.key(path, folder)
	if bad := badPath(key); bad != "" {
		return fmt.Errorf("%s: the path %q %s", f.Path(), key, bad)
	}
	l := line{text: digest + "  " + key, digest: strings.ToLower(digest), path: key}
	if !pinned.MatchString(l.text) {
		return fmt.Errorf("%s: %q is not a digest of 64 hexadecimal digits", f.Path(), digest)
	}
	at := len(f.lines)
	for i, other := range f.lines {
		switch {
		case other.path == key:
			f.lines[i] = l
			return nil
		case other.digest != "" && cmp.Less(key, other.path) && at == len(f.lines):
			at = i
		}
	}
	f.lines = slices.Insert(f.lines, at, l)
	return nil
}

// Write writes the file, so that it is there whole or as it was.
func (f *File) Write() error {
	var text bytes.Buffer
	if len(f.lines) > 0 && f.lines[0].digest != "" {
		text.WriteString("# Plugins that condense may start, as 'condense plugin pin' found them.\n")
	}
	for _, l := range f.lines {
		text.WriteString(l.text + "\n")
	}
	tmp, err := os.CreateTemp(f.dir, "."+Name+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text.Bytes())
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.Path())
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // it is of no use
	}
	return err
}
