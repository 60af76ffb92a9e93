package control

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/wire"
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
		one.Protected = slices.ContainsFunc(v.Conversation.Protections, func(p session.Protection) bool {
			return p.Text != "" && strings.Contains(one.Text, p.Text)
		})
		v.Messages = append(v.Messages, one)
	}
	return nil
}
