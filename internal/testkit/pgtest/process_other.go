//go:build !unix

package pgtest

import (
	"os/exec"
	"syscall"
)

// Tests that need a server are skipped here, see folder.
const pause, resume = syscall.Signal(0), syscall.Signal(0)

func isolate(*exec.Cmd) {}
