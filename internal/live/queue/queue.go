// Package queue admits work while there is capacity, fairly between tenants.
package queue

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Queue admits work while there is capacity, fairly between tenants: the waiting tenant with the least running work is
// next; among equals, the earliest arrival. A tenant with no running work does not wait for the work of others: for
// it, the capacity is twice as large. Work has a weight, which is 1 or its bytes.
type Queue struct {
	capacity int64

	mu    sync.Mutex
	used  int64
	due   int64            // weight of the waiting work
	lines map[string]*line // by tenant; only tenants with waiting or running work
	count int              // number of waiters
	work  int              // number of running pieces of work
	turns uint64
}

// A line holds the waiting work of one tenant, in order of arrival.
type line struct {
	used  int64
	waits []*place
}

type place struct {
	turn   uint64 // of arrival
	weight int64
	ready  chan struct{} // closed when its turn has come
}

// New returns a queue with capacity for work of so much weight.
func New(capacity int64) *Queue { return &Queue{capacity: max(1, capacity), lines: map[string]*line{}} }

// Enter waits for capacity until ctx is done. leave, which is never nil, must be called when the work is done; further calls do nothing.
func (q *Queue) Enter(ctx context.Context, tenant string, weight int64) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return func() {}, err
	}
	p := q.join(tenant, weight)
	select {
	case <-p.ready:
	case <-ctx.Done():
		if q.quit(tenant, p) {
			return func() {}, ctx.Err()
		}
	}
	return sync.OnceFunc(func() { q.done(tenant, p.weight) }), nil
}

// Try is enter without waiting: ok is false if there is no capacity.
func (q *Queue) Try(tenant string, weight int64) (leave func(), ok bool) {
	p := q.join(tenant, weight)
	if q.quit(tenant, p) {
		return nil, false
	}
	return sync.OnceFunc(func() { q.done(tenant, p.weight) }), true
}

func (q *Queue) join(tenant string, weight int64) *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns++
	p := &place{turn: q.turns, weight: min(max(1, weight), q.capacity), ready: make(chan struct{})}
	l := q.lines[tenant]
	if l == nil {
		l = &line{}
		q.lines[tenant] = l
	}
	l.waits = append(l.waits, p)
	q.count++
	q.due += p.weight
	q.admit()
	return p
}

// quit removes a place from its line. It returns false if its turn has come already.
func (q *Queue) quit(tenant string, p *place) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[tenant]
	if l == nil {
		return false
	}
	i := slices.Index(l.waits, p)
	if i < 0 {
		return false
	}
	l.waits = slices.Delete(l.waits, i, i+1)
	q.count--
	q.due -= p.weight
	q.forget(tenant, l)
	q.admit() // the work behind it may be smaller, and fit
	return true
}

func (q *Queue) done(tenant string, weight int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[tenant]
	l.used -= weight
	q.used -= weight
	q.work--
	q.forget(tenant, l)
	q.admit()
}

// forget removes the line of a tenant without work. The caller holds q.mu, as for the functions below.
func (q *Queue) forget(tenant string, l *line) {
	if l.used == 0 && len(l.waits) == 0 {
		delete(q.lines, tenant)
	}
}

// admit starts waiting work while there is capacity.
func (q *Queue) admit() {
	for q.count > 0 {
		var next *line
		for _, l := range q.lines {
			if len(l.waits) == 0 || !q.fits(l) {
				continue
			}
			if next == nil || l.used < next.used || l.used == next.used && l.waits[0].turn < next.waits[0].turn {
				next = l
			}
		}
		if next == nil {
			return
		}
		p := next.waits[0]
		next.waits = next.waits[1:]
		next.used += p.weight
		q.used += p.weight
		q.count--
		q.due -= p.weight
		q.work++
		close(p.ready)
	}
}

// fits reports whether the first piece of work of a line may start.
func (q *Queue) fits(l *line) bool {
	after := q.used + l.waits[0].weight
	return after <= q.capacity || l.used == 0 && after <= 2*q.capacity
}

// Waiting returns the number of waiting pieces of work, and of running ones.
func (q *Queue) Waiting() (waiting, underWay int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count, q.work
}

// Busy reports whether any work is running.
func (q *Queue) Busy() bool {
	_, underWay := q.Waiting()
	return underWay > 0
}

// Share returns the part of a time limit that one piece of work may take so that all waiting work finishes in time.
// before is the weight of additional work ahead. Running work counts as if it had not begun.
func (q *Queue) Share(of time.Duration, before int64) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return min(of, of*time.Duration(q.capacity)/time.Duration(max(1, q.due+q.used+before)))
}
