package online

import (
	"context"
)

// Save writes all that has changed, as at the end.
func (w *Watch) Save(ctx context.Context) { w.save(ctx) }
