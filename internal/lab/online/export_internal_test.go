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
		is += len(e.last) + len(e.history) + len(e.head) + len(e.journal)
		for _, v := range e.views {
			is += len(v)
		}
		for _, m := range e.future {
			is += len(m)
		}
	}
	return is, w.bytes
}

// MostBytes is the limit of them.
const MostBytes = mostBytes

// Reporting makes the next page wait while the report is made.
func (w *Watch) Reporting(wait func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report = func() verdicts { wait(); return judge(nil, nil)() }
}
