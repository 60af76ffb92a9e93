// Package disk writes files whole or not at all: a program that is killed leaves the old file,
// and a file that is reported as written survives a loss of power.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
)

// StateDir returns the folder of the program for state, by the XDG Base Directory Specification on every system:
// condense in $XDG_STATE_HOME or ~/.local/state. It is not made.
func StateDir() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("there is no home folder: %w", err)
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "condense"), nil
}

// SyncDir writes the names in a folder to the disk. After [os.File.Sync] the content of a new
// file is on the disk, but its name only after SyncDir. It does nothing if the system or the
// file system has no such call.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a folder that can be written but not listed
	}
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Put writes the file path, readable by its owner only, and replaces an existing one. If it
// returns nil, the file is on the disk; if it returns an error, the file is unchanged. The folder
// tmp, for the temporary file, must be on the same file system as path.
func Put(path, tmp string, data []byte) error {
	name, err := temporary(tmp, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		_ = os.Remove(name) // it may not be there
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Create is [Put] for a new file, with the output of write. If there is a file already, the error
// is [fs.ErrExist].
func Create(path string, write func(io.Writer) error) error {
	name, err := temporary(filepath.Dir(path), write)
	defer os.Remove(name) //nolint:errcheck // the second name of the file, or gone already
	if err != nil {
		return err
	}
	// Unlike a rename, a link never replaces a file.
	err = os.Link(name, path)
	if err == nil {
		return SyncDir(filepath.Dir(path))
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// The file system has no links: reserve the name first.
	taken, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := taken.Close(); err != nil {
		return err
	}
	if err := os.Rename(name, path); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return SyncDir(filepath.Dir(path))
}

// temporary writes a file with a new name, readable by its owner only, to the disk.
func temporary(dir string, write func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(dir, ".part-*") // with 0600
	if err != nil {
		return "", err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	return f.Name(), errors.Join(err, f.Close())
}

// FromHere returns the form of path to print: relative to the working directory if it is below
// it, and unchanged otherwise.
func FromHere(path string) string {
	wd, err := os.Getwd()
	if err != nil || !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// SQLite returns a database's address with parameters. It has no //, after which a drive of Windows would be a host.
func SQLite(path string, query url.Values) string {
	return "file:" + url.PathEscape(path) + "?" + query.Encode()
}

// Pattern escapes a path for use in a pattern of [filepath.Glob].
func Pattern(path string) string { return special.ReplaceAllString(path, `\$0`) }

var special = regexp.MustCompile(`[*?\[\\]`)

// ReadFile reads a regular file, or what a link leads to, of at most this many bytes. A repository may have a pipe or a link to a device in
// the place of a file: reading would not end.
func ReadFile(file string, most int) ([]byte, error) {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("is %s, not a file", fileKind(info.Mode()))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(text) > most {
		text, err = nil, fmt.Errorf("larger than %d MiB", most>>20)
	}
	return text, err
}

func fileKind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "a device or a socket"
}
