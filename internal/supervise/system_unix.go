//go:build unix

package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// A system is what operating systems do each in their own way.
type system struct{}

// kill ends the group that p leads. Its leader must not have been waited for.
func (system) kill(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func (system) checkAddress(h handshake, dir string, _ bool) error {
	return checkSocket(h.network, h.address, dir)
}

// isSocket makes sure that path is a socket and not a link to one elsewhere.
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
