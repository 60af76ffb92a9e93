//go:build !linux

package testkit

import "time"

// processor returns the time that f takes: the thread's own is not asked for here.
func processor(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
