// Package parallel shares work among the processors. What it is given must not depend on
// the order in which it is done, so that the result is the same on every machine.
package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Do calls the tasks, as many at a time as there are processors, and returns when all have
// returned. If one panics, so does Do, when the others are done: whoever guards himself
// against the panics of a function need not know that it shares its work.
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

// Ranges divides the numbers from 0 to n, without n, into ranges of least numbers or more,
// and calls work for all of them as [Do] does.
func Ranges(n, least int, work func(from, to int)) {
	parts := max(1, min(runtime.GOMAXPROCS(0), n/least))
	tasks := make([]func(), parts)
	for i := range tasks {
		tasks[i] = func() { work(i*n/parts, (i+1)*n/parts) }
	}
	Do(tasks...)
}
