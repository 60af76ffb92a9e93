package live

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/live/internal/telemetry"
)

// If an agent recalls something, leaving it out was a mistake. The recalled content stays in the view at the next
// condensation, and is counted here.

// recalled counts pieces recalled in the conversation of key. id is the ID of its record; empty if unknown.
func (g *Gateway) recalled(key store.Key, id string, pieces []recall.Piece, bytes int) {
	var kinds, named []Recalled
	for i := range pieces {
		what := pieces[i].What
		kinds = append(kinds, Recalled{
			What: strings.ToValidUTF8(what[:min(len(what), library.LongestTag)], ""),
			Pass: g.passes.Get(pieces[i].Handle), Count: 1,
		})
		named = append(named, kinds[i])
		named[i].Handle = pieces[i].Handle
	}
	if len(kinds) > 0 {
		kinds[0].Tokens = bytes / count.BytesPerToken
	}
	g.stats.Add(func(s *Stats) {
		s.Recalls++
		s.Tokens.Recalled += bytes / count.BytesPerToken
		s.Recalled = addRecalled(s.Recalled, kinds)
	})
	if w := g.current.Load().Reports.Watch; w != nil {
		if s := recordOf(g.life, g.store, key, id); s.State != nil {
			g.watched(func() {
				w.Later(s.Conversation, began(s.State), Finding{Recalled: bytes / count.BytesPerToken, Pieces: named})
			})
		}
	}
	of := telemetry.TenantKey.String(tenantOf(key.Tenant))
	g.measure(&telemetry.Recalls, 1, of)
	g.measure(&telemetry.Tokens, float64(bytes/count.BytesPerToken), of, telemetry.TypeKey.String("recalled"))
	g.current.Load().audit("recall", tenant.Caller{Tenant: tenantOf(key.Tenant)}, "pieces", len(pieces), "bytes", bytes)
	g.current.Load().Reports.Logger.Info("recalled", "pieces", len(pieces), "bytes", bytes)
}

// recordOf returns what is stored of a record; the zero value if nothing can be read.
func recordOf(ctx context.Context, in store.Store, key store.Key, id string) session.Stored {
	records, _ := in.Load(ctx, key) // a recall is then counted without a conversation
	for i := range records {
		var s session.Stored
		if records[i].ID == id && id != "" && json.Unmarshal(records[i].Data, &s) == nil {
			return s
		}
	}
	return session.Stored{}
}

// titled returns the title of a record's conversation.
func (g *Gateway) titled(ctx context.Context, key store.Key, id string) string {
	if a := recordOf(ctx, g.store, key, id).About; a != nil {
		return plain.Line(a.Title)
	}
	return ""
}

// statsKey is the store key of the statistics. It cannot collide with a tenant's key: those are longer.
var statsKey = store.Key{Tenant: "stats"}

// saving periodically saves the statistics, for [StoredStats], and the tenants' usage.
func (g *Gateway) saving(spent *store.Record) {
	const often = time.Minute
	tick := time.NewTicker(often)
	defer tick.Stop()
	r := store.NewOwn(statsKey)
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
		if r.Data, err = json.Marshal(savedStats{Stats: s}); err == nil {
			r.Updated = g.current.Load().Now()
			err = store.SaveOwn(ctx, g.store, r)
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
		var s savedStats
		if err := json.Unmarshal(r.Data, &s); err != nil {
			return sum, err
		}
		sum.add(&s.Stats)
	}
	return sum, nil
}
