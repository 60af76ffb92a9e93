package servecmd

import (
	"runtime"
	"syscall"
)

// endsWithParent lets the kernel end a child when this process is killed: at its address no gateway would answer any
// more. The kernel watches the thread that starts the child, so the caller keeps it until undo.
func endsWithParent() (attr *syscall.SysProcAttr, undo func()) {
	runtime.LockOSThread()
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}, runtime.UnlockOSThread
}
