package testkit_test

import (
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

var sink int

func spend(steps int) {
	x := sink
	for i := range steps {
		x = x*31 + i
	}
	sink = x
}

// Linear must detect quadratic work, and must not fail on linear work on a busy machine.
func TestLinearDetectsQuadraticWork(t *testing.T) {
	testkit.Slow(t)
	linear, quadratic := recorder{TB: t}, recorder{TB: t}
	testkit.Linear(&linear, 1<<13, func(n int) func() { return func() { spend(n << 13) } })
	testkit.Linear(&quadratic, 1<<13, func(n int) func() { return func() { spend(n * n) } })
	if linear.failed || !quadratic.failed {
		t.Errorf("linear work failed: %v, quadratic work failed: %v; want only the latter", linear.failed, quadratic.failed)
	}
}
