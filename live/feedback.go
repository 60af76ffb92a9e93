package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/recall"
)

// If an agent recalls something, leaving it out was a mistake. The recalled content stays in the view at the next
// condensation, and is counted here.

// Recalled counts recalls of one kind of content.
type Recalled struct {
	What   string `json:"what"`           // kind of content, as in "result of read_file"
	Pass   string `json:"pass,omitempty"` // the pass that left it out, as in "smart/prune", or "ingest"; empty if unknown
	Count  int    `json:"count"`
	Tokens int    `json:"tokens"` // given back; estimated
}

// Limits of the memory of recalls.
const (
	mostKinds  = 200
	mostPasses = 1 << 14 // number of handles
	longestTag = 80      // bytes
)

// passes maps each handle left in a view since the gateway was started to the pass that left it.
type passes struct {
	mu sync.Mutex
	of map[string]string
}

func (p *passes) add(of map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil || len(p.of) > mostPasses {
		p.of = map[string]string{}
	}
	for handle, pass := range of {
		if _, known := p.of[handle]; !known {
			p.of[handle] = pass
		}
	}
}

func (p *passes) get(handle string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[handle]
}

// passesOf returns the pass that left each handle, by handle.
func passesOf(r *condense.Report) map[string]string {
	of := map[string]string{}
	for _, a := range r.Attempts {
		if a.Outcome != core.OutcomeApplied {
			continue
		}
		for _, s := range a.Steps {
			for _, h := range s.Handles {
				if of[h] == "" {
					of[h] = a.Provider + "/" + s.Name
				}
			}
		}
	}
	return of
}

// recalled counts pieces recalled in the conversation of key. id is the ID of its record; empty if unknown.
func (g *Gateway) recalled(key store.Key, id string, pieces []recall.Piece, bytes int) {
	var kinds []Recalled
	for i := range pieces {
		what := pieces[i].What
		kinds = append(kinds, Recalled{What: strings.ToValidUTF8(what[:min(len(what), longestTag)], ""), Pass: g.passes.get(pieces[i].Handle), Count: 1})
	}
	if len(kinds) > 0 {
		kinds[0].Tokens = bytes / bytesPerToken
	}
	g.stats.add(func(s *Stats) {
		s.Recalls++
		s.Tokens.Recalled += bytes / bytesPerToken
		s.Recalled = added(s.Recalled, kinds)
	})
	if w := g.current.Load().Watch; w != nil {
		if conversation, epoch := g.recordOf(key, id); conversation != "" {
			g.watched(func() { w.Recall(conversation, epoch, bytes/bytesPerToken) })
		}
	}
	tenant := aTenant.String(tenantOf(key.Tenant))
	g.measure(&mRecalls, 1, tenant)
	g.measure(&mTokens, float64(bytes/bytesPerToken), tenant, aType.String("recalled"))
	g.current.Load().audit("recall", caller{tenant: tenantOf(key.Tenant)}, "pieces", len(pieces), "bytes", bytes)
	g.current.Load().Logger.Info("recalled", "pieces", len(pieces), "bytes", bytes)
}

// recordOf returns the conversation of a record, and the time when its epoch began. Both are zero if unknown.
func (g *Gateway) recordOf(key store.Key, id string) (conversation string, epoch time.Time) {
	if id == "" {
		return "", time.Time{}
	}
	records, err := g.store.Load(g.life, key)
	if err != nil {
		return "", time.Time{} // the recall is then counted without a conversation
	}
	for i := range records {
		var s stored
		if records[i].ID == id && json.Unmarshal(records[i].Data, &s) == nil {
			return s.Conversation, began(s.State)
		}
	}
	return "", time.Time{}
}

// added returns the sum of two lists of recalls, the most frequent first.
func added(all, more []Recalled) []Recalled {
	all = slices.Clone(all)
	for _, m := range more {
		i := slices.IndexFunc(all, func(r Recalled) bool { return r.What == m.What && r.Pass == m.Pass })
		switch {
		case i >= 0:
			all[i].Count += m.Count
			all[i].Tokens += m.Tokens
		case len(all) < mostKinds:
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b Recalled) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.What, b.What))
	})
	return all
}

// statsKey is the store key of the statistics. It cannot collide with a tenant's key: those are longer.
var statsKey = store.Key{Tenant: "stats"}

// saved is the stored form of the statistics.
type saved struct {
	Stats Stats `json:"stats"`
}

// newRecord returns a new record that only this gateway writes.
func newRecord(k store.Key) *store.Record {
	return &store.Record{ID: k.Tenant + "-" + strings.ToLower(rand.Text()), Key: k}
}

// saveOwn saves a record that only this gateway writes, whatever happened to the stored one: it may have been deleted
// as old, or been stored although the database went away before it confirmed that.
func (g *Gateway) saveOwn(ctx context.Context, r *store.Record) error {
	err := g.store.Save(ctx, r)
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	all, err := g.store.Load(ctx, r.Key)
	if err != nil {
		return err
	}
	r.Version = 0
	for i := range all {
		if all[i].ID == r.ID {
			r.Version = all[i].Version
		}
	}
	return g.store.Save(ctx, r)
}

// saving periodically saves the statistics, for [StoredStats], and the tenants' usage.
func (g *Gateway) saving(spent *store.Record) {
	const often = time.Minute
	tick := time.NewTicker(often)
	defer tick.Stop()
	r := newRecord(statsKey)
	done := 0
	save := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(g.life), longestNote)
		defer cancel()
		if err := g.share(ctx, spent); err != nil {
			g.fault("usage", err)
		}
		s := g.Stats()
		if s.Requests+s.Recalls == done {
			return
		}
		done = s.Requests + s.Recalls
		s.Epochs = nil
		var err error
		if r.Data, err = json.Marshal(saved{s}); err == nil {
			r.Updated = g.current.Load().Now()
			err = g.saveOwn(ctx, r)
		}
		if err != nil {
			g.fault("stats", err)
		}
	}
	for {
		select {
		case <-tick.C:
			save()
			_ = g.storeReady(g.life) // the error is logged there
		case <-g.life.Done():
			save()
			return
		}
	}
}

// StoredStats returns the stored statistics of all gateways that use the store at address. Each saves them every
// minute and when it ends.
func StoredStats(ctx context.Context, address string) (Stats, error) {
	sum := Stats{Errors: map[string]int{}, Epochs: []Epoch{}, Attempts: []Attempt{}}
	db, err := store.Open(ctx, address)
	if err != nil {
		return sum, err
	}
	defer db.Close() //nolint:errcheck // it was only read
	records, err := db.Load(ctx, statsKey)
	if err != nil {
		return sum, err
	}
	for _, r := range records {
		if r.Damaged {
			continue
		}
		var s saved
		if err := json.Unmarshal(r.Data, &s); err != nil {
			return sum, err
		}
		sum.add(&s.Stats)
	}
	return sum, nil
}

// add adds the statistics of another gateway to s.
func (s *Stats) add(o *Stats) {
	if s.Since.IsZero() || o.Since.Before(s.Since) {
		s.Since = o.Since
	}
	s.Requests += o.Requests
	s.Passed += o.Passed
	t, u := &s.Tokens, &o.Tokens
	t.Received += u.Received
	t.Recalled += u.Recalled
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite
	t.Output += u.Output
	s.Cost += o.Cost
	s.Unpriced += o.Unpriced
	s.Estimated += o.Estimated
	if o.AsOf.After(s.AsOf) {
		s.AsOf = o.AsOf
	}
	if h := o.Observed; h != nil {
		sum := s.observed()
		sum.Epochs += h.Epochs
		sum.Ingested += h.Ingested
		sum.Sent += h.Sent
		sum.Saved += h.Saved
		sum.CostSaved += h.CostSaved
	}
	if o.Observe && o.Observed == nil { // saved by an earlier version: everything was sent unchanged
		t.Sent += u.Received
	} else {
		t.Sent += u.Sent
		s.EpochCount += o.EpochCount
		t.Saved += u.Saved
		t.Net += u.Net
		s.Saved += o.Saved
		s.Ingested += o.Ingested
	}
	s.Accounts = addAccounts(s.Accounts, o.Accounts)
	s.Compactions += o.Compactions
	s.Recalls += o.Recalls
	s.Recalled = added(s.Recalled, o.Recalled)
	for kind, n := range o.Errors {
		s.Errors[kind] += n
	}
	for i := range o.Attempts {
		s.Attempts = addAttempt(s.Attempts, &o.Attempts[i])
	}
	for _, w := range o.Windows {
		s.Windows = addWindow(s.Windows, w)
	}
	for i := range o.Unreachable {
		s.Unreachable = addUnreachable(s.Unreachable, &o.Unreachable[i])
	}
}
