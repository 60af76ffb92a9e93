// Package lineage decides which conversation a request belongs to, and which messages are sent in place of the
// client's. A client sends its whole history with every request and keeps it; the gateway sends a shorter one. Up to
// the length of the last forwarded request, every request has the same bytes as before, except where an epoch begins.
//
// Everything is found by content: a [State] records which messages are replaced and by which others, and recognizes
// them by a rolling hash. So a retry, a rewind, a fork or a restart of the gateway needs nothing but the states of a
// key (tenant, agent and session). The package has no storage, no clock and no I/O.
//
// Functions do not change a State that they get as an argument, and the slices and maps of a State are never changed
// in place: a copy of the struct is a copy of the state. Methods that change their receiver say so. Functions may be
// called concurrently with different states.
package lineage

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/wire"
)

// A State describes one lineage: a conversation, or a branch of one. Its JSON is stored, and outlives the process. The
// zero value is a lineage without messages.
type State struct {
	// ID is the caller's name of the stored record; empty if there is none yet.
	ID string `json:"-"`

	Rolling Hashes `json:"rolling,omitempty"` // hashes of the client's messages in the last request sent
	Ends    Hashes `json:"ends,omitempty"`    // hash of the last message of each recent request with this epoch
	Lengths []int  `json:"lengths,omitempty"` // number of messages of each of these requests
	Doubts  Hashes `json:"doubts,omitempty"`  // of such requests that were also sent with another epoch: they are no longer among Ends
	Epoch   *Epoch `json:"epoch,omitempty"`
	// Originals is the caller's name of the stored originals that the view refers to. Branches and later epochs keep
	// it.
	Originals string            `json:"originals,omitempty"`
	Ingest    map[string][]byte `json:"ingest,omitempty"` // short forms of messages, without cache markers, by rolling hash

	Model  string               `json:"model,omitempty"` // of the last request, like the fields below
	Effort string               `json:"effort,omitempty"`
	Tool   bool                 `json:"tool,omitempty"`   // requests have a tool that the gateway has added
	Bound  bool                 `json:"binds,omitempty"`  // that model binds its thinking to the messages before it
	Loose  bool                 `json:"loose,omitempty"`  // thinking is sent that a model may find bound to other messages
	Turns  int                  `json:"turns,omitempty"`  // answers of the model, including the one to the last request
	First  time.Time            `json:"first,omitzero"`   // beginning of the first request that is known
	Last   time.Time            `json:"last,omitzero"`    // beginning of the last request
	Gap    time.Duration        `json:"gap,omitempty"`    // between the last two requests
	TTL    time.Duration        `json:"ttl,omitempty"`    // the longest lifetime of cache entries that requests asked for
	Lives  time.Duration        `json:"lives,omitempty"`  // the longest gap after which the cache was seen to be alive
	Caches map[string]time.Time `json:"caches,omitempty"` // last use of the vendor's caches, by model, effort and head

	Counts  []int     `json:"counts,omitempty"` // our token count of each message as sent, by index
	Head    string    `json:"head,omitempty"`   // hash of the system prompt and tools that HeadOur counts
	HeadOur int       `json:"head_tokens,omitempty"`
	Our     int       `json:"our,omitempty"`    // our count of the last measured request
	Vendor  int       `json:"vendor,omitempty"` // the vendor's count of the same request; 0 if it was implausible
	Ratios  []float64 `json:"ratios,omitempty"` // recent ratios of the vendor's count to ours
	Said    Usage     `json:"said,omitzero"`    // the vendor's last report, as it came
	Twice   int       `json:"twice,omitempty"`  // number of reports in a row whose input includes the cached tokens
	Wrong   int       `json:"wrong,omitempty"`  // number of epochs whose predictions were wrong
	Spent   float64   `json:"spent,omitempty"`  // on prompts and answers so far, in units of the price of an input token
	// By epochs, in the same unit; without the further savings of a later epoch.
	Saved float64 `json:"saved,omitempty"`

	Family string    `json:"family,omitempty"` // the caller's name of a conversation with all its branches
	Plain  wire.Hash `json:"plain,omitzero"`   // the last of Rolling by [Unprompted], if there were prompts
	Orders int       `json:"orders,omitempty"` // number of the caller's last order that was carried out
	Held   bool      `json:"held,omitempty"`   // the last epoch was undone: only the window or the user may begin another one

	counted []wire.Hash // the rolling hashes of the messages in Counts; nil: Rolling
}

// An Epoch is the result of condensing the first messages. Every request repeats it until the next epoch.
type Epoch struct {
	N       int       `json:"n"`                 // 1 for the first epoch of a conversation
	Cut     int       `json:"cut"`               // number of the client's messages that Block replaces
	From    wire.Hash `json:"from"`              // rolling hash of these messages
	Plain   wire.Hash `json:"plain,omitzero"`    // hash of their plain form, if the API has one: see [wire.Dialect]
	Block   [][]byte  `json:"block"`             // the replacing messages, without cache markers
	Whole   bool      `json:"whole,omitempty"`   // Block replaced all messages of its request
	Bare    Hashes    `json:"bare,omitempty"`    // rolling hashes of messages whose thinking is left out
	Hurried bool      `json:"hurried,omitempty"` // truncation for want of time, to be replaced
	// States are what the providers left in the last condensations that the view rests on, by provider: the next one gets it.
	States map[string][]byte `json:"states,omitempty"`
	// ID of the state before this epoch, for [State.Undo]; empty if that is not stored.
	Over string `json:"over,omitempty"`

	Reason  epoch.Reason `json:"reason,omitempty"`
	Time    time.Time    `json:"time,omitzero"`
	Before  int          `json:"before,omitempty"`  // predicted tokens of the request
	After   int          `json:"after,omitempty"`   // predicted, and once known, by the vendor's count
	Payback float64      `json:"payback,omitempty"` // predicted number of turns until the epoch pays for itself
	Usage   []Usage      `json:"usage,omitempty"`   // of the first two requests with this epoch
	Our     int          `json:"our,omitempty"`     // our token count of Block
	Lost    int          `json:"lost,omitempty"`    // tokens of the user's words that the epoch left out
	Truth   *epoch.Truth `json:"truth,omitempty"`   // of its view, once it is measured
}

// A Usage is a vendor's report about one request, in tokens.
type Usage struct {
	Input int `json:"input"` // the whole prompt
	Read  int `json:"read"`  // part of Input that was read from the cache
	Write int `json:"write"` // part of Input that was written to the cache
}

// Hashes are rolling hashes: each covers a message and all messages before it. In JSON they are one string.
type Hashes []wire.Hash

// MarshalText returns the hashes in base64.
func (h Hashes) MarshalText() ([]byte, error) {
	all := make([]byte, 0, len(h)*len(wire.Hash{}))
	for i := range h {
		all = append(all, h[i][:]...)
	}
	return base64.RawStdEncoding.AppendEncode(nil, all), nil
}

// UnmarshalText is the inverse of MarshalText.
func (h *Hashes) UnmarshalText(text []byte) error {
	all, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil {
		return err
	}
	const size = len(wire.Hash{})
	if len(all)%size != 0 {
		return fmt.Errorf("rolling hashes: %d bytes are no multiple of %d", len(all), size)
	}
	*h = make(Hashes, len(all)/size)
	for i := range *h {
		copy((*h)[i][:], all[i*size:])
	}
	return nil
}

// Roll returns the rolling hash of each message.
func Roll(messages []wire.Message) []wire.Hash {
	rolling := make([]wire.Hash, len(messages))
	var both [2 * len(wire.Hash{})]byte
	for i := range messages {
		copy(both[len(wire.Hash{}):], messages[i].Hash[:])
		sum := sha256.Sum256(both[:])
		copy(rolling[i][:], sum[:])
		copy(both[:], sum[:len(wire.Hash{})])
	}
	return rolling
}

// common returns the length of the longest common prefix. Binary search works because equal rolling hashes imply that
// all messages before them are equal.
func common(a, b []wire.Hash) int {
	return sort.Search(min(len(a), len(b)), func(i int) bool { return a[i] != b[i] })
}

func key(h wire.Hash) string { return base64.RawStdEncoding.EncodeToString(h[:]) }

// A Kind says how a request relates to the known states.
type Kind int

// The kinds.
const (
	New       Kind = iota // no known state matches
	Continue              // all messages of the last request, and perhaps more; or the same request again
	Rewind                // only some of the first messages of the last request
	Fork                  // some of the first messages, then others
	Compacted             // the client went back to before every epoch, or has shortened its history: nothing is replaced
)

// maxStates limits the states that Follow looks at. It uses the first ones, so callers should pass the latest first.
const maxStates = 256

// Follow returns the state that request r continues. Candidates are states whose epoch replaces only messages that r
// has. The best has the most messages in common with r; among equals, the most recently used one. The result belongs
// to the caller. Its ID is kept if the request continues the stored state; it is empty if the state is new, or a copy
// for another branch. After a change of the model it may be a copy of a state that replaces the same messages in the
// form in which the agent sent them before.
func Follow(states []*State, r *wire.Request, rolling []wire.Hash) (*State, Kind) {
	var best *State
	longest, lost := 0, 0
	for _, s := range states[:min(len(states), maxStates)] {
		n := s.shared(rolling)
		if !s.Epoch.covers(rolling) {
			lost = max(lost, n)
			continue
		}
		if n > longest || n > 0 && n == longest && s.Last.After(best.Last) {
			best, longest = s, n
		}
	}
	// The next answer in r must be to a request of the chosen state, so a state that sent such a request is preferred,
	// whatever its epoch. If no state did, branches with another epoch are no better; nor if the chosen one did, too.
	for _, s := range states[:min(len(states), maxStates)] {
		if best != nil && !best.ended(rolling, longest) && !slices.Contains(best.Doubts, rolling[longest-1]) && s.ended(rolling, longest) && s.Epoch.covers(rolling) && (longest < len(rolling) || s.Epoch.same(best.Epoch)) {
			best = s
		}
	}
	kind := Continue
	if best == nil || longest < len(best.Rolling) && longest < len(rolling) {
		if again := moved(states[:min(len(states), maxStates)], best, r, rolling); again != nil {
			return again, Fork
		}
	}
	switch {
	case best == nil && lost == 0:
		return &State{Family: family(states, r.Messages)}, New
	case best == nil:
		return &State{}, Compacted
	case best.Epoch == nil && lost > longest:
		kind = Compacted
	case longest == len(best.Rolling) && common(best.Rolling, rolling) == longest:
	case longest == len(rolling):
		kind = Rewind
	default:
		kind = Fork
	}
	s := *best
	if kind != Continue {
		s.ID, s.Ends, s.Lengths = "", nil, nil
		for i, k := range best.Lengths { // only requests that are part of this one; others belong to the stored branch
			if 0 < k && k <= longest && i < len(best.Ends) && rolling[k-1] == best.Ends[i] {
				s.end(best.Ends[i], k, len(s.Ends))
			}
		}
	}
	s.doubt(states, rolling, longest)
	s.follow(r, rolling, false)
	return &s, kind
}

// Follows reports whether s is t after further requests with the same epoch.
func (s *State) Follows(t *State) bool {
	return s.Epoch.same(t.Epoch) && len(t.Rolling) > 0 && common(s.Rolling, t.Rolling) == len(t.Rolling)
}

// ended reports whether a request with the first n messages was sent with this epoch.
func (s *State) ended(rolling []wire.Hash, n int) bool {
	return n > 0 && slices.Contains(s.Ends, rolling[n-1])
}

// doubt forgets the ends of requests that were also sent with another epoch: the answer that the client continues with
// may be the answer to the other request.
func (s *State) doubt(states []*State, rolling []wire.Hash, from int) {
	for _, t := range states {
		for i, k := range t.Lengths {
			if k < from || k > len(rolling) || i >= len(t.Ends) || rolling[k-1] != t.Ends[i] || t.Epoch.same(s.Epoch) {
				continue
			}
			if at := slices.Index(s.Ends, t.Ends[i]); at >= 0 && at < len(s.Lengths) {
				s.Doubts = append(slices.Clone(s.Doubts[max(0, len(s.Doubts)-maxEnds+1):]), t.Ends[i])
				s.Ends, s.Lengths = slices.Delete(slices.Clone(s.Ends), at, at+1), slices.Delete(slices.Clone(s.Lengths), at, at+1)
			}
		}
	}
}

// shared returns how many of the messages were sent before, in this order, in a request with this epoch.
func (s *State) shared(rolling []wire.Hash) int {
	n := common(s.Rolling, rolling)
	for i, k := range s.Lengths {
		if k > n && k <= len(rolling) && i < len(s.Ends) && rolling[k-1] == s.Ends[i] {
			n = k
		}
	}
	return n
}

// covers reports whether the epoch, which may be nil, replaces only messages that a request has. A request that ends
// exactly where the replaced messages end is not covered: the model would have to answer a message that was condensed
// as an old one.
func (e *Epoch) covers(rolling []wire.Hash) bool {
	if e == nil || e.Cut == 0 {
		return true
	}
	return 0 < e.Cut && e.Cut <= len(rolling) && rolling[e.Cut-1] == e.From && (len(rolling) > e.Cut || e.Whole)
}

// Shorten changes s: it calls replace with the index of every message that was never sent, and keeps each result that
// is not nil as the message's permanent short form. Messages were never sent if they follow the model's last message
// and are not part of the last request: all older ones were sent by someone, in some form.
func (s *State) Shorten(r *wire.Request, rolling []wire.Hash, replace func(i int) []byte) {
	first := s.shared(rolling)
	for i := len(r.Messages) - 1; i >= first; i-- {
		if r.Messages[i].Role == "assistant" {
			first = i + 1
		}
	}
	var added map[string][]byte
	for i := first; i < len(r.Messages); i++ {
		raw := replace(i)
		if raw == nil {
			continue
		}
		if added == nil {
			if added = maps.Clone(s.Ingest); added == nil {
				added = map[string][]byte{}
			}
		}
		added[key(rolling[i])] = shape(r.API, raw)
	}
	if added != nil {
		s.Ingest = added
	}
}

// Shape returns a copy of a message in the form of an epoch's block: without cache markers.
func Shape(api wire.API, raw []byte) []byte { return shape(api, raw) }

// shape returns a copy of a message without cache markers, in a form to which a marker can be added without another
// change.
func shape(api wire.API, raw []byte) []byte {
	if wire.Of(api).Texts {
		raw = wire.Mark(api, wire.Unmark(raw), 5*time.Minute)
	}
	return slices.Clone(wire.Unmark(raw))
}

// Sent changes s: it records that the view of this request is about to be forwarded, at now. The caller must save the
// state before it forwards.
func (s *State) Sent(r *wire.Request, rolling []wire.Hash, now time.Time) {
	s.Turns = 1 + answers(r.Messages, 0)
	if s.First.IsZero() {
		s.First = now
	}
	if !s.Last.IsZero() {
		s.Gap = now.Sub(s.Last)
	}
	if n := len(rolling); n > 0 {
		s.end(rolling[n-1], n, len(s.Ends))
	}
	s.Rolling, s.counted = rolling, nil
	s.Counts = s.Counts[:min(len(s.Counts), len(rolling))]
	s.Model, s.Effort, s.Last, s.Plain = r.Model, r.Effort, now, wire.Hash{}
	if n := len(r.Messages); prompts(r.Messages) > 0 {
		s.Plain = Unprompted(r.Messages)[n-1]
	}
	s.TTL = max(s.TTL, r.TTL)
	caches := maps.Clone(s.Caches)
	if caches == nil {
		caches = map[string]time.Time{}
	}
	caches[cacheOf(r)] = now
	for len(caches) > maxCaches {
		oldest := ""
		for k, t := range caches {
			if oldest == "" || t.Before(caches[oldest]) {
				oldest = k
			}
		}
		delete(caches, oldest)
	}
	s.Caches = caches
}

// SentAgain changes s: it records requests that the gateway sent by itself, with messages that the client does not
// know. These are the messages from index from on; each that is not the model's was the end of one request.
func (s *State) SentAgain(messages []wire.Message, rolling []wire.Hash, from int) {
	for i := from; i < len(messages); i++ {
		if messages[i].Role == "assistant" {
			continue
		}
		s.end(rolling[i], i+1, len(s.Ends))
		if len(s.Rolling) <= i && common(s.Rolling, rolling) == len(s.Rolling) {
			s.Rolling = rolling[:i+1]
		}
	}
}

// end records that a request of n messages was sent, and forgets the oldest ones beyond maxEnds.
func (s *State) end(h wire.Hash, n, at int) {
	if at = min(at, len(s.Lengths)); len(s.Lengths) != len(s.Ends) || slices.Contains(s.Ends, h) {
		return
	}
	s.Ends, s.Lengths = slices.Insert(slices.Clone(s.Ends), at, h), slices.Insert(slices.Clone(s.Lengths), at, n)
	if len(s.Ends) > maxEnds {
		s.Ends, s.Lengths = s.Ends[1:], s.Lengths[1:]
	}
}

const maxEnds = 64 // number of requests a lineage remembers, to know that an answer is to its own request

const maxCaches = 8 // number of caches whose last use a lineage remembers

// cacheOf names the cache that serves a request: vendors keep one per model and effort, and the cached prompt starts
// with the system prompt and the tools.
func cacheOf(r *wire.Request) string { return r.Model + " " + r.Effort + " " + key(r.Head) }

// Limits of the stored branches of one epoch: fewer once they have a block, which may be large. If a branch comes back
// that is no longer stored, it still has the same epoch. Only its own messages may then be sent differently, which
// costs one write to the vendor's cache.
const (
	maxTips    = 6
	maxRawTips = 32
)

// Recycle changes s, which has no ID, if too many stored branches replace the same messages. s takes over the ID of
// the least recently used one, its ends and its shortened messages, so that the caller overwrites that record. Some
// agents send a side question with the whole history in every turn; each is a branch.
func (s *State) Recycle(states []*State) {
	if s.ID != "" {
		return
	}
	var oldest *State
	tips := 0
	for _, t := range states {
		if n := common(t.Rolling, s.Rolling); n == 0 || !t.Epoch.same(s.Epoch) || t.ID == "" {
			continue
		}
		if tips++; oldest == nil || t.Last.Before(oldest.Last) {
			oldest = t
		}
	}
	if tips < maxTips || s.Epoch == nil && tips < maxRawTips {
		return
	}
	s.ID = oldest.ID
	for i := max(0, len(oldest.Ends)-maxTips); i < min(len(oldest.Ends), len(oldest.Lengths)); i++ {
		s.end(oldest.Ends[i], oldest.Lengths[i], len(s.Ends)/2)
	}
	if len(oldest.Ingest) > 0 {
		all := maps.Clone(oldest.Ingest)
		maps.Copy(all, s.Ingest)
		s.Ingest = all
	}
}

func (e *Epoch) same(o *Epoch) bool {
	if e == nil || o == nil {
		return e == o
	}
	return e.Cut == o.Cut && e.From == o.From && slices.EqualFunc(e.Block, o.Block, bytes.Equal)
}
