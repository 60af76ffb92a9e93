// Package control lists the conversations of gateways, and takes their users' orders.
package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
)

// A Controller lists the conversations of all gateways with a store, and takes a user's orders for them. The gateway that
// receives a conversation's next request carries its order out, even after a restart.
type Controller struct {
	store    store.Store
	now      func() time.Time
	onChange func(store.Key) // called when a record of a session has changed
	own      bool            // the controller has opened the store itself
}

// Open opens a controller for the gateways that use a store: address is the path of a SQLite file, or the address of a
// PostgreSQL database. The caller must close the controller.
func Open(ctx context.Context, address string) (*Controller, error) {
	opened, err := store.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	return &Controller{store: opened, now: time.Now, onChange: func(store.Key) {}, own: true}, nil
}

// Close closes the store if [Open] opened it.
func (d *Controller) Close() error {
	if !d.own {
		return nil
	}
	return d.store.Close()
}

// A Conversation describes a conversation that a gateway has seen, by its most recently used branch. Sizes are tokens
// of the last request by the vendor's count, estimated.
type Conversation struct {
	ID       string    `json:"id"`
	API      string    `json:"api"`
	Agent    string    `json:"agent,omitempty"`
	SubAgent string    `json:"sub_agent,omitempty"`
	Session  string    `json:"session,omitempty"` // the session ID that the client sent
	Folder   string    `json:"folder,omitempty"`
	Title    string    `json:"title,omitempty"`
	Model    string    `json:"model,omitempty"`
	Profile  string    `json:"profile,omitempty"`
	Last     time.Time `json:"last"`
	Messages int       `json:"messages"` // in the client's history
	Size     int       `json:"size"`     // of the last request as sent
	History  int       `json:"history"`  // size of the client's own history
	Window   int       `json:"window"`
	Limit    int       `json:"limit"` // the largest size that is sent
	DueAt    int       `json:"due_at,omitempty"`
	Waits    string    `json:"waits,omitempty"` // for what an epoch waits that is due, such as "a boundary"
	// Failing describes epochs that were due and could not begin; nil if there are none.
	Failing   *session.Failing `json:"failing,omitempty"`
	Fallback  *session.Failing `json:"fallback,omitempty"` // epochs that the chain's first provider could not make
	Refused   *session.Failing `json:"refused,omitempty"`  // requests that the vendor has not answered since its last answer
	DueIn     int              `json:"due_in,omitempty"`   // requests until then at the present growth; 0 if not known
	Epochs    int              `json:"epochs"`
	Saved     float64          `json:"saved"`           // US dollars by all answers; negative if it has cost more
	Money     string           `json:"money,omitempty"` // Saved for people, with its basis and, if negative, the reason
	Priced    bool             `json:"priced"`
	Provider  string           `json:"provider,omitempty"` // of the last epoch, or else the first of the chain
	Condensed bool             `json:"condensed"`          // the first messages are replaced
	Observed  bool             `json:"observed,omitempty"` // the gateway only observes, and changes nothing
	Paused    bool             `json:"paused,omitempty"`
	Bound     bool             `json:"bound,omitempty"`  // the model binds its thinking to the messages before it
	Undone    bool             `json:"undone,omitempty"` // only the window or the user can cause another epoch

	LastEpoch   *LastEpoch           `json:"last_epoch,omitempty"` // nil if there was none
	Protections []session.Protection `json:"protections,omitempty"`
	Order       *session.Order       `json:"order,omitempty"`      // waits for the next request
	LastOrder   *session.Order       `json:"last_order,omitempty"` // the last one carried out

	Parts    map[string]int `json:"parts,omitempty"` // of Size, by what they are: see [lineage.State.Parts]
	Next     string         `json:"next"`            // when the next epoch is expected or for what it waits, for people
	Branches []string       `json:"branches"`        // IDs of its branches on the pages

	key   store.Key
	state *lineage.State
	about session.About
}

// LastEpoch describes the latest condensation of a conversation. Sizes are tokens of the request by the vendor's count,
// estimated.
type LastEpoch struct {
	N      int       `json:"n"` // 1 for the first epoch of a conversation
	Time   time.Time `json:"time"`
	Reason string    `json:"reason,omitempty"`
	Before int       `json:"before"`
	After  int       `json:"after"`
	Lost   int       `json:"words_lost,omitempty"` // tokens of the user's words that it left out
	// Truth holds the view of the whole conversation against the client's history; nil until the turn after it was measured.
	Truth *epoch.Truth `json:"truth,omitempty"`
}

// maxListed is how many records of each API are read for a list.
const maxListed = 2000

// Conversations returns the conversations used since a time, the latest first, at most maxListed records of each API.
// The error is the store's.
func (d *Controller) Conversations(ctx context.Context, since time.Time) ([]*Conversation, error) {
	byFamily, controls := map[string]*Conversation{}, map[string]*session.Control{}
	for _, api := range wire.APIs {
		for _, name := range []string{string(api), string(api) + session.Observed} {
			records, err := d.store.Since(ctx, name, since, maxListed)
			if err != nil {
				return nil, err
			}
			for i := range records {
				if c := conversationOf(&records[i], controls); c != nil {
					known := byFamily[c.ID]
					if known != nil {
						c.Branches = slices.Compact(append(c.Branches, known.Branches...))
					}
					if known == nil || c.Last.After(known.Last) {
						byFamily[c.ID] = c
					} else {
						known.Branches = c.Branches
					}
				}
			}
		}
	}
	all := make([]*Conversation, 0, len(byFamily))
	for id, c := range byFamily {
		asked := controls[id]
		if asked == nil { // it may be older than since
			var err error
			if _, asked, err = session.Asked(ctx, d.store, c.key, id); err != nil {
				return nil, err
			}
		}
		c.obey(asked)
		c.Next, c.Money = c.next(), c.money()
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Conversation) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// obey sets what the user's control says.
func (c *Conversation) obey(asked *session.Control) {
	c.Paused, c.Protections, c.Order, c.LastOrder = asked.Paused, asked.Protections, asked.Order, asked.Last
	c.due()
}

// conversationOf reads the record of a lineage; it returns nil for records of other kinds. It adds controls to
// controls, by family.
func conversationOf(r *store.Record, controls map[string]*session.Control) *Conversation {
	switch {
	case r.Damaged, session.OfTool(r.ID):
		return nil
	case strings.HasPrefix(r.ID, session.ControlPrefix):
		if c := (&session.Control{}); json.Unmarshal(r.Data, c) == nil {
			controls[c.Family] = c
		}
		return nil
	}
	data := session.Stored{State: &lineage.State{}}
	if json.Unmarshal(r.Data, &data) != nil || data.State == nil || data.Conversation == "" || len(data.Rolling) == 0 {
		return nil
	}
	data.ID = r.ID
	c := &Conversation{
		ID: cmp.Or(data.Family, data.Conversation), API: strings.TrimSuffix(r.Key.API, session.Observed),
		SubAgent: r.Key.Agent, Model: data.Model, Last: data.Last, Messages: len(data.Rolling), Condensed: data.Condensed(),
		Observed: strings.HasSuffix(r.Key.API, session.Observed), Undone: data.Held, Bound: data.Bound,
		key: r.Key, state: data.State, Branches: []string{data.Conversation},
	}
	if !strings.HasPrefix(r.Key.Session, "opening:") {
		c.Session = r.Key.Session
	}
	if e := data.Epoch; e != nil {
		c.Epochs = e.N
		c.LastEpoch = &LastEpoch{N: e.N, Time: e.Time, Reason: string(e.Reason), Before: e.Before, After: e.After, Lost: e.Lost, Truth: e.Truth}
	}
	if data.About != nil {
		a := data.About
		c.about, c.Agent, c.Folder, c.Title, c.Profile = *a, a.Agent, a.Folder, a.Title, a.Profile
		c.Window, c.Limit, c.Size, c.History, c.Waits = a.Window, a.Limit, a.Tokens, a.Original, a.Waits
		c.Parts, c.Failing, c.Fallback, c.Refused = a.Parts, a.Failing, a.Fallback, a.Refused
		c.Provider, c.Priced, c.Saved = cmp.Or(a.Provider, a.Chain), a.Input > 0, a.Saved
	}
	return c
}

// ErrUnknown means that no conversation, or more than one, has the ID.
var ErrUnknown = errors.New("unknown conversation")

// Find returns the conversation with an ID, or the only one whose ID begins with it. Otherwise the error wraps
// [ErrUnknown] and lists candidates.
func Find(all []*Conversation, id string) (*Conversation, error) {
	var found []*Conversation
	var ids []string
	for _, c := range all {
		if strings.EqualFold(c.ID, id) || slices.Contains(c.Branches, id) {
			return c, nil
		}
		if id != "" && len(id) <= len(c.ID) && strings.EqualFold(c.ID[:len(id)], id) {
			found = append(found, c)
		}
		ids = append(ids, c.Short())
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%w: %d begin with %q: %s", ErrUnknown, len(found), plain.Clip(id), named(found))
	case len(all) == 0:
		return nil, fmt.Errorf("%w %q: there is none", ErrUnknown, plain.Clip(id))
	}
	return nil, fmt.Errorf("%w %q%s; there are %s", ErrUnknown, plain.Clip(id), suggest.DidYouMean(strings.ToLower(id), ids), named(all))
}

// named lists up to five conversations for a message.
func named(all []*Conversation) string {
	const most = 5
	var names []string
	for _, c := range all[:min(most, len(all))] {
		about := strings.Join(slices.DeleteFunc([]string{c.Agent, cmp.Or(c.Folder, c.Title)}, func(s string) bool { return s == "" }), ", ")
		if about != "" {
			about = " (" + about + ")"
		}
		names = append(names, c.Short()+about)
	}
	if more := len(all) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Short returns the first eight characters of the ID, enough to tell conversations apart.
func (c *Conversation) Short() string {
	const enough = 8
	return strings.ToLower(c.ID[:min(enough, len(c.ID))])
}

// change applies f to the stored control of a conversation, and updates c. The error is f's, the store's, or that the
// conversation is only observed.
func (d *Controller) change(ctx context.Context, c *Conversation, f func(*session.Control) error) error {
	if c.Observed {
		return errors.New("this gateway only observes the conversation (serve.observe): nothing of it can be changed")
	}
	asked, err := session.Change(ctx, d.store, c.key, c.ID, d.now(), f)
	if err != nil {
		return err
	}
	d.onChange(c.key)
	c.obey(asked)
	return nil
}

// Bounds of orders: each one costs a write of the vendor's cache, and the model lacks the removed messages.
const (
	minTarget = 10.0        // percent of the window
	minPause  = time.Minute // between two condensations by order
)

// Now orders a condensation before the next request, with the profile, provider and target of o. It replaces an order
// that still waits. The error says if the target is not valid, or the last order too recent.
func (d *Controller) Now(ctx context.Context, c *Conversation, o session.Order) error {
	switch {
	case o.Tokens < 0 || o.Percent < 0 || o.Percent >= 100 || o.Tokens > 0 && o.Percent > 0:
		return errors.New("the target is a number of tokens, or percent of the window below 100")
	case o.Tokens > 0 && c.Window > 0 && o.Tokens >= c.Window:
		return fmt.Errorf("the target is %d tokens, and the window has %d", o.Tokens, c.Window)
	case o.Percent > 0 && o.Percent < minTarget:
		return fmt.Errorf("the target is %v%% of the window, and at least %v%% are kept", o.Percent, minTarget)
	case o.Tokens > 0 && float64(o.Tokens) < minTarget/100*float64(c.Window):
		return fmt.Errorf("the target is %d tokens, and at least %v%% of the window of %d are kept", o.Tokens, minTarget, c.Window)
	}
	o = session.Order{Do: session.OrderNow, Profile: o.Profile, Provider: o.Provider, Tokens: o.Tokens, Percent: o.Percent}
	return d.change(ctx, c, func(all *session.Control) error {
		if l := all.Last; l != nil && l.Changed && l.Do == session.OrderNow {
			if left := minPause - d.now().Sub(l.Done); left > 0 && left <= minPause {
				return fmt.Errorf("it was condensed by order just now: undo that, or order it again in %s", left.Round(time.Second))
			}
		}
		return all.Put(&o, d.now())
	})
}

// An UndoPlan describes the consequences of undoing the last epoch. Sizes are tokens and costs US dollars, both
// estimated.
type UndoPlan struct {
	Size     int     `json:"size"` // of the next request after the undo
	Fits     bool    `json:"fits"`
	Most     int     `json:"most"`     // the largest size that fits
	Own      bool    `json:"own"`      // true: the client's own history is sent; false: the view before the epoch
	Cost     float64 `json:"cost"`     // of the next request's prompt, written to the vendor's cache entirely
	Instead  float64 `json:"instead"`  // of the next request's prompt without the undo, read from the cache
	Each     float64 `json:"each"`     // extra cost of every later request, read from the cache
	Priced   bool    `json:"priced"`   // the prices are known
	Thinking bool    `json:"thinking"` // the model binds its thinking, so its thinking since the epoch is left out
}

// PlanUndo estimates the consequences of undoing the last epoch. The error says why it cannot be undone; the plan is
// still returned if the request would not fit.
func (d *Controller) PlanUndo(_ context.Context, c *Conversation) (*UndoPlan, error) {
	switch {
	case c.Observed:
		return nil, errors.New("this gateway only observes the conversation: nothing is condensed")
	case !c.Condensed && c.Undone:
		return nil, errors.New("its last condensation is undone already")
	case !c.Condensed:
		return nil, errors.New("it is not condensed: there is nothing to undo")
	}
	e, a := c.state.Epoch, &c.about
	p := &UndoPlan{Own: e.Over == "" || e.N == 1, Most: min(c.Window, c.Limit), Priced: c.Priced, Thinking: c.state.Bound}
	p.Size = c.History
	if !p.Own && e.Before > e.After {
		p.Size = min(p.Size, c.Size+e.Before-e.After)
	}
	p.Fits = p.Most == 0 || p.Size <= p.Most
	p.Cost, p.Instead = float64(p.Size)*a.Write, float64(c.Size)*a.Read
	p.Each = float64(p.Size-c.Size) * a.Read
	if !p.Fits {
		return p, fmt.Errorf("without its last condensation the request would have about %d tokens, and at most %d fit; 'condense live show' prints what is hidden", p.Size, p.Most)
	}
	return p, nil
}

// Undo orders the gateway to undo the last epoch with the next request, and replaces a waiting order. Its errors come from
// [Controller.PlanUndo] or the store.
func (d *Controller) Undo(ctx context.Context, c *Conversation) error {
	if _, err := d.PlanUndo(ctx, c); err != nil {
		return err
	}
	return d.change(ctx, c, func(all *session.Control) error { return all.Put(&session.Order{Do: session.OrderUndo}, d.now()) })
}

// Pause stops all epochs except those without which the vendor refuses a request; on = false resumes them.
func (d *Controller) Pause(ctx context.Context, c *Conversation, on bool) error {
	return d.change(ctx, c, func(all *session.Control) error { all.Paused = on; return nil })
}

// maxProtections limits the protections of a conversation. Texts have shortestText to longestText bytes: a shorter one
// would protect almost every message.
const (
	maxProtections = 200
	shortestText   = 3
	LongestText    = 64 << 10
)

// Protect keeps content verbatim in all later epochs: the messages that contain a text, or the message with a number.
// on = false ends the protection. Content that is condensed already stays condensed. The error says if p is not valid.
func (d *Controller) Protect(ctx context.Context, c *Conversation, p session.Protection, on bool) error {
	p.At = ""
	switch {
	case (p.Text == "") == (p.Message == 0):
		return errors.New("name a text, or the number of a message")
	case p.Text != "" && (len(p.Text) < shortestText || len(p.Text) > LongestText):
		return fmt.Errorf("a protected text has %d to %d bytes", shortestText, LongestText)
	case p.Text != "" && on && !c.about.Shreds.MayHave(p.Text):
		return errors.New("the text occurs nowhere in the conversation: copy it from there, or name the message by its number")
	case p.Message > 0 && p.Message <= len(c.state.Rolling):
		p.At = session.At(c.state.Rolling[p.Message-1])
	case p.Message != 0 && on:
		return fmt.Errorf("there is no message %d: the conversation has %d", p.Message, len(c.state.Rolling))
	}
	if on && c.Condensed && p.Message != 0 && p.Message <= c.state.Epoch.Cut {
		return fmt.Errorf("message %d is among the first %d, which are condensed already: undo that first, or protect a text of what is left",
			p.Message, c.state.Epoch.Cut)
	}
	return d.change(ctx, c, func(all *session.Control) error {
		same := func(o session.Protection) bool { return o.Text == p.Text && (o.At == p.At || p.Text != "") }
		known := slices.ContainsFunc(all.Protections, same)
		if !on && !known && p.Message != 0 { // the client has gone back since, and the message has another number
			same = func(o session.Protection) bool { return o.Message == p.Message }
			known = slices.ContainsFunc(all.Protections, same)
		}
		switch {
		case !on && !known:
			return errors.New("that is not protected")
		case !on:
			all.Protections = slices.DeleteFunc(all.Protections, same)
		case known:
		case len(all.Protections) >= maxProtections:
			return fmt.Errorf("a conversation has at most %d protections", maxProtections)
		default:
			all.Protections = append(all.Protections, p)
		}
		return nil
	})
}

// New returns a controller for the conversations in a store, which the caller closes. onChange is called when a record of a
// session has changed.
func New(in store.Store, now func() time.Time, onChange func(store.Key)) *Controller {
	return &Controller{store: in, now: now, onChange: onChange}
}
