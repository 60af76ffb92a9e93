//go:build unix

package supervise

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// maxSocketPath is the longest path of a socket: sun_path has 108 bytes on Linux and 104
// elsewhere, one of which is the final zero.
const maxSocketPath = 103

// lockFile makes the file path and locks it. The lock ends with the process at the latest.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// abandoned locks the file path, unless somebody else has.
func abandoned(path string) (lock *os.File, ok bool) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, false
	}
	return f, true
}

// ownDir reports whether info is a folder of this user's that nobody else may enter.
func ownDir(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && info.Mode().Perm() == 0o700 && int(st.Uid) == os.Getuid()
}
