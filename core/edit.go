package core

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/condensehq/condense/internal/plain"
)

// An Edit records the changes of a condensation by message ID. It does not name unchanged messages, so it is small;
// it can be recorded, replayed and dropped.
type Edit struct {
	// Hide names the messages that are no longer sent.
	Hide []string `json:"hide,omitempty"`
	// Rewrite gives messages other parts.
	Rewrite []Rewrite `json:"rewrite,omitempty"`
	// Insert adds messages. Messages with the same After follow it in the order given.
	Insert []Insert `json:"insert,omitempty"`
}

// A Rewrite gives the message ID other parts.
type Rewrite struct {
	ID    string
	Parts []Part
}

// An Insert adds a new message after the message After, hidden or not; at the front if After
// is empty.
type Insert struct {
	After   string  `json:"after,omitempty"`
	Message Message `json:"message"`
}

type rewriteJSON struct {
	ID    string     `json:"id"`
	Parts []partJSON `json:"parts"`
}

// MarshalJSON writes r in the form that the journal stores.
func (r Rewrite) MarshalJSON() ([]byte, error) {
	parts, err := partsToJSON(r.Parts)
	if err != nil {
		return nil, fmt.Errorf("rewrite of %q: %w", r.ID, err)
	}
	return marshal(rewriteJSON{r.ID, parts})
}

// UnmarshalJSON reads the output of [Rewrite.MarshalJSON].
func (r *Rewrite) UnmarshalJSON(data []byte) error {
	var w rewriteJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	parts, err := partsFromJSON(w.Parts)
	if err != nil {
		return fmt.Errorf("rewrite of %q: %w", w.ID, err)
	}
	*r = Rewrite{w.ID, parts}
	return nil
}

// Empty reports whether e changes nothing.
func (e Edit) Empty() bool { return len(e.Hide) == 0 && len(e.Rewrite) == 0 && len(e.Insert) == 0 }

// Diff returns the edit that turns before into after. IDs must be unique in each, every
// message of after must have one, and messages in both must be in the same order; [Verify]
// and the host ensure that. An inserted message is placed directly before the next kept one.
func Diff(before, after []Message) Edit {
	var e Edit
	find := finder(before)
	next := 0              // the first message of before that after has not passed
	var pending []Message  // inserted, their place not yet known
	place := func(i int) { // inserts the pending messages before before[i]
		anchor := ""
		if i > 0 {
			anchor = before[i-1].ID
		}
		e.Insert = append(e.Insert, plain.Each(pending, func(m Message) Insert { return Insert{After: anchor, Message: m} })...)
		pending = nil
	}
	for i := range after {
		m := &after[i]
		j := find(m.ID)
		if j < 0 {
			pending = append(pending, *m)
			continue
		}
		if next < j && e.Hide == nil {
			// Room for all, if the new messages replace the hidden ones.
			e.Hide = make([]string, 0, max(0, len(before)-len(after))+len(pending))
		}
		for ; next < j; next++ {
			e.Hide = append(e.Hide, before[next].ID)
		}
		place(j)
		next = j + 1
		if !EqualParts(before[j].Parts, m.Parts) {
			e.Rewrite = append(e.Rewrite, Rewrite{m.ID, m.Parts})
		}
	}
	for ; next < len(before); next++ {
		e.Hide = append(e.Hide, before[next].ID)
	}
	place(len(before))
	return e
}

// Apply returns messages with e applied. It fails if e names a message that does not exist or
// inserts one that does. Neither messages nor e is modified; a message that
// e rewrites loses its Source and Tokens, which describe its former parts.
func (e Edit) Apply(messages []Message) ([]Message, error) {
	known := plain.Set(plain.Each(messages, func(x Message) string { return x.ID }))
	hide := make(map[string]bool, len(e.Hide))
	for _, id := range e.Hide {
		if !known[id] {
			return nil, fmt.Errorf("edit hides message %q, which does not exist", id)
		}
		hide[id] = true
	}
	rewrite := make(map[string][]Part, len(e.Rewrite))
	for _, r := range e.Rewrite {
		if !known[r.ID] {
			return nil, fmt.Errorf("edit rewrites message %q, which does not exist", r.ID)
		}
		rewrite[r.ID] = r.Parts
	}
	insert := make(map[string][]Message, len(e.Insert))
	inserted := make(map[string]bool, len(e.Insert))
	for _, in := range e.Insert {
		id := in.Message.ID
		if in.After != "" && !known[in.After] {
			return nil, fmt.Errorf("edit inserts after message %q, which does not exist", in.After)
		}
		if id == "" || known[id] || inserted[id] {
			return nil, fmt.Errorf("edit inserts message %q: want an ID that is not in use", id)
		}
		inserted[id] = true
		insert[in.After] = append(insert[in.After], in.Message)
	}
	out := make([]Message, 0, len(messages)-len(hide)+len(e.Insert))
	out = append(out, insert[""]...)
	for _, m := range messages {
		if !hide[m.ID] {
			if parts, ok := rewrite[m.ID]; ok {
				m.Parts, m.Tokens, m.Source = parts, 0, nil
			}
			out = append(out, m)
		}
		out = append(out, insert[m.ID]...)
	}
	return out, nil
}

// finder returns a function that returns the index of the message with an ID, or -1. Calls
// are usually in the order of the messages; then it only advances. It scans all messages for
// the first few others, and builds an index for more.
func finder(messages []Message) func(id string) int {
	next, detours := 0, 0
	var index map[string]int
	return func(id string) int {
		if id == "" {
			return -1
		}
		if index == nil {
			for j := next; j < len(messages); j++ {
				if messages[j].ID == id {
					next = j + 1
					return j
				}
			}
			if detours++; detours <= maxDetours {
				return slices.IndexFunc(messages[:next], func(m Message) bool { return m.ID == id })
			}
			index = plain.Index(messages, func(m Message) string { return m.ID })
		}
		if j, ok := index[id]; ok {
			return j
		}
		return -1
	}
}

// maxDetours is the number of full scans that cost no more than building an index.
const maxDetours = 8
