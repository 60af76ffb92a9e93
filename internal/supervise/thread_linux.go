package supervise

import "runtime"

// lockThread keeps the thread of this goroutine until unlock: a process whose
// parent-death signal is set gets it when the thread that launched it ends.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
