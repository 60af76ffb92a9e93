package lineage

import (
	"slices"

	"github.com/condensehq/condense/internal/live/wire"
)

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
