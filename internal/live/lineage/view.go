package lineage

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/wire"
)

// maxMarkers is the number of cache markers that Anthropic accepts in tools, system prompt and messages together:
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching
const maxMarkers = 4

// View returns the messages to send in place of the messages of r: the block of the epoch, then the client's own, some
// of them shortened or without their thinking. Up to the length of the last forwarded request, these are the same
// bytes as then, except for cache markers, which are no part of a vendor's cached prefix. The client's markers on
// replaced messages are gone; the block gets one if r asks for caching and has fewer than four.
func (s *State) View(r *wire.Request, rolling []wire.Hash) [][]byte {
	view, _ := s.view(r, rolling)
	return view
}

// Origin returns, for each message of the view, the index of the client's message; -1 for the block.
func (s *State) Origin(r *wire.Request, rolling []wire.Hash) []int {
	_, origin := s.view(r, rolling)
	return origin
}

// Cached returns how many messages of a view with these origins the last request had as they are now.
func (s *State) Cached(rolling []wire.Hash, origin []int) (n int) {
	if s.Epoch != nil && !s.Epoch.covers(rolling) {
		return 0
	}
	for sent := common(s.Rolling, rolling); n < len(origin) && origin[n] < sent; {
		n++
	}
	return n
}

// view returns what View and Origin do.
func (s *State) view(r *wire.Request, rolling []wire.Hash) (view [][]byte, origin []int) {
	view, origin = make([][]byte, 0, len(r.Messages)), make([]int, 0, len(r.Messages))
	cut, bare := 0, map[wire.Hash]bool(nil)
	if e := s.Epoch; e != nil && e.covers(rolling) {
		cut, bare = e.Cut, e.bares()
		for _, raw := range e.Block {
			view, origin = append(view, raw), append(origin, -1)
		}
	}
	block := len(view)
	markers := r.HeadMarkers
	for i := cut; i < len(r.Messages); i++ {
		m := &r.Messages[i]
		raw := m.Raw
		if len(s.Ingest) > 0 {
			if short := s.Ingest[key(rolling[i])]; short != nil {
				if raw = short; m.Markers > 0 && wire.Marks(r.API) {
					raw = wire.Mark(r.API, short, m.TTL())
				}
			}
		}
		if m.Thinking && bare[rolling[i]] {
			if raw = wire.StripThinking(r.API, raw); raw == nil {
				continue
			}
		}
		view, origin = append(view, raw), append(origin, i)
		markers += m.Markers
	}
	if block > 0 && markers < maxMarkers && r.TTL > 0 && wire.Marks(r.API) {
		ttl := lifetime(r)
		for i := block - 1; i >= 0; i-- {
			if marked := wire.Mark(r.API, view[i], ttl); len(marked) != len(view[i]) {
				view[i] = marked
				break
			}
		}
	}
	return view, origin
}

// bares returns the rolling hashes of messages whose thinking is left out. The epoch may be nil.
func (e *Epoch) bares() map[wire.Hash]bool {
	if e == nil || len(e.Bare) == 0 {
		return nil
	}
	all := make(map[wire.Hash]bool, len(e.Bare))
	for _, h := range e.Bare {
		all[h] = true
	}
	return all
}

// lifetime returns the lifetime for a marker before the first kept message: an hour if the marker of some message asks
// for an hour. Markers with an hour must come before others, and then no marker before this one asks for less.
func lifetime(r *wire.Request) time.Duration {
	for i := range r.Messages {
		if r.Messages[i].TTL() >= time.Hour {
			return time.Hour
		}
	}
	return 5 * time.Minute
}

// A Condensed is the result of condensing a view.
type Condensed struct {
	Basis  *Basis            // basis of the condensed view; nil for the current request
	After  []wire.Message    // the result
	States map[string][]byte // see [Epoch]
	Forced bool              // it must be used even if it breaks a round of tools in which the model thinks
	epoch.Decision
}

// A Basis identifies the source of a view: its messages, and the epoch before it.
type Basis struct {
	upto      int
	at, epoch wire.Hash
}

// Basis returns the basis of the view of a request, for a condensation to be used with a later request.
func (s *State) Basis(rolling []wire.Hash) *Basis {
	b := &Basis{upto: len(rolling)}
	if len(rolling) > 0 {
		b.at = rolling[len(rolling)-1]
	}
	if s.Epoch != nil {
		b.epoch = s.Epoch.From
	}
	return b
}

// Fits reports whether a condensation of this basis can be used with a request: the messages still begin with the
// basis, and no epoch has begun since.
func (b *Basis) Fits(s *State, rolling []wire.Hash) bool {
	return b.upto <= len(rolling) && *s.Basis(rolling[:b.upto]) == *b
}

// Before reports whether the messages continue after the basis.
func (b *Basis) Before(rolling []wire.Hash) bool { return b.upto < len(rolling) }

// Errors of [State.Freeze].
var (
	ErrStale   = errors.New("the condensation is of other messages, or an epoch began since it was prepared")
	ErrNothing = errors.New("the condensation replaced nothing")
	ErrRound   = errors.New("the condensation took the thinking from the start of a turn that is not finished")
	ErrParted  = errors.New("the condensation parted a tool call from its result")
)

// Freeze returns a state without ID for an epoch that begins now; s keeps its record, because the client may rewind to
// it. Messages that the condensation left unchanged at the end stay the client's own bytes. Only the messages before
// them are frozen, so a client that goes back into the kept messages keeps the epoch. The same holds for a
// condensation that was prepared while the conversation went on: the messages after its basis are kept.
//
// On a model that binds thinking to the messages before it, all thinking so far is left out from now on. On other
// models, and after a compaction signed by the vendor, it stays. With thinking "enabled", the vendor requires a turn
// of tool calls that began with thinking to keep it: a condensation that breaks this returns [ErrRound], unless it is
// forced.
func (s *State) Freeze(r *wire.Request, rolling []wire.Hash, c Condensed, now time.Time) (*State, error) {
	upto := len(rolling)
	if c.Basis != nil {
		upto = c.Basis.upto
		if !c.Basis.Fits(s, rolling) {
			return nil, ErrStale
		}
	}
	before := *r
	before.Messages = r.Messages[:upto]
	view, origin := s.view(&before, rolling[:upto])

	kept := unchanged(r, view, origin, c.After)
	cut := upto
	if kept > 0 {
		cut = origin[len(view)-kept]
	}
	head := c.After[:len(c.After)-kept]
	if cut == 0 || len(head) == len(view)-kept && slices.EqualFunc(head, view[:len(head)], func(m wire.Message, v []byte) bool { return bytes.Equal(m.Raw, v) }) {
		return nil, ErrNothing
	}
	if !maps.Equal(open(head), open(r.Messages[:cut])) {
		return nil, ErrParted
	}

	// The thinking after a single compaction signed by the vendor stays valid, which was made with the same system prompt only if that is one text.
	signed := len(head) == 1 && wire.Signed(head[0].Raw) && (r.System == nil || r.System[0] == '"')
	bound := s.Bound && !signed
	e := &Epoch{
		N: 1, Cut: cut, From: rolling[cut-1], Whole: cut == len(r.Messages), Reason: c.Reason, Time: now,
		Before: c.Before, After: c.Decision.After, Payback: c.Turns,
	}
	if s.Epoch != nil {
		e.N, e.States = s.Epoch.N+1, s.Epoch.States
	}
	if len(c.States) > 0 {
		e.States = maps.Clone(e.States)
		if e.States == nil {
			e.States = map[string][]byte{}
		}
		maps.Copy(e.States, c.States)
	}
	if sums := Plain(r.API, r.Messages[:cut]); sums != nil {
		e.Plain = sums[cut-1]
	}
	sent := make([]wire.Message, 0, len(head)+len(r.Messages)-cut)
	for _, m := range head {
		raw := m.Raw
		if bound && m.Thinking {
			raw = wire.StripThinking(r.API, raw)
			m.Thinking = false
		}
		if raw != nil {
			e.Block = append(e.Block, shape(r.API, raw))
			sent = append(sent, m)
		}
	}
	bare := s.Epoch.bares()
	for i, m := range r.Messages[cut:] {
		if m.Thinking && (bound || bare[rolling[cut+i]]) {
			m.Thinking = false
			e.Bare = append(e.Bare, rolling[cut+i])
		}
		sent = append(sent, m)
	}
	if r.Thinking == "enabled" {
		if thinks(r.Messages) && !thinks(sent) && !c.Forced {
			return nil, ErrRound
		}
		e.divide(sent)
	}

	n := *s
	n.ID, n.Epoch, n.Ingest = "", e, s.ingested(rolling[cut:])
	n.Loose = !s.Bound && anyThinking(sent)
	n.Rolling, n.Ends, n.Lengths, n.Doubts, n.Counts, n.counted = rolling, nil, nil, nil, nil, nil
	return &n, nil
}

// unchanged returns the number of messages at the end of a view that condensing left as they were.
func unchanged(r *wire.Request, view [][]byte, origin []int, after []wire.Message) int {
	kept := 0
	for kept < len(view) && kept < len(after) {
		i := len(view) - 1 - kept
		a := &after[len(after)-1-kept]
		if origin[i] < 0 || !bytes.Equal(view[i], a.Raw) && !untouched(view[i], &r.Messages[origin[i]], a) {
			break
		}
		kept++
	}
	return kept
}

// ingested returns the shortened forms of the messages with these hashes; nil for none.
func (s *State) ingested(rolling []wire.Hash) map[string][]byte {
	var found map[string][]byte
	for i := 0; i < len(rolling) && len(s.Ingest) > 0; i++ {
		if k := key(rolling[i]); s.Ingest[k] != nil {
			if found == nil {
				found = map[string][]byte{}
			}
			found[k] = s.Ingest[k]
		}
	}
	return found
}

// division separates an answer without thinking from a turn that began with thinking.
const division = `{"role":"user","content":[{"type":"text","text":"[The conversation goes on.]"}]}`

// divide adds a message of the user to the block, of which sent is the view, if only that makes the last turn in the block
// begin with thinking: the user's words between an old answer, which was kept, and the turn are gone. The turn need not
// be open now: a client that goes back to it opens it again, and a text directly after results leaves it open.
func (e *Epoch) divide(sent []wire.Message) {
	n := len(e.Block)
	if n < len(sent) && sent[n].Role == "assistant" {
		n++
	}
	for n > 0 && sent[n-1].Role != "assistant" {
		n--
	}
	first := turn(sent[:n])
	for i := first; i < n; i++ {
		if m := &sent[i]; m.Role == "assistant" && m.Thinking {
			if i > first && len(open(sent[:i])) == 0 {
				e.Block = slices.Insert(slices.Clone(e.Block), i, []byte(division))
			}
			return
		}
	}
}

// untouched reports whether a is the client's message, and the message was forwarded unchanged.
func untouched(view []byte, m, a *wire.Message) bool {
	return m.Hash == a.Hash && bytes.Equal(view, m.Raw)
}

// open returns the calls that none of the messages answers, and the results without a call.
func open(messages []wire.Message) map[string]int {
	ids := map[string]int{}
	for i := range messages {
		for _, id := range messages[i].Calls {
			ids[id]++
		}
		for _, id := range messages[i].Results {
			if ids[id]--; ids[id] == 0 {
				delete(ids, id)
			}
		}
	}
	return ids
}

// thinks reports whether the messages end inside a turn of the model that begins with thinking. A turn begins after a
// message typed by the user.
func thinks(messages []wire.Message) bool {
	first := turn(messages)
	return first < len(messages) && messages[first].Thinking
}

// turn returns the index of the model's first message after the user's last typed message, len(messages) if there is
// none.
func turn(messages []wire.Message) int {
	first := len(messages)
	for i, m := range slices.Backward(messages) {
		if m.Role == "user" && m.Typed && len(m.Results) == 0 {
			break
		}
		if m.Role == "assistant" {
			first = i
		}
	}
	return first
}
