package roo

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/rawjson"
)

// noteField is the field of Roo's messages for data that tags cannot express.
const noteField = "condense"

// A note is the value of that field.
type note struct {
	// ID and Kind are set if they differ from the values that read would assign.
	ID   string    `json:"id,omitempty"`
	Kind core.Kind `json:"kind,omitempty"`
	// Time is when it was written; ts only gives its position.
	Time time.Time `json:"time,omitzero"`
	// Role and Message are the speaker and the content, if Roo has no place for them.
	Role    core.Role     `json:"role,omitempty"`
	Message *core.Message `json:"message,omitempty"`
	// CopyOf is the ID of the message of which this is the rewritten copy.
	CopyOf string `json:"copy_of,omitempty"`
	// Carrier marks a message that is not part of the conversation: it hides others, or holds
	// a record, and is hidden itself.
	Carrier bool     `json:"carrier,omitempty"`
	Records []record `json:"records,omitempty"`
}

// A record is a condensation. It names the messages that it inserted by ID alone; they are in
// the file themselves.
type record struct {
	Order int `json:"order"` // the first is 1
	history.Condensation
}

// empty reports whether n has no content.
func (n *note) empty() bool {
	return n.ID == "" && n.Kind == "" && n.Time.IsZero() && n.Role == "" && n.Message == nil && n.CopyOf == "" && !n.Carrier && len(n.Records) == 0
}

// decodeNote returns the note raw; an empty one if raw is not a note.
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

// apply sets the fields of m that n has.
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

// recordOf returns the record of c, which hides the named messages: the ones in its edit and those that it has hidden
// since an earlier condensation was undone.
func recordOf(order int, c history.Condensation, hides []string) record {
	inserts := make([]core.Insert, len(c.Edit.Insert))
	for i, in := range c.Edit.Insert {
		inserts[i].Message.ID = in.Message.ID
	}
	c.Edit.Hide, c.Edit.Insert = hides, inserts
	return record{order, c}
}

// within returns r without references to messages that are not in known; false if nothing is
// left.
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
