package session

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
)

// An Aside is a record of a session that is no lineage. With a Round, it holds messages to put back after the client's
// message with the rolling hash At; without one, it says that the conversation whose first user message has that hash
// has the tool.
type Aside struct {
	At      wire.Hash   `json:"at"`
	Round   *wire.Round `json:"round,omitempty"`
	version int64
	updated time.Time
	id      string
}

// Prefixes of the IDs of asides. ToolRecords are separate records because they never change, and every branch of the
// conversation needs them.
const (
	RoundPrefix = "round:"
	ToolPrefix  = "tool:"
)

// ToolRecords are the asides of a session, by their rolling hash.
type ToolRecords struct {
	Tools  map[wire.Hash]*Aside
	Rounds map[wire.Hash][]*Aside
}

func (a *ToolRecords) add(r *store.Record) {
	one := &Aside{id: r.ID, version: r.Version, updated: r.Updated}
	if json.Unmarshal(r.Data, one) != nil {
		return // written by another version
	}
	if a.Tools == nil {
		a.Tools, a.Rounds = map[wire.Hash]*Aside{}, map[wire.Hash][]*Aside{}
	}
	if one.Round == nil {
		a.Tools[one.At] = one
	} else if !slices.ContainsFunc(a.Rounds[one.At], func(o *Aside) bool { return o.id == one.id }) {
		a.Rounds[one.At] = append(a.Rounds[one.At], one)
		slices.SortStableFunc(a.Rounds[one.At], func(x, y *Aside) int { return x.updated.Compare(y.updated) })
	}
}

// OfTool reports whether id is the ID of an aside's record.
func OfTool(id string) bool {
	return strings.HasPrefix(id, RoundPrefix) || strings.HasPrefix(id, ToolPrefix)
}

// Keep stores an aside under a new ID, and adds it to the session. The error is the store's.
func (s *Session) Keep(ctx context.Context, in store.Store, prefix string, one *Aside, now time.Time) error {
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	r := &store.Record{ID: prefix + rand.Text(), Key: s.Key, Updated: now, Data: data}
	if err := in.Save(ctx, r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asides.add(r)
	return nil
}

// Tooled returns the asides of the session, and whether it has a lineage whose first message of the user, at index
// first, has the rolling hash opening. The error is the store's if nothing is known.
func (s *Session) Tooled(first int, opening wire.Hash) (known ToolRecords, without bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.known()
	known = ToolRecords{maps.Clone(s.asides.Tools), maps.Clone(s.asides.Rounds)}
	without = slices.ContainsFunc(s.entries, func(e *Entry) bool {
		return e.State != nil && first < len(e.State.Rolling) && e.State.Rolling[first] == opening
	})
	return known, without, err
}
