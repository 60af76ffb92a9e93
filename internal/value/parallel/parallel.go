// Package parallel distributes work over the processors. The result of the work must not depend
// on the order of its parts, so that it is the same on every machine.
package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Do calls the tasks, as many at a time as there are processors, and returns when all have
// returned. If one panics, Do panics after the others have returned, so that callers can recover
// as if all tasks ran in their own goroutine.
func Do(tasks ...func()) {
	workers := min(len(tasks), runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for _, task := range tasks {
			task()
		}
		return
	}
	var (
		next  atomic.Int64
		fault atomic.Pointer[string]
		wg    sync.WaitGroup
	)
	work := func() {
		defer func() {
			if p := recover(); p != nil {
				s := fmt.Sprintf("%v\n\n%s", p, debug.Stack())
				fault.CompareAndSwap(nil, &s)
			}
		}()
		for {
			i := int(next.Add(1)) - 1
			if i >= len(tasks) {
				return
			}
			tasks[i]()
		}
	}
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	if s := fault.Load(); s != nil {
		panic(*s)
	}
}

// Ranges divides the numbers 0 to n-1 into ranges, none shorter than least if n is not, and calls
// work for each range as [Do] does.
func Ranges(n, least int, work func(from, to int)) {
	parts := max(1, min(runtime.GOMAXPROCS(0), n/least))
	tasks := make([]func(), parts)
	for i := range tasks {
		tasks[i] = func() { work(i*n/parts, (i+1)*n/parts) }
	}
	Do(tasks...)
}
