package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/condensehq/condense/internal/disk"
)

// A File is a file to write, whole or not at all: see package disk. Call [OpenFile] before the work, so that a wrong path is found early.
type File struct {
	path   string      // as given, for errors
	target string      // path with links followed
	mode   fs.FileMode // of a new file, before the umask
	old    fs.FileInfo // the existing file at the time of OpenFile; nil if there was none
}

// OpenFile checks that the file path can be written, and changes nothing. Links are followed, also
// to a file that does not exist yet. An existing file keeps its mode and its owner; a new one
// gets mode, minus the umask.
//
// OpenFile refuses a file that is read-only or has several names (hard links), because replacing the
// file would silently undo both. Devices and pipes are written directly.
func OpenFile(path string, mode fs.FileMode) (*File, error) {
	target, err := resolve(path)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, Cause(err))
	}
	f := &File{path: path, target: target, mode: mode.Perm() &^ 0o111}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, f.fault(err)
	case info.IsDir():
		return nil, f.fault(errors.New("it is a folder; name a file"))
	case !info.Mode().IsRegular(): // /dev/null, a pipe
		f.old = info
		return f, nil
	case info.Mode().Perm()&0o200 == 0:
		return nil, f.fault(errors.New("it is read-only; make it writable or name another file"))
	case names(info) > 1:
		return nil, f.fault(fmt.Errorf("it has %d names (hard links), which writing would separate; name another file", names(info)))
	default:
		f.old = info
	}
	// To replace a file, its folder must be writable.
	probe, err := f.create()
	if err != nil {
		return nil, f.fault(err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, f.fault(err)
	}
	return f, nil
}

// Old describes the file that existed at the time of [OpenFile]; nil if there was none.
func (f *File) Old() fs.FileInfo { return f.old }

// Write writes the file. If it returns nil, the new content is on the disk; if it returns an
// error, the file is unchanged. It does not overwrite a file that was changed after [OpenFile].
func (f *File) Write(data []byte) error {
	if f.old != nil && !f.old.Mode().IsRegular() {
		return f.named(os.WriteFile(f.target, data, 0o600)) //nolint:gosec // the user names it
	}
	if err := f.unchanged(); err != nil {
		return f.fault(err)
	}
	tmp, err := f.create()
	if err != nil {
		return f.fault(err)
	}
	if _, err = tmp.Write(data); err == nil {
		err = f.inherit(tmp)
	}
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.target)
	}
	if err != nil {
		return f.fault(errors.Join(Cause(err), Cause(os.Remove(tmp.Name()))))
	}
	return f.named(disk.SyncDir(filepath.Dir(f.target)))
}

// unchanged returns an error if the file is not the one that [OpenFile] saw.
func (f *File) unchanged() error {
	now, err := os.Stat(f.target)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.old == nil:
		return nil
	case err != nil:
		return err
	case f.old == nil:
		return errors.New("another program has created it; nothing was written")
	case !os.SameFile(f.old, now) || now.Size() != f.old.Size() || !now.ModTime().Equal(f.old.ModTime()):
		return errors.New("another program has changed it; nothing was written: try again")
	}
	return nil
}

// create creates a file with an unused name in the same folder.
func (f *File) create() (*os.File, error) {
	mode := f.mode
	if f.old != nil {
		mode = 0o600 // until inherit sets the old file's mode
	}
	dir, base := filepath.Split(f.target)
	const most = 1000 // temporary files of other processes
	for i := range most {
		tmp, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".%s.%d-%d", base, os.Getpid(), i)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if !errors.Is(err, fs.ErrExist) {
			return tmp, err
		}
	}
	return nil, fmt.Errorf("there are %d temporary files in its folder; remove them", most)
}

// inherit gives the new file the owner and the mode of the old one.
func (f *File) inherit(tmp *os.File) error {
	if f.old == nil {
		return nil
	}
	if err := keepOwner(tmp, f.old); err != nil {
		return fmt.Errorf("it belongs to another user, and its owner cannot be kept (%w); name another file", Cause(err))
	}
	return tmp.Chmod(f.old.Mode().Perm())
}

func (f *File) named(err error) error {
	if err == nil {
		return nil
	}
	return f.fault(err)
}

// fault is an error about the file as given, instead of the temporary one.
func (f *File) fault(err error) error { return fmt.Errorf("write %s: %w", f.path, Cause(err)) }

// Cause is err without the name of a file.
func Cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// resolve follows links, also to a file that does not exist yet.
func resolve(path string) (string, error) {
	const most = 40 // links, as in Linux
	for range most {
		target, err := filepath.EvalSymlinks(path)
		if err == nil {
			return target, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // it is no link: a file that does not exist yet
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(path), link)
		}
		path = link
	}
	return "", errors.New("too many links")
}

// Quote returns a word as a shell reads it.
func Quote(w string) string {
	if w == "" || strings.ContainsAny(w, " \t\n\"'\\${}()[]<>|&;*?!`#~") {
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return w
}

// FromHome writes a path with ~ for the home folder.
func FromHome(path string) string {
	dir, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(path, dir+string(filepath.Separator)); ok && err == nil && dir != "" {
		return "~" + string(filepath.Separator) + rest
	}
	return path
}
