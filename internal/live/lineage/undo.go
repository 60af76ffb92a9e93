package lineage

import (
	"maps"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/wire"
)

// Undo returns a state without ID that takes the latest epoch back, as an epoch that begins now. former is the state
// before the latest epoch: its replacement of the first messages is sent again. If former is nil or has no block, the
// client's own messages are sent byte for byte, including messages that had been shortened. The undone state keeps its
// record, for a client that goes back to it.
//
// On a model that binds its thinking to the messages before it, thinking is left out if these messages are different
// now: everything after the last request of former, and everything at all if former has shortened messages. With
// thinking "enabled", the vendor requires some of that thinking until the turn is over; Undo then returns [ErrRound].
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
	n.Rolling, n.Ends, n.Lengths, n.Doubts, n.Counts, n.counted = rolling, nil, nil, nil, nil, nil
	valid := 0 // number of messages at the front whose thinking was written after the messages that are sent from now on
	switch {
	case former == nil || !former.Epoch.covers(rolling):
	case former.Condensed():
		f := former.Epoch
		e.Cut, e.From, e.Block, e.Whole, e.Bare, e.Over, e.Our = f.Cut, f.From, f.Block, f.Whole, f.Bare, f.Over, f.Our
		e.States = f.States
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
	} else {
		n.Loose = n.Loose || anyThinking(r.Messages[valid:])
	}
	return &n, nil
}

// Condensed reports whether an epoch replaces some of the client's messages.
func (s *State) Condensed() bool { return s.Epoch != nil && s.Epoch.Cut > 0 }
