// Package disk writes files whole or not at all: a program that is killed leaves the old file,
// and a file that is reported as written survives a loss of power.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// An Output is a file to write. Call [Open] before the work, so that a wrong path is found early.
type Output struct {
	path   string      // as given, for errors
	target string      // path with links followed
	mode   fs.FileMode // of a new file, before the umask
	old    fs.FileInfo // the existing file at the time of Open; nil if there was none
}

// Open checks that the file path can be written, and changes nothing. Links are followed, also
// to a file that does not exist yet. An existing file keeps its mode and its owner; a new one
// gets mode, minus the umask.
//
// Open refuses a file that is read-only or has several names (hard links), because replacing the
// file would silently undo both. Devices and pipes are written directly.
func Open(path string, mode fs.FileMode) (*Output, error) {
	target, err := resolve(path)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, cause(err))
	}
	o := &Output{path: path, target: target, mode: mode.Perm() &^ 0o111}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, o.fault(err)
	case info.IsDir():
		return nil, o.fault(errors.New("it is a folder; name a file"))
	case !info.Mode().IsRegular(): // /dev/null, a pipe
		o.old = info
		return o, nil
	case info.Mode().Perm()&0o200 == 0:
		return nil, o.fault(errors.New("it is read-only; make it writable or name another file"))
	case names(info) > 1:
		return nil, o.fault(fmt.Errorf("it has %d names (hard links), which writing would separate; name another file", names(info)))
	default:
		o.old = info
	}
	// To replace a file, its folder must be writable.
	probe, err := o.create()
	if err != nil {
		return nil, o.fault(err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, o.fault(err)
	}
	return o, nil
}

// Old describes the file that existed at the time of [Open]; nil if there was none.
func (o *Output) Old() fs.FileInfo { return o.old }

// Write writes the file. If it returns nil, the new content is on the disk; if it returns an
// error, the file is unchanged. It does not overwrite a file that was changed after [Open].
func (o *Output) Write(data []byte) error {
	if o.old != nil && !o.old.Mode().IsRegular() {
		return o.named(os.WriteFile(o.target, data, 0o600))
	}
	if err := o.unchanged(); err != nil {
		return o.fault(err)
	}
	tmp, err := o.create()
	if err != nil {
		return o.fault(err)
	}
	if _, err = tmp.Write(data); err == nil {
		err = o.inherit(tmp)
	}
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), o.target)
	}
	if err != nil {
		return o.fault(errors.Join(cause(err), cause(os.Remove(tmp.Name()))))
	}
	return o.named(SyncDir(filepath.Dir(o.target)))
}

// unchanged returns an error if the file is not the one that [Open] saw.
func (o *Output) unchanged() error {
	now, err := os.Stat(o.target)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.old == nil:
		return nil
	case err != nil:
		return err
	case o.old == nil:
		return errors.New("another program has created it; nothing was written")
	case !os.SameFile(o.old, now) || now.Size() != o.old.Size() || !now.ModTime().Equal(o.old.ModTime()):
		return errors.New("another program has changed it; nothing was written: try again")
	}
	return nil
}

// create creates a file with an unused name in the same folder.
func (o *Output) create() (*os.File, error) {
	mode := o.mode
	if o.old != nil {
		mode = 0o600 // until inherit sets the old file's mode
	}
	dir, base := filepath.Split(o.target)
	const most = 1000 // temporary files of other processes
	for i := range most {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".%s.%d-%d", base, os.Getpid(), i)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("there are %d temporary files in its folder; remove them", most)
}

// inherit gives the new file the owner and the mode of the old one.
func (o *Output) inherit(f *os.File) error {
	if o.old == nil {
		return nil
	}
	if err := keepOwner(f, o.old); err != nil {
		return fmt.Errorf("it belongs to another user, and its owner cannot be kept (%w); name another file", cause(err))
	}
	return f.Chmod(o.old.Mode().Perm())
}

func (o *Output) named(err error) error {
	if err == nil {
		return nil
	}
	return o.fault(err)
}

// fault is an error about the file as given, instead of the temporary one.
func (o *Output) fault(err error) error { return fmt.Errorf("write %s: %w", o.path, cause(err)) }

// cause is err without the name of a file.
func cause(err error) error {
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
