package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// A Recalled is content found by its handle, and where it was found.
type Recalled struct {
	// Part is the content: a part of Message, or of one of its tool results.
	Part core.Part
	// Message contains it, in its original form or as condensation RewrittenBy rewrote it.
	Message core.Message
	// InsertedBy is the ID of the condensation that inserted the message; empty if it was
	// appended. RewrittenBy is empty if the message had the content when it was recorded.
	InsertedBy, RewrittenBy string
	// Dropped is set if a rewind dropped the message, or the condensation that rewrote it.
	Dropped bool
	// InView is set if the content is in the view, in this message.
	InView bool
}

// Recall finds content by its handle, [core.Handle], in everything that the conversation
// ever contained: hidden or not, rewritten since, inserted by condensations that are active
// or undone, dropped by a rewind. The results are in the order of the conversation, with the
// recorded content of a message before its rewrites, and dropped content last. Equal content
// in several places has the same handle, so there may be several results. Without any the
// result is nil. The cost is linear in the bytes of the conversation.
func (j *Journal) Recall(handle string) []Recalled {
	var found []Recalled
	look := func(n *node, parts []core.Part, by *applied, dropped bool) bool {
		for h, p := range Handles(parts) {
			if h != handle {
				continue
			}
			r := Recalled{Part: p, Message: n.message, Dropped: dropped, InView: n.shown && !n.dropped && holds(n.parts(), handle)}
			if n.by != nil {
				r.InsertedBy = n.by.ID
			}
			if by != nil {
				r.RewrittenBy = by.ID
				r.Message.Parts, r.Message.Source, r.Message.Tokens = parts, nil, 0
			}
			found = append(found, r)
			return true
		}
		return false
	}
	for n := j.first; n != nil; n = n.next {
		if look(n, n.message.Parts, nil, false) {
			continue
		}
		for _, r := range n.rewrites {
			if look(n, r.parts, r.by, false) {
				break
			}
		}
	}
	for _, r := range j.log {
		if n := r.message; n != nil && n.dropped {
			look(n, n.message.Parts, nil, true)
		}
		if a := r.condensation; a != nil && a.dropped {
			for _, n := range a.inserts {
				look(n, n.message.Parts, nil, true)
			}
			for i, n := range a.rewrites {
				look(n, a.Edit.Rewrite[i].Parts, a, true)
			}
		}
	}
	return found
}

// parts returns the parts of n in the view; nil if it is not in the view.
func (n *node) parts() []core.Part {
	if r := n.rewritten(); r != nil {
		return r.parts
	}
	return n.message.Parts
}

func holds(parts []core.Part, handle string) bool {
	for h := range Handles(parts) {
		if h == handle {
			return true
		}
	}
	return false
}

// Handles yields the handle of each part and, after that of a tool result, the handles of its
// content.
func Handles(parts []core.Part) iter.Seq2[string, core.Part] {
	return func(yield func(string, core.Part) bool) {
		for _, p := range parts {
			if !yield(core.Handle(p), p) {
				return
			}
			if r, ok := p.(core.ToolResult); ok {
				for h, c := range Handles(r.Content) {
					if !yield(h, c) {
						return
					}
				}
			}
		}
	}
}

// handleForm matches a handle as a separate word, or at the end of a word such as
// #0123456789 or condense:0123456789.
var handleForm = plain.Pattern(`(?:^|[^0-9A-Za-z])([0-9a-f]{10})(?:[^0-9A-Za-z]|$)`)

// ParseHandle returns the handle in text, which may be the stub of a provider. It reports
// false unless there is exactly one.
func ParseHandle(text string) (string, bool) {
	found := ""
	for rest := text; ; {
		at := handleForm().FindStringSubmatchIndex(rest)
		if at == nil {
			return found, found != ""
		}
		h := rest[at[2]:at[3]]
		if found != "" && found != h {
			return "", false
		}
		found, rest = h, rest[at[3]:]
	}
}

// An originalLine is a line of a file with originals.
type originalLine struct {
	// Handles are the handles of the parts of the message and of the content of its tool results.
	Handles []string     `json:"handles"`
	Message core.Message `json:"message"`
}

// originalStart is how every line of originals begins.
const originalStart = `{"handles":`

// IsOriginals reports whether data begins as [EncodeOriginals] begins.
func IsOriginals(data []byte) bool { return bytes.HasPrefix(data, []byte(originalStart)) }

// EncodeOriginals writes messages as JSON, one a line, each with the handles of its content,
// by which an agent finds content that a condensation removed:
//
//	{"handles":["0123456789"],"message":{…}}     see [core.Message.MarshalJSON]
//
// Source is left out: it repeats Parts.
func EncodeOriginals(w io.Writer, messages []core.Message) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, m := range messages {
		m.Source = nil
		o := originalLine{Handles: []string{}, Message: m}
		for h := range Handles(m.Parts) {
			if !slices.Contains(o.Handles, h) {
				o.Handles = append(o.Handles, h)
			}
		}
		if err := e.Encode(o); err != nil {
			return fmt.Errorf("message %q: %w", m.ID, err)
		}
	}
	return nil
}

// DecodeOriginals reads the output of [EncodeOriginals]. The error names the line.
func DecodeOriginals(r io.Reader) ([]core.Message, error) {
	in := bufio.NewReader(r)
	var messages []core.Message
	for line := 1; ; line++ {
		data, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if len(data) == 0 {
			return messages, nil
		}
		var o originalLine
		if !IsOriginals(data) {
			return nil, fmt.Errorf(`line %d: found %q; want {"handles":…,"message":…}`, line, quote(bytes.TrimSpace(data)))
		}
		if err := unmarshal(data, &o); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		messages = append(messages, o.Message)
	}
}

// Protect sets or clears the protection of messages by their IDs: condensations keep a protected
// message verbatim. It overrides [core.Message.Protected] as recorded. It has no effect on
// earlier condensations: a hidden message stays hidden. Rewinds and undos do not change it.
// It is an error if a message is not part of the conversation; then nothing changes. The
// cost is linear in the timeline, however many messages are named.
func (j *Journal) Protect(on bool, ids ...string) error {
	named, records := make([]*node, len(ids)), make([]record, len(ids))
	for i, id := range ids {
		n, err := j.inTimeline("protect", id)
		if err != nil {
			return err
		}
		named[i], records[i] = n, protection(on, id)
	}
	if len(ids) == 0 {
		return nil
	}
	if err := j.keep(true, records...); err != nil {
		return err
	}
	for _, n := range named {
		j.protect(n, on)
	}
	j.refresh()
	return nil
}

// inTimeline returns a message for what is to be done with it.
func (j *Journal) inTimeline(what, id string) (*node, error) {
	n := j.nodes[id]
	switch {
	case n == nil:
		return nil, fmt.Errorf("%s: there is no message %q", what, id)
	case n.dropped:
		return nil, fmt.Errorf("%s: message %q was dropped by an earlier rewind", what, id)
	case !n.inForce():
		return nil, fmt.Errorf("%s: message %q was inserted by condensation %q, which is undone", what, id, n.by.ID)
	}
	return n, nil
}

func (j *Journal) protect(n *node, on bool) {
	j.log = append(j.log, protection(on, n.message.ID))
	n.keep = &on
}

func protection(on bool, id string) record {
	if on {
		return record{protect: id}
	}
	return record{unprotect: id}
}
