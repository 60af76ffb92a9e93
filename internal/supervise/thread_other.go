//go:build !linux

package supervise

func lockThread() (unlock func()) { return func() {} }
