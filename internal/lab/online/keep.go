package online

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/store"
)

// Intervals of writing and reading evidence. A process that is killed loses measurements of the last interval.
const (
	tick        = time.Minute
	allOver     = time.Hour       // interval of reading everything again, to notice deletions
	slack       = 5 * time.Minute // tolerance for differences between clocks and for open transactions
	maxOthers   = 1000            // conversations of other processes that are shown
	lastWrite   = 5 * time.Second // at the end
	firstSource = 8               // characters that tell processes apart
)

// keeping writes this process's evidence and reads other processes' until the watch is closed.
func (w *Watch) keeping(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	var last, all time.Time
	for {
		now := time.Now()
		if now.Sub(all) >= allOver {
			last, all = time.Time{}, now
		}
		if w.load(ctx, last) {
			last = now.Add(-slack)
		}
		select {
		case <-t.C:
			w.save(ctx)
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
			defer cancel()
			w.save(ctx)
			return
		}
	}
}

// load reads evidence that other processes have written since a time. The zero time means all: then evidence that is
// no longer in the store is dropped.
func (w *Watch) load(ctx context.Context, since time.Time) bool {
	found, err := stored(ctx, w.store, since, maxOthers)
	if err != nil {
		if ctx.Err() == nil {
			w.log.WarnContext(ctx, "measurements of other gateways could not be read", "err", err)
		}
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if since.IsZero() || w.others == nil {
		w.others = map[string]*Evidence{}
	}
	for id, c := range found {
		if !strings.HasPrefix(id, w.source) {
			w.others[id] = c
		}
	}
	return true
}

// save writes the conversations with epochs that have changed.
func (w *Watch) save(ctx context.Context) {
	var due []*conversation
	w.mu.Lock()
	for _, c := range w.conversations {
		if c.changed && len(c.Epochs) > 0 {
			due = append(due, c)
		}
	}
	w.mu.Unlock()
	for _, c := range due {
		if err := w.write(ctx, c); err != nil {
			w.log.WarnContext(ctx, "measurements could not be stored", "err", err)
			return
		}
	}
}

// write stores the evidence of a conversation.
func (w *Watch) write(ctx context.Context, c *conversation) error {
	w.mu.Lock()
	text, err := json.Marshal(&c.Evidence)
	c.changed = false
	w.mu.Unlock()
	if err != nil {
		return err
	}
	c.record.Data, c.record.Updated = text, time.Now()
	err = w.store.Save(ctx, &c.record)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, store.ErrConflict): // it was deleted, as with 'condense store forget': drop it here, too
		delete(w.conversations, c.ID)
		return nil
	case err != nil:
		c.changed = true
		return err
	}
	return nil
}

// all returns the evidence of this process and of others. The caller holds w.mu.
func (w *Watch) all() []*Evidence {
	all := make([]*Evidence, 0, len(w.conversations)+len(w.others))
	for _, c := range w.conversations {
		all = append(all, &c.Evidence)
	}
	for _, c := range w.others {
		all = append(all, c)
	}
	all = merge(all)
	return slices.Clip(all[:min(len(all), maxOthers)])
}

// find returns all gateways' record of a conversation, nil if there is none. The caller holds w.mu.
func (w *Watch) find(id string) *Evidence {
	var parts []*Evidence
	for _, c := range w.others {
		if c.ID == id {
			parts = append(parts, c)
		}
	}
	if c := w.conversations[id]; c != nil {
		parts = append(parts, &c.Evidence)
	}
	if len(parts) == 0 {
		return nil
	}
	return merge(parts)[0]
}
