package lineage

import (
	"maps"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/wire"
)

// Undo returns the state of an epoch that begins now, without an ID, and takes the latest one back: former, the state
// that the latest goes on from, says what is sent in place of the first messages; without it, or if it has no block,
// the client's own messages are sent byte for byte, also those that were shortened. The undone state keeps its
// record, for a client that goes back to it.
//
// On a model that binds its thinking, what was written after other messages is left out: all that came after the last
// request of former, and all if former has shortened messages. With thinking "enabled" a vendor wants some of it back
// until the turn is over: that is [ErrRound].
func (s *State) Undo(former *State, r *wire.Request, rolling []wire.Hash, now time.Time) (*State, error) {
	if !s.Condensed() {
		return nil, ErrNothing
	}
	if r.Thinking == "enabled" && s.Bound && thinks(r.Messages) {
		return nil, ErrRound
	}
	e := &Epoch{N: s.Epoch.N + 1, Reason: epoch.Undone, Time: now}
	n := *s
	n.ID, n.Epoch, n.Ingest, n.Held = "", e, nil, true
	n.Rolling, n.Ends, n.Lengths, n.Counts, n.counted = rolling, nil, nil, nil, nil
	valid := 0 // messages at the front whose thinking was written after what is sent from now on
	switch {
	case former == nil || !former.Epoch.covers(rolling):
	case former.Condensed():
		f := former.Epoch
		e.Cut, e.From, e.Block, e.Whole, e.Bare, e.Over, e.Our = f.Cut, f.From, f.Block, f.Whole, f.Bare, f.Over, f.Our
		n.Ingest = maps.Clone(former.Ingest)
		for k, raw := range s.Ingest {
			if n.Ingest == nil {
				n.Ingest = map[string][]byte{}
			}
			n.Ingest[k] = raw
		}
		valid = max(f.Cut, former.shared(rolling))
	case former.Epoch == nil && len(former.Ingest) == 0:
		valid = former.shared(rolling)
	}
	if s.Bound {
		n.bare(r, rolling, valid, len(r.Messages))
	}
	return &n, nil
}

// Condensed reports whether an epoch replaces some of the client's messages.
func (s *State) Condensed() bool { return s.Epoch != nil && s.Epoch.Cut > 0 }
