// Package online shows the conversations of a running gateway on pages: their sizes, epochs and money.
//
// It has numbers only, no text. They are written to the gateway's store, as [Evidence], so that they survive the process and
// include all gateways with that store.
package online

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/live"
)

// maxConversations are in memory.
const maxConversations = 500

// A Watch is a [live.Watcher]. It is safe for concurrent use.
type Watch struct {
	log    *slog.Logger
	store  store.Store // nil if nothing is stored
	source string      // begins the IDs of the records of this process
	end    context.CancelFunc
	kept   sync.WaitGroup

	mu            sync.Mutex
	conversations map[string]*conversation
	others        map[string]*Evidence // of other processes, by the ID of the record
}

// A conversation is the state of one conversation. Guarded by Watch.mu.
type conversation struct {
	Evidence

	changed bool         // since it was last written
	record  store.Record // used only by the goroutine that writes
}

// New returns a watch that keeps the
// numbers in the store at an address in the form of [live.Options]; empty or "memory" means memory.
func New(ctx context.Context, address string, log *slog.Logger) (*Watch, error) {
	w := &Watch{log: log, conversations: map[string]*conversation{}, source: strings.ToLower(rand.Text()[:firstSource]) + "-"}
	if address == "" || address == "memory" {
		return w, nil
	}
	var err error
	if w.store, err = store.Open(ctx, address); err != nil {
		return nil, err
	}
	var life context.Context
	life, w.end = context.WithCancel(context.WithoutCancel(ctx))
	w.kept.Go(func() { w.keeping(life) })
	return w, nil
}

// Close writes the numbers to the store. Only the methods for pages may be called after it.
func (w *Watch) Close() error {
	if w.store == nil {
		return nil
	}
	w.end()
	w.kept.Wait()
	return w.store.Close()
}

// Turn implements [live.Watcher].
func (w *Watch) Turn(t *live.Turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conversations[t.Conversation]
	if c == nil {
		w.forgetOldest()
		c = &conversation{Evidence: Evidence{ID: t.Conversation, First: t.Time, Epochs: []*Epoch{}}}
		c.record = store.Record{ID: w.source + t.Conversation, Key: store.Key{Tenant: t.Tenant, API: api, Session: t.Conversation}}
		if name, _, named := strings.Cut(t.Tenant, ":"); named {
			c.Tenant = name
		}
		w.conversations[t.Conversation] = c
	}
	c.changed = true
	c.Agent, c.Model, c.Profile, c.Mode, c.Observe = t.Agent, t.Model, t.Profile, t.Mode, t.Observe
	c.Last, c.Messages, c.Tokens = t.Time, t.Messages, t.Tokens
	c.Turns++
	c.point(t)
	if t.Epoch != nil {
		e := c.epoch(t.Epoch.Time)
		e.Epoch, e.Profile, e.Mode = *t.Epoch, t.Profile, t.Mode
	}
}

// epoch returns the epoch that began at a time, creating it if this process does not have it yet.
func (c *conversation) epoch(began time.Time) *Epoch {
	i := slices.IndexFunc(c.Epochs, func(e *Epoch) bool { return e.Time.Equal(began) })
	if i < 0 {
		i = len(c.Epochs)
		c.Epochs = append(c.Epochs, &Epoch{Epoch: live.Epoch{Time: began, Lineage: c.ID}})
	}
	return c.Epochs[i]
}

// Answer implements [live.Watcher].
func (w *Watch) Answer(id string, u *live.Used) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conversations[id]
	if c == nil {
		return
	}
	c.Input += u.Input
	c.Read += u.Read
	c.Write += u.Write
	c.Output += u.Output
	c.Cost += u.Cost
	c.Saved += u.Saved
	if i := slices.IndexFunc(c.Curve, func(p Point) bool { return p.Time.Equal(u.Time) }); i >= 0 {
		c.Curve[i].Saved = c.Saved
	}
	if !u.Priced {
		c.Unpriced++
	}
	c.changed = true
	if !u.Epoch.IsZero() { // these savings are due to the epoch
		e := c.epoch(u.Epoch)
		if e.Time.Equal(u.Time) {
			e.CacheRead, e.CacheWrite = u.Read, u.Write
		}
		e.Answers++
		e.Saved += u.Saved
		e.Unpriced = e.Unpriced || !u.Priced
		if e.PaidAt == 0 && e.Saved > 0 {
			e.PaidAt = e.Answers
		} else if e.Saved < 0 {
			e.PaidAt = 0
		}
	}
}

// Later implements [live.Watcher].
func (w *Watch) Later(id string, began time.Time, f live.Finding) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.conversations[id]
	if c == nil || began.IsZero() {
		return
	}
	c.changed = true
	e := c.epoch(began)
	if f.Truth != nil {
		e.Truth = f.Truth
		return
	}
	e.Recalls++
	e.Recalled += f.Recalled
	e.recalls(f.Pieces)
}

// forgetOldest makes room for a conversation.
func (w *Watch) forgetOldest() {
	if len(w.conversations) < maxConversations {
		return
	}
	var oldest *conversation
	for _, c := range w.conversations {
		if oldest == nil || c.Last.Before(oldest.Last) {
			oldest = c
		}
	}
	delete(w.conversations, oldest.ID)
}
