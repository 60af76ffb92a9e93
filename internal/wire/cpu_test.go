package wire_test

import (
	"syscall"
	"testing"
)

func cpu(b *testing.B) func() {
	var r0 syscall.Rusage
	_ = syscall.Getrusage(0, &r0)
	return func() {
		var r1 syscall.Rusage
		_ = syscall.Getrusage(0, &r1)
		d := r1.Utime.Nano() + r1.Stime.Nano() - r0.Utime.Nano() - r0.Stime.Nano()
		b.ReportMetric(float64(d)/float64(b.N)/1e6, "cpu-ms/op")
	}
}
