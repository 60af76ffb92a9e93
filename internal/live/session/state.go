// Package session holds the conversations of a gateway: it finds the lineage that a request continues, lets one request at
// a time decide about it, and stores it.
package session

import (
	"bytes"
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

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
)

// Limits of the sessions kept in memory. The store has the rest.
const (
	MostSessions = 1000
	maxLineages  = 64 // per session
)

// patience is how long a request waits for another one that decides about its lineage. Then it uses the view as it is.
const patience = 50 * time.Millisecond

// Sessions holds the most recently used sessions by key.
type Sessions struct {
	store  store.Store
	Outage outage
	Surroundings

	mu  sync.Mutex
	all map[store.Key]*Session
}

// Surroundings are the dependencies of the work in the background.
type Surroundings struct {
	Life       context.Context //nolint:containedctx // of the work in the background
	Background *sync.WaitGroup
	Now        func() time.Time
	Log        func() *slog.Logger
	Fault      func(kind string, err error)
	Damaged    func() // called for each damaged record
}

// New returns sessions whose records are in a store.
func New(in store.Store, around Surroundings) *Sessions {
	return &Sessions{store: in, Outage: outage{Most: maxWait}, Surroundings: around, all: map[store.Key]*Session{}}
}

// A Session holds the lineages of a key: a conversation, its branches and its sub-agents.
type Session struct {
	Key      store.Key
	used     time.Time // guarded by sessions.mu
	mu       sync.Mutex
	loaded   bool
	changes  int64           // the store's change counter when the session was loaded
	failed   error           // error of the last attempt to read the store; nil if it succeeded
	entries  []*Entry        // the latest first
	guess    *Entry          // lineage sent while the store could not be read
	lost     bool            // some of its records were deleted, or are damaged
	damaged  map[string]bool // IDs of records that cannot be read
	found    []string        // damaged IDs that were not yet reported
	tools    ToolRecords
	controls map[string]*Control // by family
}

// An Entry is a lineage in memory.
type Entry struct {
	ID   string
	Turn chan struct{} // holds a value while a request decides about the lineage

	Storing atomic.Bool // turn is held, perhaps for long, for what no later view may lack: the last outcome, short forms of new results

	// Guarded by session.mu.
	version      int64 // of the stored record; 0 if there is none
	unsaved      bool  // the store could not be reached when the state should have been saved
	reader       string
	State        *lineage.State
	Conversation string        // the same for all epochs of a conversation
	Prepared     *job.Prepared // for the next epoch
	preparing    chan struct{} // closed when prepared is set, or will not be set; nil if no preparation is running
	abandon      func()        // cancels the preparation
	retry        int           // size in tokens below which another attempt is useless
	refused      bool          // the vendor refused the last request as too long, in the middle of the answer
	shadow       Shadow
	counted      Counted   // prompt sizes of the last answer
	guessed      wire.Hash // rolling hash at the end of a view that was sent without being stored
	about        *About
	failed       failure         // of the last ordered condensation
	said         map[string]bool // warnings about the conversation that are in the log, shared by its epochs
}

// Stored is the JSON content of a lineage's record.
type Stored struct {
	Conversation string `json:"conversation"`
	About        *About `json:"about,omitempty"`
	*lineage.State
}

// Of returns the session of a key. It creates one if there is none, and drops the least recently used ones over the
// limit.
func (s *Sessions) Of(key store.Key, now time.Time) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.all[key]
	if got == nil {
		for len(s.all) >= MostSessions {
			oldest := slices.MinFunc(slices.Collect(maps.Values(s.all)), func(a, b *Session) int { return a.used.Compare(b.used) })
			delete(s.all, oldest.Key)
		}
		got = &Session{Key: key}
		s.all[key] = got
	}
	got.used = now
	return got
}

// Load reads the session's records, unless it has them and the store has not changed since. It returns the store's
// error.
func (s *Session) Load(ctx context.Context, from store.Store) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = s.read(ctx, from)
	return s.failed
}

// loadErr returns the store's error if nothing is in memory about the session; otherwise nil, because old knowledge is
// better than none. The caller holds s.mu.
func (s *Session) loadErr() error {
	if s.loaded || s.entries != nil {
		return nil
	}
	return s.failed
}

func (s *Session) read(ctx context.Context, from store.Store) error {
	changes, err := from.Changes(ctx, s.Key)
	if err != nil || s.loaded && changes == s.changes {
		return err
	}
	records, err := from.Load(ctx, s.Key)
	if err != nil {
		return err
	}
	known := map[string]*Entry{}
	var entries []*Entry
	for _, e := range s.entries {
		known[e.ID] = e
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
		if OfTool(r.ID) {
			s.tools.add(r)
			continue
		}
		if strings.HasPrefix(r.ID, ControlPrefix) {
			if c := (&Control{}); json.Unmarshal(r.Data, c) == nil {
				s.addControl(c)
			}
			continue
		}
		e := known[r.ID]
		if e == nil {
			e = &Entry{ID: r.ID, Turn: make(chan struct{}, 1)}
		}
		isNew := e.State == nil
		if isNew || e.version != r.Version {
			data := Stored{State: &lineage.State{}}
			if err := json.Unmarshal(r.Data, &data); err != nil || data.State == nil {
				continue // written by another version: the lineage begins again
			}
			data.ID, data.Family = r.ID, cmp.Or(data.Family, data.Conversation)
			// An unsaved state in memory that follows the stored one is newer.
			if e.version = r.Version; !e.unsaved || !e.State.Follows(data.State) {
				e.State, e.reader, e.unsaved, e.about = data.State, r.Reader, false, data.About
			}
			if isNew {
				e.Conversation = data.Conversation
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

// A Lease is a request's hold on the lineage that it belongs to.
type Lease struct {
	*Entry
	Session *Session
	State   *lineage.State // a copy
	Based   int64          // version of the record that state was copied from
	Kind    lineage.Kind
	Mine    bool          // the request holds the entry's turn, so it may change the lineage
	Lost    bool          // the conversation is not new, but its record was deleted
	Unread  bool          // the store cannot be reached and may know more: the view is a guess, and not remembered
	Over    *store.Record // for an epoch: the record that it continues

	Reads string      // identity that can recall content of the request; empty if nobody can
	Keep  *store.Kept // originals to store with the epoch; nil for none
	Most  int64       // bytes of originals that may be stored

	former *Entry // whose turn is held too, from Begin to Begun
}

// Lease finds the lineage of a request, and waits up to patience while another request decides about it. If the wait
// ends, the lease is not mine. The error is the store's or the context's.
func (s *Session) Lease(ctx context.Context, r *wire.Request, rolling []wire.Hash) (*Lease, error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		c, err := s.Find(r, rolling)
		if err != nil {
			return nil, err
		}
		select {
		case c.Turn <- struct{}{}:
		default:
			select {
			case c.Turn <- struct{}{}:
				<-c.Turn // the state may have changed by now: look again
				continue
			case <-deadline.C:
				// This request continues from the state being stored: a view without it would break the prefix later.
				if c.Storing.Load() {
					deadline.Reset(patience)
					continue
				}
				return c, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		again, err := s.Find(r, rolling)
		if err == nil && (again.Entry == c.Entry || c.State.ID == "" && again.State.ID == "") {
			again.Entry, again.Mine = c.Entry, true
			return again, nil
		}
		<-c.Turn
		if err != nil {
			return nil, err
		}
	}
}

// Find returns the lineage of a request as far as it is known, without leasing it.
func (s *Session) Find(r *wire.Request, rolling []wire.Hash) (*Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.loadErr()
	if err != nil && !Unstored(err) {
		return nil, err
	}
	states := plain.Each(s.entries, func(e *Entry) *lineage.State { return e.State })
	c := &Lease{Session: s, Unread: err != nil && r.Answered()}
	c.State, c.Kind = lineage.Follow(states, r, rolling)
	c.Lost = s.lost && c.Kind == lineage.New && r.Answered()
	id := c.State.ID
	if id == "" {
		c.State.Recycle(states)
		id = c.State.ID
	}
	for _, e := range s.entries {
		if e.ID == id {
			c.Entry, c.Based, c.Reads = e, e.version, e.reader
		}
	}
	if c.Unread {
		c.Entry = s.guess
	}
	if c.Entry == nil {
		c.Entry = &Entry{ID: s.newID(rolling), Turn: make(chan struct{}, 1), Conversation: rand.Text()}
		for _, e := range s.entries { // a branch goes on from the newest one
			related := e.State != nil && e.State.Family != "" && e.State.Family == c.State.Family
			if related && (c.shadow.Last.Before(e.shadow.Last) || c.about == nil) {
				c.shadow, c.about = e.shadow, e.about
			}
		}
	}
	c.State.Family = cmp.Or(c.State.Family, c.Conversation)
	return c, nil
}

// newID derives a record's ID from the session and the request that begins the lineage, so that two gateways that begin
// the same lineage use the same record. The caller holds s.mu.
func (s *Session) newID(rolling []wire.Hash) string {
	const size = 16
	h := sha256.New()
	for _, part := range []string{s.Key.Tenant, s.Key.API, s.Key.Agent, s.Key.Session} {
		h.Write([]byte(part + "\x00"))
	}
	if n := len(rolling); n > 0 {
		h.Write(rolling[n-1][:])
	}
	id, known := hex.EncodeToString(h.Sum(nil)[:size]), 0
	taken := append(plain.Each(s.entries, func(e *Entry) string { return e.ID }), slices.Collect(maps.Keys(s.damaged))...)
	for _, other := range taken {
		if strings.HasPrefix(other, id) {
			known++
		}
	}
	if known > 0 { // the client came back to the beginning of another lineage
		return id + "." + strconv.Itoa(known)
	}
	return id
}

// current reports whether, as far as can be seen here, no other gateway has sent a later request of the conversation:
// the request that led to the last answer was sent from here, or its state is known here.
func (s *Session) current(r *wire.Request, rolling []wire.Hash) bool {
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
	return s.guess != nil && s.guess.guessed == sent || slices.ContainsFunc(s.entries, func(e *Entry) bool {
		return e.State != nil && (e.guessed == sent || slices.Contains(e.State.Ends, sent))
	})
}

// Release ends the lease, so that another request can decide about the lineage.
func (c *Lease) Release() {
	if c.Mine {
		c.Mine = false
		c.Storing.Store(false)
		<-c.Turn
	}
}

// NewEntry returns a leased entry for a new record of the same conversation, and a reference to the record that it
// continues, nil if there is none.
func (c *Lease) NewEntry() (*Entry, *store.Record) {
	e := &Entry{ID: rand.Text(), Turn: make(chan struct{}, 1), Conversation: c.Conversation, shadow: c.shadow, about: c.about, said: c.said}
	e.Turn <- struct{}{}
	if c.Based == 0 { // without a record, two gateways must choose the same ID: the first one that is free
		defer c.lock()()
		taken := true
		for n := 1; taken; n++ {
			e.ID = fmt.Sprintf("%s-%d", c.ID, n)
			taken = c.Session.damaged[e.ID] || slices.ContainsFunc(c.Session.entries, func(o *Entry) bool { return o.ID == e.ID })
		}
		return e, nil
	}
	return e, &store.Record{ID: c.ID, Version: c.Based}
}

// texts are for records, which are large and written twice in a turn.
var texts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Save makes the state current in memory and, if durable is set, in the store first. The caller must hold the lease.
// The error wraps [store.ErrConflict] if another gateway has saved the record.
func (c *Lease) Save(ctx context.Context, in store.Store, durable bool, now time.Time) error {
	if !c.Mine {
		return errors.New("another request decides about this conversation")
	}
	if durable {
		text := texts.Get().(*bytes.Buffer) //nolint:errcheck // it holds nothing else
		defer texts.Put(text)
		text.Reset()
		err := json.NewEncoder(text).Encode(Stored{c.Conversation, c.Said(), c.State})
		if err != nil {
			return err
		}
		r := &store.Record{
			ID: c.ID, Key: c.Session.Key, Version: c.Based, Updated: now, Data: bytes.TrimSuffix(text.Bytes(), []byte("\n")), Reader: c.Reads,
			Set: c.State.Originals, From: c.Over,
		}
		if c.Keep != nil {
			err = in.Keep(ctx, r, c.Keep, c.Most)
		} else {
			err = in.Save(ctx, r)
		}
		if err != nil {
			if errors.Is(err, store.ErrConflict) { // another gateway serves the conversation too
				c.Session.mu.Lock()
				c.Session.loaded = false
				c.Session.mu.Unlock()
			}
			return err
		}
		c.Based, c.Keep = r.Version, nil
	}
	s := c.Session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case durable:
		c.version, c.unsaved = c.Based, false
		for _, e := range s.entries {
			if c.Over != nil && e.ID == c.Over.ID {
				e.version = c.Over.Version
			}
		}
		c.Over = nil
	case c.version != c.Based:
		return nil // another gateway has saved a newer state
	}
	c.State.ID = c.ID
	c.Entry.State, c.reader = c.State, c.Reads
	s.entries = slices.DeleteFunc(s.entries, func(e *Entry) bool { return e == c.Entry })
	s.entries = slices.Insert(s.entries, 0, c.Entry)
	if len(s.entries) > maxLineages {
		s.entries = slices.Delete(s.entries, maxLineages, len(s.entries))
	}
	return nil
}

// Said returns the description to store with the lineage.
func (c *Lease) Said() *About {
	defer c.lock()()
	return c.about
}

// Late marks the state to be stored later, if err means that the store cannot be used now.
func (c *Lease) Late(err error) {
	if Unstored(err) {
		defer c.lock()()
		c.unsaved = true
	}
}

// Again reloads the state, after another gateway has stored one.
func (c *Lease) Again(ctx context.Context, from store.Store) error {
	if err := c.Session.Load(ctx, from); err != nil {
		return err
	}
	defer c.lock()()
	c.State, c.Based = new(*c.Entry.State), c.version
	return nil
}

// Latest leases the lineage with its current state after the answer, to add the vendor's report. It returns false if
// the context ends or there is no state.
func (c *Lease) Latest(ctx context.Context) bool {
	select {
	case c.Turn <- struct{}{}:
		c.Mine = true
	case <-ctx.Done():
		return false
	}
	defer c.lock()()
	if c.Entry.State == nil {
		c.Release()
		return false
	}
	c.State, c.Based = new(*c.Entry.State), c.version
	return true
}
