package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
)

// A Shadow describes the vendor's cache of a conversation as it would be without the gateway.
type Shadow struct {
	Tokens int
	Last   time.Time
}

// Counted is the size of a prompt in tokens, by our count and by the server's.
type Counted struct{ Ours, Theirs int }

// lock holds the session's other requests off until the returned function is called.
func (c *Lease) lock() func() {
	c.Session.mu.Lock()
	return c.Session.mu.Unlock
}

// Busy reports whether the next epoch is being prepared, or is ready.
func (c *Lease) Busy() bool {
	defer c.lock()()
	return c.preparing != nil || c.Prepared != nil
}

// TakePrepared returns the condensation prepared for a state with the beginning of these messages; nil if there is none. A repeated
// request must be sent the same bytes as before, so it leaves the condensation to the next request, unless an epoch is
// forced. A condensation made before the user changed the protections is dropped.
func (c *Lease) TakePrepared(s *lineage.State, rolling []wire.Hash, forced bool) *job.Prepared {
	protected := c.Control().Protected()
	defer c.lock()()
	p := c.Prepared
	if p != nil && !forced && p.Basis.Fits(s, rolling) && !p.Basis.Before(rolling) {
		return nil
	}
	c.Prepared = nil
	if p == nil || p.Protected != protected || !p.Basis.Fits(s, rolling) {
		return nil
	}
	return p
}

// Tried records that another attempt is pointless below a size, in tokens.
func (c *Lease) Tried(until int) {
	defer c.lock()()
	c.retry = until
}

// TriedAt returns the size set by [Lease.Tried].
func (c *Lease) TriedAt() int {
	defer c.lock()()
	return c.retry
}

// First reports whether it is called with this name for the first time for the conversation.
func (c *Lease) First(name string) bool {
	defer c.lock()()
	if c.said == nil {
		c.said = map[string]bool{}
	}
	was := c.said[name]
	c.said[name] = true
	return !was
}

// Overflowed reports whether the vendor refused the lineage's last request as too long after the answer had begun.
func (c *Lease) Overflowed() bool {
	defer c.lock()()
	return c.refused
}

// A Preparation is a condensation in the background, for the next epoch of a lineage.
type Preparation struct {
	Run   func(context.Context) (*job.Prepared, error)
	Leave func() // called when it has ended, or was not begun
	Retry int    // size in tokens below which another attempt is useless, if it fails
	Later int    // or if a provider chose to wait
	Order int    // number of the user's order; 0 for none
}

// Prepare begins a preparation that ends with life, unless the lineage has one, and reports whether it did.
func (c *Lease) Prepare(life context.Context, background *sync.WaitGroup, p Preparation) bool {
	e, s, ended := c.Entry, c.Session, make(chan struct{})
	ctx, cancel := context.WithTimeout(life, job.BackgroundDeadline)
	s.mu.Lock()
	if e.preparing != nil || e.Prepared != nil || life.Err() != nil {
		s.mu.Unlock()
		cancel()
		p.Leave()
		return false
	}
	e.preparing, e.abandon = ended, cancel
	s.mu.Unlock()
	background.Go(func() {
		defer p.Leave()
		defer cancel()
		made, err := p.Run(ctx)
		again := errors.Is(err, context.Canceled) && ctx.Err() != nil || errors.Is(err, job.ErrNotEarly)
		s.mu.Lock()
		defer s.mu.Unlock()
		close(ended)
		e.preparing, e.abandon, e.Prepared = nil, nil, made
		if made == nil && !again {
			if e.retry = p.Retry; errors.Is(err, job.ErrLater) {
				e.retry = p.Later
			}
		}
		if made == nil && err != nil && p.Order > 0 {
			e.failed = failure{p.Order, job.ReasonOf(err)}
		}
	})
	return true
}

// UnderWay returns the channel that is closed when the running preparation has ended, and a function that cancels it;
// nil if none is running.
func (c *Lease) UnderWay() (ended <-chan struct{}, abandon func()) {
	defer c.lock()()
	return c.preparing, c.abandon
}

// SetRefused records whether the vendor has refused the last request as too long, in the middle of the answer.
func (c *Lease) SetRefused(refused bool) {
	defer c.lock()()
	c.refused = refused
}

// SwapShadow exchanges the description of the vendor's cache as it would be without the gateway.
func (c *Lease) SwapShadow(now Shadow) (was Shadow) {
	defer c.lock()()
	was, c.shadow = c.shadow, now
	return was
}

// SwapCounted exchanges the prompt sizes of the last answer.
func (c *Lease) SwapCounted(now Counted) (was Counted) {
	defer c.lock()()
	was, c.counted = c.counted, now
	return was
}

// Describe sets the description to store with the lineage. What it has earned meanwhile stays.
func (c *Lease) Describe(a About) {
	defer c.lock()()
	if c.about != nil {
		a.Saved = c.about.Saved
	}
	c.about = &a
}

// Control returns the user's control of the conversation; never nil.
func (c *Lease) Control() *Control {
	if c == nil || c.State == nil || c.State.Family == "" {
		return &Control{}
	}
	defer c.lock()()
	return cmp.Or(c.Session.controls[c.State.Family], &Control{})
}

// SetControl makes a control current in memory.
func (c *Lease) SetControl(known *Control) {
	defer c.lock()()
	c.Session.addControl(known)
}

// Frozen returns a copy of the state that the vendor saw last; nil if there is none.
func (c *Lease) Frozen() *lineage.State {
	defer c.lock()()
	if c.Entry.State == nil {
		return nil
	}
	return new(*c.Entry.State)
}

// Guess records that a view was sent without being stored. At is the rolling hash of its last message. The next request
// builds it again from p.
func (c *Lease) Guess(p *job.Prepared, at wire.Hash) {
	defer c.lock()()
	c.Prepared, c.guessed = p, at
	if c.Unread {
		c.Session.guess = c.Entry
	}
}

// Begin makes the state after an epoch the lease's, in a record of its own. With over, next names the record that it
// continues.
func (c *Lease) Begin(next *lineage.State, over bool) {
	c.former = c.Entry
	c.Entry, c.Over = c.NewEntry()
	if c.Over != nil && over {
		next.Epoch.Over = c.Over.ID
	}
	c.Based, c.State = 0, next
}

// Begun lets another request decide about the record before [Lease.Begin], if there was one.
func (c *Lease) Begun() {
	if c.former != nil {
		c.former.Storing.Store(false)
		<-c.former.Turn
		c.former = nil
	}
}

// A ToolRecord is a record of a session that is no lineage. With a Round, it holds messages to put back after the client's
// message with the rolling hash At; without one, it says that the conversation whose first user message has that hash
// has the tool. Apart is the first answer, after At, of a conversation that begins with the same words and has not.
type ToolRecord struct {
	At      wire.Hash   `json:"at"`
	Plain   wire.Hash   `json:"plain,omitzero"` // its hash in the plain form, for a client that goes on with another model
	Round   *wire.Round `json:"round,omitempty"`
	Apart   *wire.Round `json:"apart,omitempty"`
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
	if one.Round = cmp.Or(one.Round, one.Apart); one.Round == nil {
		a.Tools[one.At] = one
		return
	}
	for _, at := range []wire.Hash{one.At, one.Plain} {
		if at != (wire.Hash{}) && !slices.ContainsFunc(a.Rounds[at], func(o *ToolRecord) bool { return o.id == one.id }) {
			a.Rounds[at] = append(a.Rounds[at], one)
			slices.SortStableFunc(a.Rounds[at], func(x, y *ToolRecord) int { return x.updated.Compare(y.updated) })
		}
	}
}

// Sealed returns the records of the answer that begins with an item of reasoning, wherever it is now: an agent's own summary may have
// replaced the messages before it, and the reasoning needs the call that followed.
func (a *ToolRecords) Sealed(item []byte) []*ToolRecord {
	sealed := rawjson.Text(rawjson.Field(item, "encrypted_content"))
	for _, all := range a.Rounds {
		if sealed != "" && slices.ContainsFunc(all, func(o *ToolRecord) bool {
			return len(o.Round.Messages) > 0 && rawjson.Text(rawjson.Field(o.Round.Messages[0], "encrypted_content")) == sealed
		}) {
			return all
		}
	}
	return nil
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
