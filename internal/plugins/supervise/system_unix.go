//go:build unix

package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// A system has the functions that depend on the operating system.
type system struct{}

// kill kills the process group that p leads. The process must not have been reaped.
func (system) kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func (system) checkAddress(h handshake, dir string, _ bool) error {
	return checkSocket(h.network, h.address, dir)
}

// isSocket checks that path is a socket and not a link to one.
func isSocket(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("it announces a socket that does not exist: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("it announces %s, which is not a socket", quote(path))
	}
	return nil
}

func executable(info fs.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

func isBusy(err error) bool   { return errors.Is(err, syscall.ETXTBSY) }
func isNoExec(err error) bool { return errors.Is(err, syscall.ENOEXEC) }

// maxSocketPath is the longest path of a socket: sun_path has 108 bytes on Linux and 104
// elsewhere, one of which is the final zero.
const maxSocketPath = 103

// lockFile creates and locks the file path. The lock ends with the process at the latest.
func lockFile(path string) (*os.File, error) { return lockOpen(path, os.O_CREATE) }

// abandoned locks the file path, unless another process has.
func abandoned(path string) (lock *os.File, ok bool) {
	f, err := lockOpen(path, syscall.O_NOFOLLOW)
	return f, err == nil
}

func lockOpen(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|how, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// ownDir reports whether info is a folder of this user that no other user can enter.
func ownDir(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && info.Mode().Perm() == 0o700 && int(st.Uid) == os.Getuid()
}
