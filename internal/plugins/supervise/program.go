package supervise

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A program is the bytes that were checked, in a place where no other user can change them
// between check and use:
//
//   - on Linux a binary is copied into memory that is sealed against writing, and run from
//     there;
//   - a script, a tree, and everything on other systems is copied into the private folder.
//
// The copy is made while it is hashed, and is used for every start until [program.close].
type program struct {
	path string   // the path to execute
	args []string // the first arguments, from the name of the program on
	dir  string   // the working directory: where the plugin is installed
	seal *os.File // the sealed memory; else nil
	temp string   // in the private folder; else empty

	users int // guarded by the lock of the Process
}

// use and unuse count the users of p, which may be nil. unuse reports whether there is none
// left.
func (p *program) use() {
	if p != nil {
		p.users++
	}
}

func (p *program) unuse() bool {
	if p == nil {
		return false
	}
	p.users--
	return p.users == 0
}

// loadProgram reads and checks the program of s, with copies in dir. The program has one
// user.
func loadProgram(s *Spec, dir *privateDir) (*program, error) {
	p := &program{dir: filepath.Dir(s.Path), args: []string{s.Path}, users: 1}
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	var sum string
	if s.Tree != "" {
		sum, err = p.loadTree(s, dir)
	} else if len(s.Interpreter) > 0 {
		sum, err = p.loadData(s, f, dir)
	} else {
		sum, err = p.loadFile(s, f, dir)
	}
	if err == nil && s.SHA256 != "" && sum != s.SHA256 {
		err = &ChecksumError{Path: cmp.Or(s.Tree, s.Path), Want: s.SHA256, Got: sum}
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *program) loadTree(s *Spec, dir *privateDir) (string, error) {
	rel, err := filepath.Rel(s.Tree, s.Path)
	if err != nil {
		return "", err
	}
	if p.temp, err = dir.mkdir(); err != nil {
		return "", err
	}
	p.path = filepath.Join(p.temp, rel)
	p.dir = filepath.Dir(p.path)
	return copyTree(s.Tree, p.temp)
}

func (p *program) loadFile(s *Spec, f *os.File, dir *privateDir) (sum string, err error) {
	// The interpreter of a script opens it by name, after the kernel has closed our file, so
	// a script cannot run from memory.
	script := make([]byte, 2)
	n, err := io.ReadFull(f, script)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	whole := io.MultiReader(bytes.NewReader(script[:n]), f)
	if string(script) != "#!" {
		mem, sum, err := sealed(whole)
		if err == nil {
			p.seal, p.path = mem, sealedPath(mem)
			return sum, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return "", fmt.Errorf("%s: %w", s.Path, err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		whole = f
	}
	p.path, sum, err = p.copy(s, whole, dir, 0o500)
	return sum, err
}

// copy copies the file of s to a folder of its own.
func (p *program) copy(s *Spec, src io.Reader, dir *privateDir, mode fs.FileMode) (file, sum string, err error) {
	if p.temp, err = dir.mkdir(); err != nil {
		return "", "", err
	}
	file = filepath.Join(p.temp, filepath.Base(s.Path))
	if sum, err = copyTo(file, src, mode); err != nil {
		return "", "", fmt.Errorf("%s: %w", s.Path, err)
	}
	return file, sum, nil
}

// loadData copies the script that the interpreter of s runs.
func (p *program) loadData(s *Spec, f *os.File, dir *privateDir) (string, error) {
	by, err := openProgram(s.Interpreter[0], true)
	if err != nil {
		return "", fmt.Errorf("the program that runs it: %w", err)
	}
	_ = by.Close()
	file, sum, err := p.copy(s, f, dir, 0o400)
	p.path = s.Interpreter[0]
	p.args = append(slices.Clone(s.Interpreter), sum, file)
	return sum, err
}

func (p *program) close() error {
	err := closeIf(p.seal)
	if p.temp != "" {
		err = errors.Join(err, removeAll(p.temp))
	}
	return err
}

// A larger plugin is assumed to be a mistake in the configuration.
const (
	maxProgramBytes = 1 << 30
	maxTreeFiles    = 50_000
)

// A ChecksumError means that the plugin differs from the approved one.
type ChecksumError struct {
	Path string // the file or the tree
	Want string // as pinned
	Got  string
}

// Error shows both digests and the remedy.
func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s is not the plugin that was pinned: its SHA-256 is %s, pinned is %s; if you changed or updated it "+
		"yourself, pin it again (condense plugin pin), otherwise find out who did",
		e.Path, e.Got, e.Want)
}

// Digest returns the digest that pins the plugin of s: the SHA-256, in hex, of the file Path, or of the folder Tree
// if that is set. The digest of a folder is the SHA-256 of the list of its files,
//
//	find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum
//
// Only regular files count, at any depth. Symbolic links are not part of a plugin, and
// neither are files that change independently: a condense.lock at the top, the folders .git
// and __pycache__. Files that are not part of it do not exist when it runs. Neither are permissions: in the copy that runs every
// file is executable. A name with a control character, such as a line break, is an error: the list could mean two folders.
func Digest(s Spec) (string, error) {
	if s.Tree != "" {
		return copyTree(s.Tree, "")
	}
	f, err := s.open()
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	return copyDigest(io.Discard, f)
}

// copyDigest copies src to dst and returns its SHA-256 in hex.
func copyDigest(dst io.Writer, src io.Reader) (string, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(dst, h), io.LimitReader(src, maxProgramBytes+1))
	if err != nil {
		return "", err
	}
	if n > maxProgramBytes {
		return "", fmt.Errorf("larger than %d MiB", maxProgramBytes>>20)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// openProgram opens the file of a plugin, which must be executable unless an interpreter runs it. The error says why it cannot run.
func openProgram(path string, executes bool) (*os.File, error) {
	// A pipe or a device would block when opened or read.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder, not a program", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case executes && !executable(info):
		return nil, fmt.Errorf("%s is not executable (mode %s): try chmod +x: %w", path, info.Mode().Perm(), fs.ErrPermission)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// copyTree copies the regular files of the folder src into the new folder dst, or only
// reads them if dst is empty, and returns the digest of the tree; see [Digest].
func copyTree(src, dst string) (string, error) {
	list, files, left := sha256.New(), 0, int64(maxProgramBytes)
	// WalkDir's order differs from the order of whole paths ("a/b" before "a.b"), so paths
	// are collected and sorted first.
	var paths []string
	err := filepath.WalkDir(src, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "__pycache__") && p != src {
			return fs.SkipDir
		}
		if e.Type().IsRegular() && p != filepath.Join(src, "condense.lock") {
			if files++; files > maxTreeFiles {
				return fmt.Errorf("%s has more than %d files", src, maxTreeFiles)
			}
			rel, err := filepath.Rel(src, p)
			if err != nil {
				return err
			}
			if strings.ContainsFunc(rel, unicode.IsControl) {
				return fmt.Errorf("%s: the name %q has a control character: rename the file, or remove it", src, rel)
			}
			paths = append(paths, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(src)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // only read
	slices.Sort(paths)
	for _, rel := range paths {
		sum, size, err := copyFile(root, rel, dst)
		if err != nil {
			return "", fmt.Errorf("%s: %w", filepath.Join(src, rel), err)
		}
		if left -= size; left < 0 {
			return "", fmt.Errorf("%s is larger than %d MiB", src, maxProgramBytes>>20)
		}
		_, _ = fmt.Fprintf(list, "%s  %s\n", sum, rel)
	}
	return hex.EncodeToString(list.Sum(nil)), nil
}

// copyFile copies one file of a tree. The file may have changed since the tree was listed;
// root ensures that nothing outside is read.
func copyFile(root *os.Root, rel, dst string) (sum string, size int64, err error) {
	in, err := root.Open(filepath.FromSlash(rel))
	if err != nil {
		return "", 0, err
	}
	defer in.Close() //nolint:errcheck // only read
	info, err := in.Stat()
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() {
		return "", 0, errors.New("no longer a file")
	}
	if dst == "" {
		sum, err = copyDigest(io.Discard, in)
		return sum, info.Size(), err
	}
	to := filepath.Join(dst, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", 0, err
	}
	sum, err = copyTo(to, in, 0o700)
	return sum, info.Size(), err
}

// copyTo writes src to the new file path and returns its digest.
func copyTo(path string, src io.Reader, mode fs.FileMode) (string, error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return "", err
	}
	sum, err := copyDigest(out, src)
	return sum, errors.Join(err, out.Close())
}
