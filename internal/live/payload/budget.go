package payload

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// A Budget limits the bytes of bodies and frames that are held at the same time. They are counted as they arrive,
// whatever length was announced. Its methods are safe for concurrent use.
type Budget struct {
	room  int64
	stall time.Duration

	mu    sync.Mutex
	used  int64
	owned map[string]int64 // by payer
	holds []*Hold          // in order of arrival
	over  *Hold            // the one that may exceed the room; nil for none
	freed chan struct{}    // closed when bytes are given back
	burst bool             // much was held since memory was given back to the system
}

// A Hold is the share of one body. A nil Hold counts nothing.
type Hold struct {
	of    *Budget
	payer string
	cut   func()

	size    int64
	moved   time.Time // of the last growth, or the last bytes that came
	reading bool
	waits   bool
}

// ErrFull means that there was no room for a body in time.
var ErrFull = errors.New("the gateway holds as many bytes of requests as it may")

const (
	// Small is the size in bytes up to which a body never waits for room. It still counts.
	Small = 256 << 10
	// LongestRoom is how long a body waits for room.
	LongestRoom = 30 * time.Second
	// stalled is the time after which a body that does not move is cut if others wait for room.
	stalled = 10 * time.Second
	// A burst is over when the bytes held have fallen from one share of the room to a share of that.
	burstShare = 8
	afterBurst = time.Second
	// payers share the room so that one of them gets at most three quarters of it.
	payerShare, payerShares = 3, 4
)

// NewBudget returns a budget with room for so many bytes. One body at a time may exceed it, so that a body that has
// come in part can always come to its end.
func NewBudget(room int64) *Budget {
	return &Budget{room: room, stall: stalled, owned: map[string]int64{}, freed: make(chan struct{})}
}

// Open returns the share of a body that will be read. The function cut ends the reading. It is called, perhaps
// repeatedly, if the body does not move while others wait for room.
func (b *Budget) Open(payer string, cut func()) *Hold {
	h := &Hold{of: b, payer: payer, cut: cut, reading: true, moved: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds = append(b.holds, h)
	return h
}

// Grow adds n bytes to a share. It waits for room until ctx ends; then the error wraps [ErrFull].
func (h *Hold) Grow(ctx context.Context, n int64) error {
	if h == nil {
		return nil
	}
	b := h.of
	for {
		freed, ok := b.grow(h, n)
		if ok {
			return nil
		}
		const look = time.Second // for bodies that have stalled meanwhile
		select {
		case <-freed:
		case <-time.After(look):
		case <-ctx.Done():
			b.mu.Lock()
			h.waits = false
			b.mu.Unlock()
			return errors.Join(ErrFull, ctx.Err())
		}
	}
}

// TryGrow is Grow without waiting. It reports whether there was room.
func (h *Hold) TryGrow(n int64) bool {
	if h == nil {
		return true
	}
	_, ok := h.of.grow(h, n)
	return ok
}

func (b *Budget) grow(h *Hold, n int64) (freed <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fits := b.used+n <= b.room && b.owned[h.payer]+n <= b.room/payerShares*payerShare
	if !fits && h.size+n > Small && !b.mayExceed(h) {
		h.waits = true
		b.cutStalled()
		return b.freed, false
	}
	h.waits, h.moved = false, time.Now()
	h.size += n
	b.used += n
	b.owned[h.payer] += n
	b.burst = b.burst || b.used > b.room/burstShare
	return nil, true
}

// mayExceed reports whether h is the one that may exceed the room: the first of those that wait.
func (b *Budget) mayExceed(h *Hold) bool {
	if b.over == nil {
		if i := slices.IndexFunc(b.holds, func(o *Hold) bool { return o == h || o.waits }); i >= 0 && b.holds[i] == h {
			b.over = h
		}
	}
	return b.over == h
}

// cutStalled cuts the body that has not moved for the longest time, if that is too long.
func (b *Budget) cutStalled() {
	var last *Hold
	for _, h := range b.holds {
		if h.reading && !h.waits && time.Since(h.moved) > b.stall && (last == nil || h.moved.Before(last.moved)) {
			last = h
		}
	}
	if last != nil {
		go last.cut()
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
	if b.owned[h.payer] -= h.size; b.owned[h.payer] == 0 {
		delete(b.owned, h.payer)
	}
	if b.over == h {
		b.over = nil
	}
	close(b.freed)
	b.freed = make(chan struct{})
	if b.burst && b.used < b.room/burstShare/burstShare {
		b.burst = false
		time.AfterFunc(afterBurst, debug.FreeOSMemory) // the runtime keeps the memory of a burst for minutes
	}
}
