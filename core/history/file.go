package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/condensehq/condense/internal/disk"
)

// A File is a journal on disk. A change is written to the file first and takes effect only
// if the write succeeds. Messages are passed to the operating system; condensations, undos
// and rewinds are synced to disk before their method returns, and Close syncs everything.
//
// A process that dies during a write leaves an incomplete line at the end. [Open] reports
// it, and the next write removes it.
//
// Only one File at a time can have a journal open, in all programs: the file is locked until
// Close, or until the process ends. Any program can read it with [Decode]. Changes by
// programs that do not lock are detected as well: if the file was moved, removed, replaced or
// written to since it was opened, writing fails with an error. The journal can then be
// written to another file with [Encode].
type File struct {
	*Journal
	path  string // absolute
	lock  *Lock
	file  *os.File
	size  int64 // that the file should have
	whole int64 // bytes of complete records; the rest is cut off before a write
	open  bool  // the newline of the last record is missing
}

// Create creates the file path for an empty journal with the given meta, which is JSON
// or nil; see [Journal.SetMeta]. It is an error if the file exists. Only its owner may
// read it.
func Create(path string, meta json.RawMessage) (*File, error) {
	j := New()
	if meta != nil {
		if err := j.SetMeta(meta); err != nil {
			return nil, fmt.Errorf("create %s: %w", path, err)
		}
	}
	f := &File{Journal: j}
	if err := f.locate(path); err != nil {
		return nil, err
	}
	var err error
	if f.file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	err = f.take()
	if err == nil {
		err = f.write(appendHeader(nil, j.id, j.meta), true)
	}
	if err == nil {
		err = disk.SyncDir(filepath.Dir(f.path))
	}
	if err != nil {
		return nil, errors.Join(err, f.release(), os.Remove(path))
	}
	j.store = f.write
	return f, nil
}

// Open opens the journal in the file path. The recovery is nil unless the last line was
// incomplete. Opening does not change the file. The error is [ErrInUse] if it is open
// already. To only look at a journal use [Decode], which needs no permission to write.
func Open(path string) (*File, *Recovery, error) {
	f := &File{}
	err := f.locate(path)
	if err != nil {
		return nil, nil, err
	}
	if f.file, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0); err != nil {
		return nil, nil, err
	}
	d := newDecoder(f.file)
	if err = f.take(); err == nil {
		err = d.run()
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open %s: %w", path, err), f.release())
	}
	f.Journal, f.size, f.whole, f.open = d.journal, d.size, d.size, d.open
	if d.recovery != nil {
		f.whole -= int64(d.recovery.Bytes)
	}
	f.store = f.write
	return f, d.recovery, nil
}

// locate makes the path independent of the working directory.
func (f *File) locate(path string) (err error) {
	f.path, err = filepath.Abs(path)
	return err
}

// take locks the open file.
func (f *File) take() (err error) {
	if f.lock, err = acquire(f.path); err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err == nil && !f.lock.holds(info) {
		err = errors.New("it was replaced just now; open it again")
	}
	return err
}

// release releases the lock and closes the file.
func (f *File) release() error {
	err := f.file.Close()
	if f.lock != nil {
		err = errors.Join(err, f.lock.Release())
	}
	return err
}

// Close syncs the file to disk, closes it and releases the lock. The journal can still be
// read, but not changed.
func (f *File) Close() error { return errors.Join(f.file.Sync(), f.release()) }

// inPlace returns an error unless the file at its path is still the same and unchanged.
func (f *File) inPlace() error {
	if _, err := f.file.Seek(0, io.SeekCurrent); err != nil {
		return err // closed: on Windows, Stat does not say so
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write %s: the file was removed or moved since it was opened; nothing was written: put it back, or write the journal to another file", f.path)
	case err != nil:
		return err
	case !os.SameFile(info, there):
		return fmt.Errorf("write %s: the file was replaced by another one since it was opened; nothing was written: open it again, or write the journal to another file", f.path)
	case info.Size() != f.size:
		return fmt.Errorf("write %s: the file has %d bytes, not %d: something else wrote to it; open it again", f.path, info.Size(), f.size)
	}
	return nil
}

// write appends lines in one call. If that fails, the file is unchanged, or is restored by
// the next write.
func (f *File) write(lines []byte, sync bool) error {
	if err := f.inPlace(); err != nil {
		return err
	}
	if f.whole < f.size {
		if err := f.file.Truncate(f.whole); err != nil {
			return err
		}
		f.size = f.whole
	}
	if f.open {
		lines = append([]byte("\n"), lines...)
	}
	n, err := f.file.Write(lines)
	if err == nil && sync {
		err = f.file.Sync()
	}
	f.size += int64(n)
	if err != nil {
		if f.file.Truncate(f.whole) == nil {
			f.size = f.whole
		}
		return err
	}
	f.whole, f.open = f.size, false
	return nil
}

// ErrInUse means that a journal cannot be opened because another [File] has it open, in this
// program or another one.
var ErrInUse = errors.New("it is open for writing already, in this program or another one; close it there first")

// A Lock prevents [Open] from opening a journal; every open [File] holds one. The system
// releases it when the process ends, also by a crash.
type Lock struct{ flock *flock.Flock }

// Acquire takes the lock of the file path, for a program that replaces the file by another
// one. The file must exist. Acquire does not wait: the error is [ErrInUse] if a [File] or
// another Lock holds it.
func Acquire(path string) (*Lock, error) {
	l, err := acquire(path)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return l, nil
}

func acquire(path string) (*Lock, error) {
	// On Windows a locked file cannot be read, so the lock is on a file of its own.
	flag := os.O_RDWR
	file := path
	if separateLock {
		file, flag = path+".lock", os.O_RDWR|os.O_CREATE
	}
	l := &Lock{flock.New(file, flock.SetFlag(flag))}
	ok, err := l.flock.TryLock()
	switch {
	case separateLock && errors.Is(err, errSharing):
		return nil, ErrInUse // its holder is just removing it
	case err != nil && errors.As(err, new(*os.PathError)):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("it cannot be locked: %w; keep journals on a file system that can lock files", err)
	case !ok:
		return nil, ErrInUse
	}
	return l, nil
}

const (
	separateLock = runtime.GOOS == "windows"
	errSharing   = syscall.Errno(32) // Windows' ERROR_SHARING_VIOLATION
)

// Release releases the lock.
func (l *Lock) Release() error {
	err := l.flock.Unlock()
	if separateLock {
		// Windows removes no file that is open, so this is never one that is in use.
		_ = os.Remove(l.flock.Path())
	}
	return err
}

// holds reports whether the lock is for the file that info describes. It is not if the file
// was replaced before it was opened.
func (l *Lock) holds(info os.FileInfo) bool {
	if separateLock {
		return true
	}
	locked, err := l.flock.Stat()
	return err == nil && os.SameFile(locked, info)
}
