package parallel_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/condensehq/condense/internal/value/parallel"
)

func TestDo(t *testing.T) {
	for _, procs := range []int{1, 3} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		var done [100]atomic.Int32
		tasks := make([]func(), len(done))
		for i := range tasks {
			tasks[i] = func() { done[i].Add(1) }
		}
		parallel.Do(tasks...)
		for i := range done {
			if n := done[i].Load(); n != 1 {
				t.Errorf("%d processors: task %d was done %d times", procs, i, n)
			}
		}
	}
	parallel.Do()
}

// A host recovers from panics of a provider in the goroutine that calls it.
func TestDoPanicsInTheCaller(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	var others atomic.Int32
	var got any
	func() {
		defer func() { got = recover() }()
		parallel.Do(func() { others.Add(1) }, func() { panic("no such passage") }, func() { others.Add(1) })
	}()
	s, _ := got.(string)
	if !strings.HasPrefix(s, "no such passage") || !strings.Contains(s, "parallel_test.go") {
		t.Errorf("got %v, want the panic and where it was raised", got)
	}
	if n := others.Load(); n != 2 {
		t.Errorf("%d other tasks were done, want 2", n)
	}
}

func TestRanges(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, tt := range []struct{ n, least, want int }{{0, 10, 1}, {9, 10, 1}, {20, 10, 2}, {1000, 10, 4}} {
		seen := make([]atomic.Int32, tt.n)
		var calls atomic.Int32
		parallel.Ranges(tt.n, tt.least, func(from, to int) {
			calls.Add(1)
			for i := from; i < to; i++ {
				seen[i].Add(1)
			}
		})
		if n := int(calls.Load()); n != tt.want {
			t.Errorf("%d numbers: %d ranges, want %d", tt.n, n, tt.want)
		}
		for i := range seen {
			if n := seen[i].Load(); n != 1 {
				t.Errorf("%d numbers: %d is in %d ranges", tt.n, i, n)
			}
		}
	}
}
