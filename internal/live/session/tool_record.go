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

// A ToolRecord is a record of a session that is no lineage. With a Round, it holds messages to put back after the client's
// message with the rolling hash At; without one, it says that the conversation whose first user message has that hash
// has the tool.
type ToolRecord struct {
	At      wire.Hash   `json:"at"`
	Round   *wire.Round `json:"round,omitempty"`
	version int64
	updated time.Time
	id      string
}

// Prefixes of the IDs of tool records. ToolRecords are separate records because they never change, and every branch of the
// conversation needs them.
const (
	RoundPrefix = "round:"
	ToolPrefix  = "tool:"
)

// ToolRecords are the tool records of a session, by their rolling hash.
type ToolRecords struct {
	Tools  map[wire.Hash]*ToolRecord
	Rounds map[wire.Hash][]*ToolRecord
}

func (a *ToolRecords) add(r *store.Record) {
	one := &ToolRecord{id: r.ID, version: r.Version, updated: r.Updated}
	if json.Unmarshal(r.Data, one) != nil {
		return // written by another version
	}
	if a.Tools == nil {
		a.Tools, a.Rounds = map[wire.Hash]*ToolRecord{}, map[wire.Hash][]*ToolRecord{}
	}
	if one.Round == nil {
		a.Tools[one.At] = one
	} else if !slices.ContainsFunc(a.Rounds[one.At], func(o *ToolRecord) bool { return o.id == one.id }) {
		a.Rounds[one.At] = append(a.Rounds[one.At], one)
		slices.SortStableFunc(a.Rounds[one.At], func(x, y *ToolRecord) int { return x.updated.Compare(y.updated) })
	}
}

// OfTool reports whether id is the ID of a tool record.
func OfTool(id string) bool {
	return strings.HasPrefix(id, RoundPrefix) || strings.HasPrefix(id, ToolPrefix)
}

// Keep stores a tool record under a new ID, and adds it to the session. The error is the store's.
func (s *Session) Keep(ctx context.Context, in store.Store, prefix string, one *ToolRecord, now time.Time) error {
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
	s.tools.add(r)
	return nil
}

// Tooled returns the tool records of the session, and whether it has a lineage whose first message of the user, at index
// first, has the rolling hash opening. The error is the store's if nothing is known.
func (s *Session) Tooled(first int, opening wire.Hash) (known ToolRecords, without bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.loadErr()
	known = ToolRecords{maps.Clone(s.tools.Tools), maps.Clone(s.tools.Rounds)}
	without = slices.ContainsFunc(s.entries, func(e *Entry) bool {
		return e.State != nil && first < len(e.State.Rolling) && e.State.Rolling[first] == opening
	})
	return known, without, err
}
