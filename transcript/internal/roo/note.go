package roo

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/rawjson"
)

// noteField is where a message of Roo's holds what its tags cannot say.
const noteField = "condense"

// A note is the value of that field.
type note struct {
	// ID and Kind are the message's, if they are not those that readRoo would give it.
	ID   string    `json:"id,omitempty"`
	Kind core.Kind `json:"kind,omitempty"`
	// Time is when it was written; ts only says where it stands.
	Time time.Time `json:"time,omitzero"`
	// Role is who speaks and Message what is said, if Roo has no place for that.
	Role    core.Role     `json:"role,omitempty"`
	Message *core.Message `json:"message,omitempty"`
	// CopyOf is the ID of the message that this one stands for, rewritten.
	CopyOf string `json:"copy_of,omitempty"`
	// Carrier marks a message that stands for nothing: it hides others, or holds a
	// record, and is hidden itself.
	Carrier bool     `json:"carrier,omitempty"`
	Records []record `json:"records,omitempty"`
}

// A record is a condensation. It names the messages that it inserted by ID alone; they
// stand in the file themselves.
type record struct {
	Order int `json:"order"` // the first is 1
	history.Condensation
}

// empty reports whether n says nothing.
func (n *note) empty() bool {
	return n.ID == "" && n.Kind == "" && n.Time.IsZero() && n.Role == "" && n.Message == nil && n.CopyOf == "" && !n.Carrier && len(n.Records) == 0
}

// decodeNote returns the note raw; an empty one if it is something else.
func decodeNote(raw []byte) note {
	var n note
	if !rawjson.IsObject(raw) || json.Unmarshal(raw, &n) != nil {
		return note{}
	}
	return n
}

func (n *note) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(n)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// apply makes m the message that n speaks of.
func (n *note) apply(m *core.Message) {
	if n.ID != "" {
		m.ID, m.Kind = n.ID, n.Kind
	}
	if !n.Time.IsZero() {
		m.Time = n.Time
	}
	if n.Role != "" {
		m.Role = n.Role
	}
	if n.Message != nil {
		m.Parts = n.Message.Parts
	}
}

// recordOf returns the record of c, which hides the named messages: those that its edit
// names and, where a condensation before it was undone, those that it covered with it.
func recordOf(order int, c history.Condensation, hides []string) record {
	inserts := make([]core.Insert, len(c.Edit.Insert))
	for i, in := range c.Edit.Insert {
		inserts[i].Message.ID = in.Message.ID
	}
	c.Edit.Hide, c.Edit.Insert = hides, inserts
	return record{order, c}
}

// within returns r without what it says of messages that are not among known; false if
// nothing is left of it.
func (r *record) within(known map[string]bool) (history.Condensation, bool) {
	c := r.Condensation
	c.Edit = core.Edit{}
	for _, id := range r.Edit.Hide {
		if known[id] {
			c.Edit.Hide = append(c.Edit.Hide, id)
		}
	}
	for _, w := range r.Edit.Rewrite {
		if known[w.ID] {
			c.Edit.Rewrite = append(c.Edit.Rewrite, w)
		}
	}
	for _, in := range r.Edit.Insert {
		if known[in.Message.ID] {
			c.Edit.Insert = append(c.Edit.Insert, in)
		}
	}
	return c, !c.Edit.Empty()
}
