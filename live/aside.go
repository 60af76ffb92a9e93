package live

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
)

// An aside is a record of a session that is no lineage. With a Round, it holds messages to put back after the client's
// message with the rolling hash At; without one, it says that the conversation whose first user message has that hash
// has the tool.
type aside struct {
	At      wire.Hash   `json:"at"`
	Round   *wire.Round `json:"round,omitempty"`
	version int64
	updated time.Time
	id      string
}

// Prefixes of the IDs of asides. Asides are separate records because they never change, and every branch of the
// conversation needs them.
const (
	roundPrefix = "round:"
	toolPrefix  = "tool:"
)

// asides holds the asides of a session, by their rolling hash.
type asides struct {
	tools  map[wire.Hash]*aside
	rounds map[wire.Hash][]*aside
}

func (a *asides) add(r *store.Record) {
	one := &aside{id: r.ID, version: r.Version, updated: r.Updated}
	if json.Unmarshal(r.Data, one) != nil {
		return // written by another version
	}
	if a.tools == nil {
		a.tools, a.rounds = map[wire.Hash]*aside{}, map[wire.Hash][]*aside{}
	}
	if one.Round == nil {
		a.tools[one.At] = one
	} else if !slices.ContainsFunc(a.rounds[one.At], func(o *aside) bool { return o.id == one.id }) {
		a.rounds[one.At] = append(a.rounds[one.At], one)
		slices.SortStableFunc(a.rounds[one.At], func(x, y *aside) int { return x.updated.Compare(y.updated) })
	}
}

// isAside reports whether id is the ID of an aside's record.
func isAside(id string) bool {
	return strings.HasPrefix(id, roundPrefix) || strings.HasPrefix(id, toolPrefix)
}

// keep stores an aside under a new ID, and adds it to the session. The error is the store's.
func (s *session) keep(ctx context.Context, in store.Store, prefix string, one *aside, now time.Time) error {
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	r := &store.Record{ID: prefix + rand.Text(), Key: s.key, Updated: now, Data: data}
	if err := in.Save(ctx, r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asides.add(r)
	return nil
}
