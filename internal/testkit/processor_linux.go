package testkit

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// processor returns the processor time that f takes in its thread.
func processor(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	f()
	return threadTime() - began
}

func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err) // the clock exists in every Linux that Go runs on
	}
	return time.Duration(ts.Nano())
}
