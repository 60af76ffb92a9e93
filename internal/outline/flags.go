//go:build !wasip1

package outline

import "syscall"

// nonBlocking opens a pipe without waiting for its other end.
const nonBlocking = syscall.O_NONBLOCK
