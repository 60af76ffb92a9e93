package lineage

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
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

// Unprompted is [Roll] without the system prompts at the front: an agent can change these in the middle of a conversation.
func Unprompted(messages []wire.Message) []wire.Hash {
	n := prompts(messages)
	return append(make([]wire.Hash, n), Roll(messages[n:])...)
}

// prompts returns the number of system prompts at the front, in an API that has them among the messages.
func prompts(messages []wire.Message) int {
	return max(0, slices.IndexFunc(messages, func(m wire.Message) bool { return !isPrompt(m.Role) }))
}

func isPrompt(role string) bool { return roleParts[role] == "system" }

// Plain returns the rolling hash of each message by its plain form, that of the one before it if it has none. In an API without one it
// is [Unprompted], nil if that is Roll.
func Plain(api wire.API, messages []wire.Message) (all []wire.Hash) {
	var sum wire.Hash
	of := wire.Of(api).Plain
	if of == nil && prompts(messages) > 0 {
		return Unprompted(messages)
	}
	for i := 0; i < len(messages) && of != nil; i++ {
		if h, ok := of(messages[i].Raw); ok {
			both := sha256.Sum256(append(sum[:], h[:]...))
			sum = wire.Hash(both[:len(sum)])
		}
		all = append(all, sum)
	}
	return all
}

// moved returns a state for a request of an agent that changed the model, and with it the form of the history, or its prompts. The state
// has the latest epoch that replaces the same messages in their former form. It is nil if no state has one, or if best
// has it. For a model without system messages, the epoch's system messages become the user's; prompts at the front are the request's. The
// state records the messages that the epoch replaces; later messages count as never sent.
func moved(states []*State, best *State, r *wire.Request, rolling []wire.Hash) *State {
	var from *State
	var sums []wire.Hash
	cut, forms := 0, wire.Of(r.API).Plain != nil
	for _, t := range states {
		e := t.Epoch
		same := t.Model == r.Model && (forms || best != nil)
		if e == nil || e.Plain == (wire.Hash{}) || same || !newer(e, best) || from != nil && !newer(e, from) {
			continue
		}
		if 0 < e.Cut && e.Cut <= len(rolling) && rolling[e.Cut-1] == e.From {
			continue // in the same form: the client went back, and best is where it was then
		}
		if sums == nil {
			sums = Plain(r.API, r.Messages)
		}
		n := 1 + slices.Index(sums, e.Plain)
		if n == 0 {
			continue
		}
		for n < len(r.Messages) && r.Messages[n].Role == "system" && forms { // reminders of a message that is replaced
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
	if n := prompts(r.Messages); n > 0 {
		block := plain.Each(r.Messages[:n], func(m wire.Message) []byte { return shape(r.API, m.Raw) })
		rest := max(0, slices.IndexFunc(e.Block, func(raw []byte) bool { return !isPrompt(rawjson.Text(rawjson.Field(raw, "role"))) }))
		e.Block, e.Our = append(block, e.Block[rest:]...), 0
	}
	if forms && !slices.ContainsFunc(r.Messages, func(m wire.Message) bool { return m.Role == "system" }) {
		e.Block, e.Our = slices.Clone(e.Block), 0
		for i, raw := range e.Block {
			e.Block[i] = shape(r.API, wire.Remind(raw))
		}
	}
	s.ID, s.Epoch, s.Rolling, s.Ends, s.Lengths, s.Doubts, s.Ingest, s.Counts, s.counted = "", &e, rolling[:cut:cut], nil, nil, nil, nil, nil, nil
	s.follow(r, rolling, false)
	return &s
}

// family returns the family of a state whose last request had the first messages after other prompts; "" without one.
func family(states []*State, messages []wire.Message) string {
	sums := Unprompted(messages)
	for _, t := range states {
		if t.Plain != (wire.Hash{}) && slices.Contains(sums, t.Plain) {
			return t.Family
		}
	}
	return ""
}

// newer reports whether e is later than the epoch of s. S may be nil.
func newer(e *Epoch, s *State) bool { return s == nil || s.Epoch == nil || e.N > s.Epoch.N }

// Adapt changes s for the model of r, which binds thinking to the messages before it if bound is set, or if s knows
// that of the same model. Thinking that an epoch or an undo on another model left with other messages is left out then.
func (s *State) Adapt(r *wire.Request, rolling []wire.Hash, bound bool) {
	s.follow(r, rolling, bound)
	switch from, to := s.unknown(r, rolling); {
	case !s.Bound:
		s.Loose = s.Loose || anyThinking(r.Messages[from:to])
	case s.Loose: // models that bind thinking do not demand that a turn begins with it
		s.Strip(r, rolling)
		s.Loose = false
	}
}

// follow is Adapt where it is not yet known whether the model binds thinking. On one that does, the thinking of answers that are
// new in r is left out, unless they answer a request that was sent with this epoch. On others it stays.
func (s *State) follow(r *wire.Request, rolling []wire.Hash, bound bool) {
	if s.Bound = bound || s.Bound && s.Model == r.Model; !s.Bound {
		return
	}
	if from, to := s.unknown(r, rolling); from < to {
		s.bare(r, rolling, from, to)
	}
}

// unknown returns the range of messages that are new in r up to the last answer to a request that was not sent with
// this epoch. The messages before such an answer were not those sent now: the client may have bypassed the gateway, or
// a branch may have sent them that is no longer stored.
func (s *State) unknown(r *wire.Request, rolling []wire.Hash) (from, to int) {
	if s.Epoch == nil && len(s.Ingest) == 0 && !s.Tool {
		return 0, 0
	}
	from = s.shared(rolling)
	known := true
	for i := from; i < len(r.Messages); i++ {
		if r.Messages[i].Role != "assistant" {
			continue
		}
		if i == from || r.Messages[i-1].Role != "assistant" {
			known = i > 0 && slices.Contains(s.Ends, rolling[i-1])
		}
		if !known {
			to = i + 1
		}
	}
	return from, max(from, to)
}

// Strip changes s: the thinking in the messages of r is no longer sent. It serves the retry after a vendor has
// refused thinking because the messages before it have changed. From then on, the model counts as one that binds
// thinking.
func (s *State) Strip(r *wire.Request, rolling []wire.Hash) {
	s.Bound = true
	cut := 0
	if s.Epoch != nil {
		if !s.Epoch.covers(rolling) {
			return
		}
		cut = s.Epoch.Cut
	}
	s.bare(r, rolling, cut, len(r.Messages))
	var block [][]byte
	for _, raw := range s.Epoch.Block {
		if raw = wire.StripThinking(r.API, raw); raw != nil {
			block = append(block, raw)
		}
	}
	s.Epoch.Block = block // of the copy that bare made, so it may be changed
	s.Epoch.Our = 0
}

// bare leaves out the thinking of the messages with indexes from ≤ i < to.
func (s *State) bare(r *wire.Request, rolling []wire.Hash, from, to int) {
	e := Epoch{}
	if s.Epoch != nil {
		e = *s.Epoch
	}
	known := e.bares()
	e.Bare = slices.Clip(e.Bare)
	for i := from; i < to; i++ {
		if r.Messages[i].Thinking && !known[rolling[i]] {
			e.Bare = append(e.Bare, rolling[i])
		}
	}
	s.Epoch = &e
	s.Counts = s.Counts[:min(len(s.Counts), from)]
}

func anyThinking(messages []wire.Message) bool {
	return slices.ContainsFunc(messages, func(m wire.Message) bool { return m.Thinking })
}
