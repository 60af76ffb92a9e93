package history

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/gofrs/flock"
)

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
	case err != nil && errors.As(err, new(*os.PathError)):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("it cannot be locked: %w; keep journals on a file system that can lock files", err)
	case !ok:
		return nil, ErrInUse
	}
	return l, nil
}

const separateLock = runtime.GOOS == "windows"

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
