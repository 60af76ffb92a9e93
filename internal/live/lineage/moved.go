package lineage

import (
	"crypto/sha256"
	"slices"

	"github.com/condensehq/condense/internal/live/wire"
)

// plain returns a hash of the messages by their plain form, zero in an API without one, and how many of them it takes to reach
// the hash upto; all if they do not.
func plain(api wire.API, messages []wire.Message, upto wire.Hash) (sum wire.Hash, n int) {
	of := wire.Of(api).Plain
	for i := range messages {
		if of == nil {
			break
		}
		h, ok := of(messages[i].Raw)
		if !ok {
			continue
		}
		both := sha256.Sum256(append(sum[:], h[:]...))
		if sum = wire.Hash(both[:len(sum)]); sum == upto {
			return sum, i + 1
		}
	}
	return sum, len(messages)
}

// moved returns a state for a request of an agent that changed the model, and with it the form of the history. The state
// has the latest epoch that replaces the same messages in their former form. It is nil if no state has one, or if best
// has it. For a model without system messages, the epoch's system messages become the user's. The state records the messages
// that the epoch replaces; later messages count as never sent.
func moved(states []*State, best *State, r *wire.Request, rolling []wire.Hash) *State {
	var from *State
	cut := 0
	for _, t := range states {
		e := t.Epoch
		if e == nil || e.Plain == (wire.Hash{}) || t.Model == r.Model || !newer(e, best) || from != nil && !newer(e, from) {
			continue
		}
		if 0 < e.Cut && e.Cut <= len(rolling) && rolling[e.Cut-1] == e.From {
			continue // in the same form: the client went back, and best is where it was then
		}
		sum, n := plain(r.API, r.Messages, e.Plain)
		if sum != e.Plain {
			continue
		}
		for n < len(r.Messages) && r.Messages[n].Role == "system" { // reminders of a message that is replaced
			n++
		}
		if n < len(r.Messages) {
			from, cut = t, n
		}
	}
	if from == nil {
		return nil
	}
	s, e := *from, *from.Epoch
	e.Cut, e.From, e.Whole, e.Bare, e.Over = cut, rolling[cut-1], false, nil, ""
	if !slices.ContainsFunc(r.Messages, func(m wire.Message) bool { return m.Role == "system" }) {
		e.Block, e.Our = slices.Clone(e.Block), 0
		for i, raw := range e.Block {
			e.Block[i] = shape(r.API, wire.Remind(raw))
		}
	}
	s.ID, s.Epoch, s.Rolling, s.Ends, s.Lengths, s.Doubts, s.Ingest, s.Counts, s.counted = "", &e, rolling[:cut:cut], nil, nil, nil, nil, nil, nil
	s.follow(r, rolling, false)
	return &s
}

// newer reports whether e is later than the epoch of s. S may be nil.
func newer(e *Epoch, s *State) bool { return s == nil || s.Epoch == nil || e.N > s.Epoch.N }
