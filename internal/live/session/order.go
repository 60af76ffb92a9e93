package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/size"
)

// A user's requests for a running conversation are stored in a record of its own, a control, next to the records of its
// lineages. A controller writes the control, and the gateway that receives the conversation's next request reads it. So
// orders survive a restart, and any gateway with the store can carry them out.

// An Order is a user's request to change a conversation together with its next request to the vendor.
type Order struct {
	Number int       `json:"number"` // counts the orders of the conversation, from 1
	Do     string    `json:"do"`     // [OrderNow] or [OrderUndo]
	Time   time.Time `json:"time"`

	// For [OrderNow]: the profile, or the only provider of the chain, and the target size in tokens of the request or
	// percent of the window. Empty and 0 mean the gateway's own choice.
	Profile  string  `json:"profile,omitempty"`
	Provider string  `json:"provider,omitempty"`
	Tokens   int     `json:"tokens,omitempty"`
	Percent  float64 `json:"percent,omitempty"`

	Waits string `json:"waits,omitempty"` // why the order must wait for another request; empty if it need not

	Done    time.Time `json:"done,omitzero"`
	Result  string    `json:"result,omitempty"` // why the order had no effect; empty if it had one
	Before  int       `json:"before,omitempty"` // tokens of the request before and after the order
	After   int       `json:"after,omitempty"`
	Changed bool      `json:"changed"` // whether the order changed the messages that are sent
}

// The values of Order.Do.
const (
	OrderNow  = "now"  // condense
	OrderUndo = "undo" // undo the last condensation
)

// A Protection is content that condensing must keep verbatim.
type Protection struct {
	Text    string `json:"text,omitempty"`    // protects all messages that contain it
	Message int    `json:"message,omitempty"` // or protects one message, by its number from 1 in the client's history
	At      string `json:"at,omitempty"`      // identifies that message, even if its number changes
}

// A Control holds the user's settings and orders for a conversation and its branches.
type Control struct {
	Family      string       `json:"family"`
	Paused      bool         `json:"paused,omitempty"`
	Protections []Protection `json:"protections,omitempty"`
	Number      int          `json:"number,omitempty"` // of the last order
	Order       *Order       `json:"order,omitempty"`  // waits for a request
	Last        *Order       `json:"last,omitempty"`   // the last one carried out
}

// Protects reports whether a text contains one that the user protects.
func Protects(all []Protection, text string) bool {
	return slices.ContainsFunc(all, func(p Protection) bool { return p.Text != "" && strings.Contains(text, p.Text) })
}

// Protected returns a text that differs if the protections do.
func (c *Control) Protected() string {
	if len(c.Protections) == 0 {
		return ""
	}
	text, _ := json.Marshal(c.Protections) // of strings and numbers: there is no error
	return string(text)
}

// ControlPrefix begins the ID of a control's record.
const ControlPrefix = "control:"

// Change applies f to the stored control of a family, and tries again, up to 8 times, if another writer was faster. It
// returns the stored control. The error is f's or the store's.
func Change(ctx context.Context, in store.Store, key store.Key, family string, now time.Time, f func(*Control) error) (*Control, error) {
	const tries = 8
	for n := 1; ; n++ {
		r, c, err := Asked(ctx, in, key, family)
		if err != nil {
			return nil, err
		}
		if err := f(c); err != nil {
			return nil, err
		}
		if r.Data, err = json.Marshal(c); err != nil {
			return nil, err
		}
		r.Updated = now
		if err = in.Save(ctx, r); !errors.Is(err, store.ErrConflict) || n == tries {
			return c, err
		}
	}
}

// Asked returns the stored control of a family, with its record; new ones if there are none. The error is the store's.
func Asked(ctx context.Context, in store.Store, key store.Key, family string) (*store.Record, *Control, error) {
	r, c := &store.Record{ID: ControlPrefix + family, Key: key}, &Control{}
	records, err := in.Load(ctx, key)
	for i := range records {
		if records[i].ID == r.ID && !records[i].Damaged && json.Unmarshal(records[i].Data, c) == nil {
			r = &records[i]
		}
	}
	c.Family = family
	return r, c, err
}

func (s *Session) addControl(c *Control) {
	if s.controls == nil {
		s.controls = map[string]*Control{}
	}
	s.controls[c.Family] = c
}

// Former returns the state before the latest epoch, or nil if it is no longer in memory.
func (c *Lease) Former() *lineage.State {
	if c.State.Epoch == nil || c.State.Epoch.Over == "" {
		return nil
	}
	defer c.lock()()
	for _, e := range c.Session.entries {
		if e.ID == c.State.Epoch.Over {
			return e.State
		}
	}
	return nil
}

// A failure is the reason why the background condensation for an order failed.
type failure struct {
	order int
	why   string
}

// Failure returns why the background condensation for the order failed; empty if it did not.
func (c *Lease) Failure(o *Order) string {
	defer c.lock()()
	if c.failed.order == o.Number {
		return c.failed.why
	}
	return ""
}

// Unordered drops a prepared condensation that was not made for the order.
func (c *Lease) Unordered(o *Order) {
	defer c.lock()()
	if c.Prepared != nil && c.Prepared.Order != o.Number {
		c.Prepared = nil
	}
}

// An About holds a gateway's description of a conversation at its last request, apart from its state. Sizes are tokens
// by the vendor's count, estimated.
type About struct {
	Agent     string         `json:"agent,omitempty"`
	Folder    string         `json:"folder,omitempty"`
	Title     string         `json:"title,omitempty"`
	Profile   string         `json:"profile,omitempty"`
	Provider  string         `json:"provider,omitempty"` // the one that made the last epoch
	Chain     string         `json:"chain,omitempty"`    // the first provider of the chain
	Window    int            `json:"window,omitempty"`
	Limit     int            `json:"limit,omitempty"`
	Threshold int            `json:"threshold,omitempty"`
	Tokens    int            `json:"tokens,omitempty"`
	Waits     string         `json:"waits,omitempty"`    // for what an epoch waits that is due
	Original  int            `json:"original,omitempty"` // size of the client's own history
	Grows     int            `json:"grows,omitempty"`    // tokens that each answer adds
	Failing   *Failing       `json:"failing,omitempty"`  // nil if the last epoch that was due has begun
	Fallback  *Failing       `json:"fallback,omitempty"` // epochs that another provider had to make; nil if the last one was the chain's first's
	Refused   *Failing       `json:"refused,omitempty"`  // requests that the vendor did not answer; nil if it has answered the last one
	Parts     map[string]int `json:"parts,omitempty"`    // of Tokens: see [lineage.State.Parts]
	Missing   []int          `json:"missing,omitempty"`  // indices of the protected texts that occur nowhere
	Shreds    Shreds         `json:"shreds,omitempty"`   // of the client's messages, up to the one with the rolling hash UpTo
	UpTo      wire.Hash      `json:"up_to,omitzero"`
	Input     float64        `json:"input,omitempty"` // US dollars per token: sent, cache write, cache read; 0: not known
	Write     float64        `json:"write,omitempty"`
	Read      float64        `json:"read,omitempty"`
	Saved     float64        `json:"saved,omitempty"` // US dollars by all answers; negative if it has cost more
}

// Shreds are a set of parts of texts, by their hashes only: a part that it lacks is in none of the texts, one that it has may be. An empty
// set has all. Its length is a power of two.
type Shreds []byte

// each calls f with the place of each part of a text: three bytes in a row, four of a word, because most threes are in every long
// conversation, and six from a character that is not ASCII on. No part goes over the end of a line: messages are divided there.
func (s Shreds) each(text []byte, f func(at uint64, bit byte)) {
	const prime = 0x9e3779b97f4a7c15
	var last uint64 // bytes
	run, word := 0, 0
	part := func(size int) {
		at := (last&(1<<(8*size)-1) | uint64(size)<<56) * prime >> 32 & uint64(8*len(s)-1)
		f(at/8, 1<<(at%8))
	}
	for _, c := range text {
		last, run, word = last<<8|uint64(c), run+1, word+1
		if letter := c | ' '; (c < '0' || c > '9') && (letter < 'a' || letter > 'z') {
			word = 0
		}
		if c < ' ' {
			run = 0
		}
		if run >= 3 {
			part(3)
		}
		if word >= 4 {
			part(4)
		}
		if run >= 6 && last>>40&0xc0 == 0xc0 {
			part(6)
		}
	}
}

// Add adds the parts of a message, as its JSON is and as it reads.
func (s Shreds) Add(raw []byte) {
	set := func(at uint64, bit byte) { s[at] |= bit }
	if s.each(raw, set); bytes.IndexByte(raw, '\\') >= 0 {
		s.each([]byte(rawjson.Unquote(raw)), set)
	}
}

// MayHave reports whether a text may be part of those that were added.
func (s Shreds) MayHave(text string) bool {
	has := true
	if len(s) > 0 {
		s.each([]byte(text), func(at uint64, bit byte) { has = has && s[at]&bit != 0 })
	}
	return has
}

// A Failing describes what has failed, one time after the other: epochs that were due and could not begin, and the like.
type Failing struct {
	Count  int       `json:"count"`
	Forced int       `json:"forced,omitempty"` // of these, epochs without which the vendor would refuse a request
	Since  time.Time `json:"since"`
	Why    string    `json:"why"` // the last time; without keys
	Status int       `json:"status,omitempty"`
}

// Lasting reports whether epochs keep failing: a single failure is often followed by a success.
func (f *Failing) Lasting() bool { return f != nil && f.Count > 1 }

// Said says how often, since when and why.
func (f *Failing) Said() string {
	return fmt.Sprintf("%s since %s: %s", size.Plural(f.Count, "time"), f.Since.Local().Format("15:04"), f.Why)
}

// Stuck reports whether the chain must not be tried again for a request that the vendor would refuse.
func (f *Failing) Stuck() bool { return f != nil && f.Forced > 1 }

// Failing returns the epochs of the conversation that could not begin; nil for none.
func (c *Lease) Failing() *Failing {
	return cmp.Or(c.Said(), &About{}).Failing
}

// Fail adds an epoch that could not begin, and returns all such.
func (c *Lease) Fail(why job.Cause, forced bool, now time.Time) Failing {
	defer c.lock()()
	a := *cmp.Or(c.about, &About{})
	a.Failing = a.Failing.Again(why, now)
	if forced {
		a.Failing.Forced++
	}
	c.about = &a
	return *a.Failing
}

// Again returns f, which may be nil, with another failure.
func (f *Failing) Again(why job.Cause, now time.Time) *Failing {
	next := *cmp.Or(f, &Failing{Since: now})
	next.Count, next.Why, next.Status = next.Count+1, why.Why, why.Status
	return &next
}

// Refuse adds a request that the vendor did not answer. No cause ends them; it reports whether there were any.
func (c *Lease) Refuse(why job.Cause, now time.Time) bool {
	defer c.lock()()
	if c.about == nil || why == (job.Cause{}) && c.about.Refused == nil {
		return false
	}
	a := *c.about
	if a.Refused = a.Refused.Again(why, now); why == (job.Cause{}) {
		a.Refused = nil
	}
	c.about = &a
	return true
}

// Earn adds what an answer has saved, in US dollars.
func (c *Lease) Earn(saved float64) {
	defer c.lock()()
	if c.about != nil {
		a := *c.about
		a.Saved += saved
		c.about = &a
	}
}

// Observed is appended to the API in the keys of conversations that were only observed.
const Observed = ".observe"

// Put makes o the waiting order, with the next number.
func (c *Control) Put(o *Order, now time.Time) error {
	c.Number++
	o.Number, o.Time = c.Number, now
	c.Order = o
	return nil
}

// At returns the ID of a message, for Protection.At, from its rolling hash.
func At(h wire.Hash) string { return hex.EncodeToString(h[:]) }

// Changed makes the next request of a session reload its records.
func (s *Sessions) Changed(key store.Key) {
	s.mu.Lock()
	found := s.all[key]
	s.mu.Unlock()
	if found != nil {
		found.mu.Lock()
		found.loaded = false
		found.mu.Unlock()
	}
}
