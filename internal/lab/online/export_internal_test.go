package online

import (
	"context"
)

// Save writes all that has changed, as at the end.
func (w *Watch) Save(ctx context.Context) { w.save(ctx) }

// Bytes returns the size of all texts that w has, as it is, and as w counts it.
func (w *Watch) Bytes() (is, counted int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.epochs {
		is += len(e.last) + len(e.history) + len(e.head) + len(e.journal) + len(e.view)
		for _, m := range e.future {
			is += len(m)
		}
	}
	return is, w.bytes
}

// MostBytes is the limit of them.
const MostBytes = mostBytes
