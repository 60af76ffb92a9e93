//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"syscall"
)

const pause, resume = syscall.SIGSTOP, syscall.SIGCONT

// isolate lets a program run in a group of its own, and not as root.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
	}
}
