//go:build unix && !linux

package servecmd

import (
	"syscall"
)

// endsWithParent would let the system end a child when this process is killed, which is not possible here.
func endsWithParent() (attr *syscall.SysProcAttr, undo func()) { return nil, func() {} }
