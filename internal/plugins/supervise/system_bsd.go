//go:build unix && !linux

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// Limitations compared with Linux: a plugin notices only by its standard input that its host
// was killed; it has no limits; and its PID may be reused between the end of the process and
// the kill of its group.

func (system) prepare(cmd *exec.Cmd, _ bool) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (system) refused(*exec.Cmd, error) bool { return false }

func (system) shares() {}

func (system) started(*os.Process, *Limits) error { return nil }

func (system) await(*os.Process) bool { return false }
