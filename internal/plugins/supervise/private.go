package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// privatePrefix begins the names of private folders. It is short because paths of sockets
// have a limit.
const privatePrefix = "cnd-"

// A privateDir is a folder that only this user can enter. It contains the sockets,
// temporary files and copies of programs of one plugin's processes. While it is in use, a file
// in it is locked. Folders without a lock were left by a host that was killed, and are
// removed; see [sweep].
type privateDir struct {
	path string
	lock *os.File // nil where files cannot be locked

	mu   sync.Mutex
	next int // number of the next entry
}

// newPrivateDir makes a private folder in parent.
func newPrivateDir(parent string) (*privateDir, error) {
	sweep(parent, time.Now())
	// It gets its final name once it is locked, so that sweep does not remove it before.
	tmp, err := os.MkdirTemp(parent, "."+privatePrefix)
	if err != nil {
		return nil, fmt.Errorf("private folder: %w", err)
	}
	lock, err := lockFile(filepath.Join(tmp, "lock"))
	if err == nil {
		path := filepath.Join(parent, strings.TrimPrefix(filepath.Base(tmp), "."))
		if err = os.Rename(tmp, path); err == nil {
			return &privateDir{path: path, lock: lock}, nil
		}
		err = errors.Join(err, closeIf(lock))
	}
	return nil, fmt.Errorf("private folder: %w", errors.Join(err, os.RemoveAll(tmp)))
}

// mkdir makes a folder in d.
func (d *privateDir) mkdir() (string, error) {
	d.mu.Lock()
	d.next++
	path := filepath.Join(d.path, strconv.Itoa(d.next))
	d.mu.Unlock()
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("private folder: %w", err)
	}
	return path, nil
}

// remove removes d with everything in it.
func (d *privateDir) remove() error { return errors.Join(removeAll(d.path), closeIf(d.lock)) }

// removeAll removes path even if a plugin has removed the permissions of its folders.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, e os.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // G302: a folder must be searchable to be emptied
		}
		return nil
	})
	return os.RemoveAll(path)
}

// sweep removes private folders whose host has ended, and those that never got a lock and
// are a day old.
func sweep(parent string, now time.Time) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		name, unnamed := strings.CutPrefix(e.Name(), ".")
		if !strings.HasPrefix(name, privatePrefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		info, err := os.Lstat(path)
		if err != nil || !ownDir(info) {
			continue
		}
		if unnamed {
			if now.Sub(info.ModTime()) > 24*time.Hour {
				_ = removeAll(path)
			}
			continue
		}
		if lock, ok := abandoned(filepath.Join(path, "lock")); ok {
			_ = removeAll(path)
			_ = lock.Close()
		}
	}
}

func closeIf(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}
