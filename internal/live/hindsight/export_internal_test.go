package hindsight

import (
	"context"
	"time"
)

// Save writes all that has changed, as at the end.
func (w *Watch) Save(ctx context.Context) { w.save(ctx, time.Time{}) }
