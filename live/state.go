package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
)

// Limits of the sessions kept in memory. The store has the rest.
const (
	mostSessions = 1000
	mostLineages = 64 // per session
)

// patience is how long a request waits for another one that decides about its lineage. Then it uses the view as it is.
const patience = 50 * time.Millisecond

// sessions holds the most recently used sessions by key.
type sessions struct {
	store  store.Store
	outage outage
	surroundings

	mu  sync.Mutex
	all map[store.Key]*session
}

// surroundings are what the work in the background needs.
type surroundings struct {
	life       context.Context //nolint:containedctx // of the work in the background
	background *sync.WaitGroup
	now        func() time.Time
	log        func() *slog.Logger
	fault      func(kind string, err error)
	damaged    func() // called for each damaged record
}

// newSessions returns sessions whose records are in a store.
func newSessions(in store.Store, around surroundings) *sessions {
	return &sessions{store: in, outage: outage{most: mostWait}, surroundings: around, all: map[store.Key]*session{}}
}

// A session holds the lineages of a key: a conversation, its branches and its sub-agents.
type session struct {
	key      store.Key
	used     time.Time // guarded by sessions.mu
	mu       sync.Mutex
	loaded   bool
	changes  int64           // the store's change counter when the session was loaded
	failed   error           // error of the last attempt to read the store; nil if it succeeded
	entries  []*entry        // the latest first
	guess    *entry          // lineage sent while the store could not be read
	lost     bool            // some of its records were deleted, or are damaged
	damaged  map[string]bool // IDs of records that cannot be read
	found    []string        // damaged IDs that were not yet reported
	asides   asides
	controls map[string]*control // by family
}

// An entry is a lineage in memory.
type entry struct {
	id   string
	turn chan struct{} // holds a value while a request decides about the lineage

	storing atomic.Bool // turn is held to store the last outcome, which can take long

	// Guarded by session.mu.
	version      int64 // of the stored record; 0 if there is none
	unsaved      bool  // the store could not be reached when the state should have been saved
	reader       string
	state        *lineage.State
	conversation string        // the same for all epochs of a conversation
	prepared     *prepared     // for the next epoch
	preparing    chan struct{} // closed when prepared is set, or will not be set; nil if no preparation is running
	abandon      func()        // cancels the preparation
	retry        int           // size in tokens below which another attempt is useless
	refused      bool          // the vendor refused the last request as too long, in the middle of the answer
	shadow       shadow
	counted      counted   // prompt sizes of the last answer
	guessed      wire.Hash // rolling hash at the end of a view that was sent without being stored
	about        *about
	failed       failure // of the last ordered condensation
}

// stored is the JSON content of a lineage's record.
type stored struct {
	Conversation string `json:"conversation"`
	About        *about `json:"about,omitempty"`
	*lineage.State
}

// of returns the session of a key. It creates one if there is none, and drops the least recently used ones over the
// limit.
func (s *sessions) of(key store.Key, now time.Time) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.all[key]
	if got == nil {
		for len(s.all) >= mostSessions {
			var oldest *session
			for _, o := range s.all {
				if oldest == nil || o.used.Before(oldest.used) {
					oldest = o
				}
			}
			delete(s.all, oldest.key)
		}
		got = &session{key: key}
		s.all[key] = got
	}
	got.used = now
	return got
}

// load reads the session's records, unless it has them and the store has not changed since. It returns the store's
// error.
func (s *session) load(ctx context.Context, from store.Store) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = s.read(ctx, from)
	return s.failed
}

// known returns the store's error if nothing is in memory about the session; otherwise nil, because old knowledge is
// better than none. The caller holds s.mu.
func (s *session) known() error {
	if s.loaded || s.entries != nil {
		return nil
	}
	return s.failed
}

func (s *session) read(ctx context.Context, from store.Store) error {
	changes, err := from.Changes(ctx, s.key)
	if err != nil || s.loaded && changes == s.changes {
		return err
	}
	records, err := from.Load(ctx, s.key)
	if err != nil {
		return err
	}
	known := map[string]*entry{}
	var entries []*entry
	for _, e := range s.entries {
		known[e.id] = e
		if e.version == 0 { // it was never saved
			entries = append(entries, e)
		}
	}
	for i := range records {
		r := &records[i]
		if r.Damaged {
			s.damage(r.ID)
			continue
		}
		if isAside(r.ID) {
			s.asides.add(r)
			continue
		}
		if strings.HasPrefix(r.ID, controlPrefix) {
			if c := (&control{}); json.Unmarshal(r.Data, c) == nil {
				s.addControl(c)
			}
			continue
		}
		e := known[r.ID]
		if e == nil {
			e = &entry{id: r.ID, turn: make(chan struct{}, 1)}
		}
		isNew := e.state == nil
		if isNew || e.version != r.Version {
			data := stored{State: &lineage.State{}}
			if err := json.Unmarshal(r.Data, &data); err != nil || data.State == nil {
				continue // written by another version: the lineage begins again
			}
			data.ID, data.Family = r.ID, cmp.Or(data.Family, data.Conversation)
			// An unsaved state in memory that follows the stored one is newer.
			if e.version = r.Version; !e.unsaved || !e.state.Follows(data.State) {
				e.state, e.reader, e.unsaved, e.about = data.State, r.Reader, false, data.About
			}
			if isNew {
				e.conversation = data.Conversation
			}
		}
		if !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	for _, e := range s.entries {
		s.lost = s.lost || e.version > 0 && !slices.Contains(entries, e)
	}
	s.entries, s.loaded, s.changes, s.guess = entries, true, changes, nil
	return nil
}

// A claim is a request's hold on the lineage that it belongs to.
type claim struct {
	*entry
	session *session
	state   *lineage.State // a copy
	based   int64          // version of the record that state was copied from
	kind    lineage.Kind
	mine    bool          // the request holds the entry's turn, so it may change the lineage
	lost    bool          // the conversation is not new, but its record was deleted
	unread  bool          // the store cannot be reached and may know more: the view is a guess, and not remembered
	over    *store.Record // for an epoch: the record that it continues

	reads string      // identity that can recall content of the request; empty if nobody can
	keep  *store.Kept // originals to store with the epoch; nil for none
	most  int64       // bytes of originals that may be stored
}

// claim finds the lineage of a request, and waits up to patience while another request decides about it. If the wait
// ends, the claim is not mine. The error is the store's or the context's.
func (s *session) claim(ctx context.Context, r *wire.Request, rolling []wire.Hash) (*claim, error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		c, err := s.find(r, rolling)
		if err != nil {
			return nil, err
		}
		select {
		case c.turn <- struct{}{}:
		default:
			select {
			case c.turn <- struct{}{}:
				<-c.turn // the state may have changed by now: look again
				continue
			case <-deadline.C:
				// This request continues from the state being stored: a view without it would break the prefix later.
				if c.storing.Load() {
					deadline.Reset(patience)
					continue
				}
				return c, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		again, err := s.find(r, rolling)
		if err == nil && (again.entry == c.entry || c.state.ID == "" && again.state.ID == "") {
			again.entry, again.mine = c.entry, true
			return again, nil
		}
		<-c.turn
		if err != nil {
			return nil, err
		}
	}
}

// find returns the lineage of a request as far as it is known, without claiming it.
func (s *session) find(r *wire.Request, rolling []wire.Hash) (*claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.known()
	if err != nil && !unstored(err) {
		return nil, err
	}
	states := make([]*lineage.State, len(s.entries))
	for i, e := range s.entries {
		states[i] = e.state
	}
	c := &claim{session: s, unread: err != nil && answered(r)}
	c.state, c.kind = lineage.Follow(states, r, rolling)
	c.lost = s.lost && c.kind == lineage.New && answered(r)
	id := c.state.ID
	if id == "" {
		c.state.Recycle(states)
		id = c.state.ID
	}
	for _, e := range s.entries {
		if e.id == id {
			c.entry, c.based, c.reads = e, e.version, e.reader
		}
	}
	if c.unread {
		c.entry = s.guess
	}
	if c.entry == nil {
		c.entry = &entry{id: s.newID(rolling), turn: make(chan struct{}, 1), conversation: rand.Text()}
	}
	c.state.Family = cmp.Or(c.state.Family, c.conversation)
	return c, nil
}

// newID derives a record's ID from the session and the request that begins the lineage, so that two gateways that begin
// the same lineage use the same record. The caller holds s.mu.
func (s *session) newID(rolling []wire.Hash) string {
	const size = 16
	h := sha256.New()
	for _, part := range []string{s.key.Tenant, s.key.API, s.key.Agent, s.key.Session} {
		h.Write([]byte(part + "\x00"))
	}
	if n := len(rolling); n > 0 {
		h.Write(rolling[n-1][:])
	}
	id, known := hex.EncodeToString(h.Sum(nil)[:size]), 0
	for _, e := range s.entries {
		if strings.HasPrefix(e.id, id) {
			known++
		}
	}
	for taken := range s.damaged {
		if strings.HasPrefix(taken, id) {
			known++
		}
	}
	if known > 0 { // the client came back to the beginning of another lineage
		return id + "." + strconv.Itoa(known)
	}
	return id
}

// answered reports whether a request contains an answer of the model: then its conversation is not new.
func answered(r *wire.Request) bool {
	return slices.ContainsFunc(r.Messages, func(m wire.Message) bool { return m.Role == "assistant" })
}

// current reports whether, as far as can be seen here, no other gateway has sent a later request of the conversation:
// the request that led to the last answer was sent from here, or its state is known here.
func (s *session) current(r *wire.Request, rolling []wire.Hash) bool {
	last := len(r.Messages) - 1
	for last >= 0 && r.Messages[last].Role != "assistant" {
		last--
	}
	for last > 0 && r.Messages[last-1].Role == "assistant" {
		last--
	}
	if last <= 0 {
		return last < 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := rolling[last-1]
	return s.guess != nil && s.guess.guessed == sent || slices.ContainsFunc(s.entries, func(e *entry) bool {
		return e.state != nil && (e.guessed == sent || slices.Contains(e.state.Ends, sent))
	})
}

// release ends the claim, so that another request can decide about the lineage.
func (c *claim) release() {
	if c.mine {
		c.mine = false
		<-c.turn
	}
}

// newEntry returns a claimed entry for a new record of the same conversation, and a reference to the record that it
// continues, nil if there is none.
func (c *claim) newEntry() (*entry, *store.Record) {
	e := &entry{id: rand.Text(), turn: make(chan struct{}, 1), conversation: c.conversation, shadow: c.shadow, about: c.about}
	e.turn <- struct{}{}
	if c.based == 0 { // without a record, two gateways must choose the same ID: the first one that is free
		c.session.mu.Lock()
		defer c.session.mu.Unlock()
		taken := true
		for n := 1; taken; n++ {
			e.id = fmt.Sprintf("%s-%d", c.id, n)
			taken = c.session.damaged[e.id] || slices.ContainsFunc(c.session.entries, func(o *entry) bool { return o.id == e.id })
		}
		return e, nil
	}
	return e, &store.Record{ID: c.id, Version: c.based}
}

// save makes the state current in memory and, if durable is set, in the store first. The caller must hold the claim.
// The error wraps [store.ErrConflict] if another gateway has saved the record.
func (c *claim) save(ctx context.Context, in store.Store, durable bool, now time.Time) error {
	if !c.mine {
		return errors.New("another request decides about this conversation")
	}
	if durable {
		data, err := json.Marshal(stored{c.conversation, c.said(), c.state})
		if err != nil {
			return err
		}
		r := &store.Record{ID: c.id, Key: c.session.key, Version: c.based, Updated: now, Data: data, Reader: c.reads, Set: c.state.Originals, From: c.over}
		if c.keep != nil {
			err = in.Keep(ctx, r, c.keep, c.most)
		} else {
			err = in.Save(ctx, r)
		}
		if err != nil {
			if errors.Is(err, store.ErrConflict) { // another gateway serves the conversation too
				c.session.mu.Lock()
				c.session.loaded = false
				c.session.mu.Unlock()
			}
			return err
		}
		c.based, c.keep = r.Version, nil
	}
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case durable:
		c.version, c.unsaved = c.based, false
		for _, e := range s.entries {
			if c.over != nil && e.id == c.over.ID {
				e.version = c.over.Version
			}
		}
		c.over = nil
	case c.version != c.based:
		return nil // another gateway has saved a newer state
	}
	c.state.ID = c.id
	c.entry.state, c.reader = c.state, c.reads
	s.entries = slices.DeleteFunc(s.entries, func(e *entry) bool { return e == c.entry })
	s.entries = slices.Insert(s.entries, 0, c.entry)
	if len(s.entries) > mostLineages {
		s.entries = slices.Delete(s.entries, mostLineages, len(s.entries))
	}
	return nil
}

// said returns the description to store with the lineage.
func (c *claim) said() *about {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.about
}

// late marks the state to be stored later, if err means that the store cannot be used now.
func (c *claim) late(err error) {
	if unstored(err) {
		c.session.mu.Lock()
		c.unsaved = true
		c.session.mu.Unlock()
	}
}

// again reloads the state, after another gateway has stored one.
func (c *claim) again(ctx context.Context, from store.Store) error {
	if err := c.session.load(ctx, from); err != nil {
		return err
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	s := *c.entry.state
	c.state, c.based = &s, c.version
	return nil
}

// latest claims the lineage with its current state after the answer, to add the vendor's report. It returns false if
// the context ends or there is no state.
func (c *claim) latest(ctx context.Context) bool {
	select {
	case c.turn <- struct{}{}:
		c.mine = true
	case <-ctx.Done():
		return false
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if c.entry.state == nil {
		c.release()
		return false
	}
	s := *c.entry.state
	c.state, c.based = &s, c.version
	return true
}

// tooled returns the asides of the session, and whether it has a lineage whose first message of the user, at index
// first, has the rolling hash opening. The error is the store's if nothing is known.
func (s *session) tooled(first int, opening wire.Hash) (known asides, without bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.known()
	known = asides{maps.Clone(s.asides.tools), maps.Clone(s.asides.rounds)}
	without = slices.ContainsFunc(s.entries, func(e *entry) bool {
		return e.state != nil && first < len(e.state.Rolling) && e.state.Rolling[first] == opening
	})
	return known, without, err
}

// changed makes the next request of a session reload its records.
func (s *sessions) changed(key store.Key) {
	s.mu.Lock()
	found := s.all[key]
	s.mu.Unlock()
	if found != nil {
		found.mu.Lock()
		found.loaded = false
		found.mu.Unlock()
	}
}
