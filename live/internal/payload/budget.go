package payload

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Budget limits the bytes of bodies and frames that are held at the same time. They are counted as they arrive,
// whatever length was announced. Its methods are safe for concurrent use.
type Budget struct {
	capacity int64
	stall    time.Duration
	patience time.Duration

	mu    sync.Mutex
	used  int64
	owned map[string]int64 // by tenant
	holds []*Hold          // in order of arrival
	over  *Hold            // the one that may exceed the capacity; nil for none
	freed chan struct{}    // closed when bytes are given back
	given time.Time        // when that was
	burst func()           // ends a burst; nil if there is none
}

// A Hold is the share of one body. A nil Hold counts nothing.
type Hold struct {
	of     *Budget
	tenant string
	stop   func()

	size    int64
	moved   time.Time // of the last growth, or the last bytes that came
	reading bool
	wants   int64 // bytes that it waits for
}

// ErrFull means that there was no capacity for a body in time.
var ErrFull = errors.New("the gateway holds as many bytes of requests as it may")

const (
	// Small is the size in bytes up to which a body never waits for capacity. It still counts.
	Small = 256 << 10
	// LongestWait is how long a body waits for capacity while nobody gives any back: as long as others come to their end, so will it.
	LongestWait = 30 * time.Second
	// stalled is the time after which a body that does not move is stopped if others wait for capacity.
	stalled = 10 * time.Second
	// A burst begins above one share of the capacity, and is over below another.
	burstBegins, burstEnds = 16, 64
	afterBurst             = time.Second
	// tenants share the capacity so that one of them gets at most three quarters of it.
	tenantShare, tenantShares = 3, 4
)

// NewBudget returns a budget with capacity for so many bytes. One body at a time may exceed it, so that a body that has
// come in part can always come to its end. Patience is how long a body waits while no capacity is given back: 0 without end.
func NewBudget(capacity int64, patience time.Duration) *Budget {
	return &Budget{capacity: capacity, stall: stalled, patience: patience, owned: map[string]int64{}, freed: make(chan struct{})}
}

// Open returns the share of a body that will be read. The function stop ends the reading. It is called, perhaps
// repeatedly, if the body does not move while others wait for capacity.
func (b *Budget) Open(tenant string, stop func()) *Hold {
	h := &Hold{of: b, tenant: tenant, stop: stop, reading: true, moved: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds = append(b.holds, h)
	return h
}

// Grow adds n bytes to a share. It waits for capacity in the order of [Budget.Open], until ctx ends or no capacity has been given back for a time;
// then the error wraps [ErrFull].
func (h *Hold) Grow(ctx context.Context, n int64) error {
	if h == nil {
		return nil
	}
	b := h.of
	for began := time.Now(); ; {
		freed, ok := b.grow(h, n)
		if ok {
			return nil
		}
		const look = time.Second // for bodies that have stalled meanwhile
		select {
		case <-freed:
			continue
		case <-time.After(look):
		case <-ctx.Done():
		}
		if b.leaves(h, began, ctx.Err() != nil) {
			return errors.Join(ErrFull, ctx.Err())
		}
	}
}

// leaves reports whether a body waits no longer: it has gone, or nothing has moved since for too long.
func (b *Budget) leaves(h *Hold, since time.Time, gone bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !gone && (b.patience == 0 || time.Since(since) < b.patience || time.Since(b.given) < b.patience) {
		return false
	}
	h.wants = 0
	b.wake()
	return true
}

// wake lets those that wait look again. The caller holds b.mu, as for the functions below.
func (b *Budget) wake() {
	close(b.freed)
	b.freed = make(chan struct{})
}

func (b *Budget) grow(h *Hold, n int64) (freed <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.size+n > Small && !b.admits(h, n) {
		h.wants = n
		b.stopStalled()
		return b.freed, false
	}
	h.wants, h.moved = 0, time.Now()
	h.size += n
	b.used += n
	b.owned[h.tenant] += n
	if b.patience > 0 && b.burst == nil && b.used > b.capacity/burstBegins {
		b.burst = Burst()
	}
	return nil, true
}

// admits reports whether n more bytes of h have capacity for which no earlier body waits, or h may exceed it, as the first of those
// that wait.
func (b *Budget) admits(h *Hold, n int64) bool {
	most, first := b.capacity/tenantShares*tenantShare, true
	fits := b.used+n <= b.capacity && b.owned[h.tenant]+n <= most
	for _, o := range b.holds[:max(0, slices.Index(b.holds, h))] {
		if o.wants > 0 {
			first = false
			fits = fits && o.tenant != h.tenant && b.owned[o.tenant]+o.wants > most
		}
	}
	if !fits && first && b.over == nil {
		b.over = h
	}
	return fits || b.over == h
}

// stopStalled stops the body that has not moved for the longest time, if that is too long.
func (b *Budget) stopStalled() {
	var last *Hold
	for _, h := range b.holds {
		if h.reading && h.wants == 0 && time.Since(h.moved) > b.stall && (last == nil || h.moved.Before(last.moved)) {
			last = h
		}
	}
	if last != nil {
		go last.stop()
	}
}

// arrived notes that more of the body has come; whole, that it is complete.
func (h *Hold) arrived(whole bool) {
	if h == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.moved, h.reading = time.Now(), !whole
}

// Held returns the bytes that are held, and the number of bodies.
func (b *Budget) Held() (bytes int64, bodies int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, len(b.holds)
}

// Close gives the bytes back. Further calls do nothing.
func (h *Hold) Close() {
	if h == nil {
		return
	}
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.holds, h)
	if i < 0 {
		return
	}
	b.holds = slices.Delete(b.holds, i, i+1)
	b.used -= h.size
	if b.owned[h.tenant] -= h.size; b.owned[h.tenant] == 0 {
		delete(b.owned, h.tenant)
	}
	if b.over == h {
		b.over = nil
	}
	b.given = time.Now()
	b.wake()
	if b.burst != nil && b.used < b.capacity/burstEnds {
		b.burst()
		b.burst = nil
	}
}

var (
	bursts  atomic.Int32
	pressed struct {
		sync.Mutex
		on    bool
		usual int // percent
	}
)

// Burst begins work that needs much memory, and returns how to end it. Meanwhile garbage waits less long for its collection: by
// default it would take as much memory as what is in use. Afterwards the memory is given back, which the runtime does only in minutes.
func Burst() (end func()) {
	bursts.Add(1)
	go press() // it waits for a collection that is under way
	return func() {
		bursts.Add(-1)
		time.AfterFunc(afterBurst, func() {
			if press(); bursts.Load() == 0 {
				debug.FreeOSMemory()
			}
		})
	}
}

func press() {
	const percent = 25
	pressed.Lock()
	defer pressed.Unlock()
	if on := bursts.Load() > 0; on != pressed.on {
		pressed.on = on
		before := debug.SetGCPercent(cmp.Or(pressed.usual, percent))
		if pressed.usual = 0; on {
			pressed.usual = before
		}
	}
}
