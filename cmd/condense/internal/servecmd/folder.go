package servecmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// A runFolder is a temporary folder with input for the agent of one run, which can hold a secret. It is locked as
// long as the run lasts, so that a later run can detect that this one was killed.
type runFolder struct {
	path string
	lock *flock.Flock
}

const (
	runPrefix = "condense-wrap-"
	lockName  = "lock"
)

// newRunFolder creates a folder, and removes folders of runs that were killed.
func newRunFolder() (*runFolder, error) {
	removeKilled(os.TempDir())
	path, err := os.MkdirTemp("", runPrefix)
	if err != nil {
		return nil, err
	}
	f := &runFolder{path, flock.New(filepath.Join(path, lockName), flock.SetPermissions(0o600))}
	if _, err := f.lock.TryLock(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return f, nil
}

func (f *runFolder) remove() error { return errors.Join(f.lock.Unlock(), os.RemoveAll(f.path)) }

// removeKilled removes the folders in a folder that killed runs of this user have left. A folder without a lock is
// still being created.
func removeKilled(in string) {
	entries, err := os.ReadDir(in)
	if err != nil {
		return // it is only tidied
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), runPrefix) {
			continue
		}
		path := filepath.Join(in, e.Name())
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || !ownedByUser(info) {
			continue
		}
		file := filepath.Join(path, lockName)
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		lock := flock.New(file, flock.SetFlag(os.O_RDWR))
		if ok, err := lock.TryLock(); ok && err == nil {
			_ = lock.Unlock()
			_ = os.RemoveAll(path)
		}
	}
}
