//go:build unix && !linux

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// What is less than on Linux: nothing but its standard input tells a plugin that its host
// was killed; it has no limits; and between the end of a process and the killing of its
// group lies a moment in which its pid is nobody's.

func (system) prepare(cmd *exec.Cmd, _ bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func (system) refused(*exec.Cmd, error) bool { return false }

func (system) shares() {}

func (system) started(*os.Process, *Limits) error { return nil }

func (system) await(*os.Process) bool { return false }
