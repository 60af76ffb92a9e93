package lineage

import (
	"slices"

	"github.com/condensehq/condense/internal/live/wire"
)

// Adapt changes s for the model of r, which binds thinking to the messages before it if bound is set, or if s knows
// that of the same model.
func (s *State) Adapt(r *wire.Request, rolling []wire.Hash, bound bool) {
	if s.Bound = bound || s.Bound && s.Model == r.Model; s.Bound {
		s.Bind(r, rolling)
	}
}

// Bind changes s: the model of r binds thinking to the messages before it. The thinking of answers that are new in r
// is left out, unless they answer a request that was sent with this epoch. Otherwise the messages before such an
// answer were not those sent now: the client may have bypassed the gateway, or a branch may have sent them that is no
// longer stored. Thinking of models that do not bind theirs stays.
func (s *State) Bind(r *wire.Request, rolling []wire.Hash) {
	s.Bound = true
	if s.Epoch == nil && len(s.Ingest) == 0 && !s.Tool {
		return
	}
	shared := s.shared(rolling)
	known, end := true, 0
	for i := shared; i < len(r.Messages); i++ {
		if r.Messages[i].Role != "assistant" {
			continue
		}
		if i == shared || r.Messages[i-1].Role != "assistant" {
			known = i > 0 && slices.Contains(s.Ends, rolling[i-1])
		}
		if !known {
			end = i + 1
		}
	}
	if end > 0 {
		s.bare(r, rolling, shared, end)
	}
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
