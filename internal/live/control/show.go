package control

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// A Shown is a message in a [View]: a hidden one of the client's, or one that is sent.
type Shown struct {
	Number    int    `json:"number,omitempty"` // in the client's history
	Hidden    bool   `json:"hidden,omitempty"`
	Condensed bool   `json:"condensed,omitempty"` // not the client's, but sent in place of hidden messages
	Protected bool   `json:"protected,omitempty"`
	Role      string `json:"role"`
	Text      string `json:"text"`
}

// A View shows the part of a conversation that is stored: the messages that the last epoch sends in place of the first
// ones, and the originals that they hide. The client's messages after those are sent unchanged, and not stored.
type View struct {
	Conversation *Conversation `json:"conversation"`
	Messages     []Shown       `json:"messages"`
	Hidden       int           `json:"hidden"`          // messages that are condensed
	Unknown      int           `json:"unknown"`         // hidden messages not stored, as the agent cannot recall
	Rest         int           `json:"rest"`            // messages that follow, as the client has them
	Shortened    int           `json:"shortened"`       // tool results in the rest that were shortened at first
	Whole        bool          `json:"whole,omitempty"` // not condensed: the client's messages are sent
}

// ErrNoEpoch means that no stored epoch of the conversation began at that time.
var ErrNoEpoch = errors.New("this condensation is not stored")

// Show returns the stored view of a conversation, for display; or, for the epoch that began at a time in the form of RFC 3339, the view with
// it, where hidden are only messages that were sent before. The error is [ErrNoEpoch], the store's, or that a message cannot be parsed.
func (d *Controller) Show(ctx context.Context, c *Conversation, began string) (*View, error) {
	s, before := c.state, &lineage.Epoch{}
	if began != "" {
		records, err := d.store.Load(ctx, c.key)
		if err != nil {
			return nil, err
		}
		epochs := map[string]*lineage.Epoch{}
		s = nil
		for i := range records {
			o := conversationOf(&records[i], map[string]*session.Control{})
			if o == nil || o.ID != c.ID || o.state.Epoch == nil {
				continue
			}
			if epochs[records[i].ID] = o.state.Epoch; o.state.Epoch.Time.Format(time.RFC3339Nano) == began {
				s = o.state
			}
		}
		if s == nil {
			return nil, ErrNoEpoch
		}
		before = cmp.Or(epochs[s.Epoch.Over], before)
	}
	v := &View{Conversation: c, Messages: []Shown{}, Rest: len(s.Rolling), Shortened: len(s.Ingest), Whole: !s.Condensed()}
	if v.Whole {
		return v, nil
	}
	v.Hidden, v.Rest = s.Epoch.Cut, len(s.Rolling)-s.Epoch.Cut
	kept, err := d.store.Kept(ctx, c.key.Tenant, s.Originals)
	if err != nil {
		return nil, err
	}
	own := library.OfKind(kept, library.FromClient)
	own = own[:min(len(own), s.Epoch.Cut)]
	v.Unknown = s.Epoch.Cut - len(own)
	for _, raw := range before.Block {
		if !slices.ContainsFunc(s.Epoch.Block, func(o []byte) bool { return bytes.Equal(o, raw) }) {
			if err := v.add(wire.API(c.API), raw, Shown{Hidden: true, Condensed: true}); err != nil {
				return nil, err
			}
		}
	}
	for i, raw := range own {
		if i < before.Cut { // it was in the block, or hidden
			continue
		}
		if err := v.add(wire.API(c.API), raw, Shown{Number: i + 1, Hidden: true}); err != nil {
			return nil, err
		}
	}
	for _, raw := range s.Epoch.Block {
		// Without stored originals it is not known which messages are the client's.
		one := Shown{Condensed: len(own) > 0 && !slices.ContainsFunc(before.Block, func(o []byte) bool { return bytes.Equal(o, raw) })}
		if i := slices.IndexFunc(own, func(o []byte) bool { return string(lineage.Shape(wire.API(c.API), o)) == string(raw) }); i >= 0 {
			one.Number, one.Condensed = i+1, false
		}
		if err := v.add(wire.API(c.API), raw, one); err != nil {
			return nil, err
		}
	}
	sent := map[int]bool{}
	for _, m := range v.Messages {
		sent[m.Number] = sent[m.Number] || !m.Hidden && m.Number > 0
	}
	v.Messages = slices.DeleteFunc(v.Messages, func(m Shown) bool { return m.Hidden && sent[m.Number] })
	return v, nil
}

// add appends a message to the view.
func (v *View) add(api wire.API, raw []byte, as Shown) error {
	doc, err := messages.Read(api, [][]byte{raw})
	if err != nil {
		return err
	}
	for _, m := range doc.Journal.View() {
		one := as
		one.Role, one.Text = string(m.Role), strings.TrimSpace(messages.Text(m.Parts))
		one.Protected = session.Protects(v.Conversation.Protections, one.Text)
		v.Messages = append(v.Messages, one)
	}
	return nil
}

// An Ask holds the parameters of an action, in the body of a POST to /condense/live/ID/ACTION and for [Controller.Do].
// Fields that the action does not use are ignored.
type Ask struct {
	Profile  string  `json:"profile,omitempty"` // for action now
	Provider string  `json:"provider,omitempty"`
	Tokens   int     `json:"tokens,omitempty"`
	Percent  float64 `json:"percent,omitempty"`
	Text     string  `json:"text,omitempty"` // for protect and unprotect
	Message  int     `json:"message,omitempty"`
}

// Actions lists the actions of [Controller.Do].
var Actions = []string{session.OrderNow, session.OrderUndo, "pause", "resume", "protect", "unprotect"}

// Do performs one of [Actions] on a conversation.
func (d *Controller) Do(ctx context.Context, c *Conversation, action string, a *Ask) error {
	p := session.Protection{Text: a.Text, Message: a.Message}
	defer func() { c.Next = c.next() }()
	switch action {
	case session.OrderNow:
		return d.Now(ctx, c, session.Order{Profile: a.Profile, Provider: a.Provider, Tokens: a.Tokens, Percent: a.Percent})
	case session.OrderUndo:
		return d.Undo(ctx, c)
	case "pause", "resume":
		return d.Pause(ctx, c, action == "pause")
	case "protect", "unprotect":
		return d.Protect(ctx, c, p, action == "protect")
	}
	return fmt.Errorf("there is no action %q: there are %s", plain.Clip(action), strings.Join(Actions, ", "))
}

// next says when the next epoch is expected, or for what it waits.
func (c *Conversation) next() string {
	switch o := c.Order; {
	case c.Observed:
		return "only observed"
	case o != nil && o.Waits != "":
		return o.Do + " waits: " + o.Waits
	case o != nil && o.Do == session.OrderUndo:
		return "undone with the next request"
	case o != nil:
		return "with the next request"
	case c.Paused:
		return "paused"
	case c.Refused.Lasting():
		return "NO ANSWER, " + c.Refused.Said()
	case c.Failing.Lasting():
		return "FAILS, " + c.Failing.Said()
	case c.Waits != "":
		return "due, waits for " + c.Waits
	case c.DueAt == 0:
		return "not known"
	case c.DueIn > 0:
		return "at " + size.Group(c.DueAt) + ", in about " + size.Plural(c.DueIn, "request")
	}
	return "at " + size.Group(c.DueAt)
}

// Troubles name the failures in the conversation, their costs and the remedies; nothing if all is well.
func (c *Conversation) Troubles() (all []string) {
	add := func(f *session.Failing, what, cost, otherwise string) {
		all = append(all, fmt.Sprintf("%s, %s; %s: %s", what, f.Said(), cost, cmp.Or(Advice(f.Status), otherwise)))
	}
	if c.Refused.Lasting() {
		add(c.Refused, "the vendor does not answer", "the request is the agent's own", "see the agent's message")
	}
	if c.Failing.Lasting() {
		cost := fmt.Sprintf("every request has all %s tokens", size.Group(c.Size))
		if c.Priced {
			cost += fmt.Sprintf(", for %s from the cache", size.Dollars(float64(c.Size)*c.about.Read, 3))
		}
		cost += ", and is truncated at " + size.Group(c.Limit)
		add(c.Failing, "it is not condensed", cost, "the agent's own compaction, or a new session")
	}
	for _, i := range c.about.Missing {
		if i < len(c.Protections) && c.Protections[i].Text != "" {
			text := plain.Clip(c.Protections[i].Text)
			all = append(all, fmt.Sprintf("the protected text %q occurs nowhere, so nothing is kept for it", text))
		}
	}
	if c.Fallback != nil {
		add(c.Fallback, cmp.Or(c.about.Chain, "the chain")+" did not condense", c.Provider+" stood in, which keeps less of what matters",
			"mend it, or leave it out of the chain")
	}
	return all
}

// money says how much condensing has saved or cost so far, compared with which sum, and the reason of a cost; empty if that is nothing,
// or not known.
func (c *Conversation) money() string {
	const cent = .005
	agent := agents.Find(c.Agent)
	switch basis := agent.Basis(c.Model, c.Window); {
	case !c.Priced || math.Abs(c.Saved) < cent:
		return ""
	case c.Observed:
		return fmt.Sprintf("would have saved %s against %s", size.Dollars(c.Saved, 2), basis)
	case c.Saved > 0:
		return fmt.Sprintf("saved %s against %s", size.Dollars(c.Saved, 2), basis)
	default:
		text := fmt.Sprintf("cost %s more than %s", size.Dollars(-c.Saved, 2), basis)
		if c.Epochs > 0 {
			text += ": the cache was rewritten " + size.Plural(c.Epochs, "time")
		}
		alone := min(c.History, cmp.Or(c.Window, c.History))
		if n, own := agent.Alone(c.Model, c.Window, c.History); own {
			alone = n
		}
		if each := float64(alone-c.Size) * c.about.Read; c.Condensed && each > 0 {
			text += fmt.Sprintf("; it pays after about %s", size.Plural(int(math.Ceil(-c.Saved/each)), "more request"))
		}
		return text
	}
}

// due estimates the size and the number of requests at which the next epoch is due.
func (c *Conversation) due() {
	at := c.Limit
	if t := c.about.Threshold; t > 0 && !c.Undone && !c.Paused {
		at = min(cmp.Or(at, t), t)
	}
	if c.Paused {
		at = c.Window
	}
	if c.Observed || at == 0 {
		return
	}
	c.DueAt = at
	if c.about.Grows > 0 && !c.Failing.Lasting() && !c.Refused.Lasting() {
		c.DueIn = max(1, (at-c.Size+c.about.Grows-1)/c.about.Grows)
	}
	if c.Order != nil && c.Order.Do == session.OrderNow {
		c.DueIn = 1
	}
}

// Advice says what to do about a failure with this status; empty if only its reason says it.
func Advice(status int) string {
	const class = 100
	return cmp.Or(advice[status], advice[status/class])
}

var advice = map[int]string{
	401: "check the key", 403: "check the key", 402: "the account needs credit", 429: "the vendor's limit is reached: wait, or use another model",
	5: "the vendor has a fault: later requests try again", // of all from 500 on
}
