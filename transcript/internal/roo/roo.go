// Package roo reads and writes the conversations of Roo-Code and its relatives (Zoo, Kilo,
// Cline).
//
// They keep a conversation in api_conversation_history.json: an array of messages in
// Anthropic's shape, each with its time in ts, and with tags that say which messages are not
// sent:
//
//	isSummary, condenseId             the message is a summary, and its name
//	condenseParent                    the summary that replaces this message
//	isTruncationMarker, truncationId  the message says that others are hidden, and its name
//	truncationParent                  the marker that hides this message
//
// The system prompt is not in the file.
//
// Tags are read as condensations such that the view equals the messages that Roo sends, and a journal is written with
// all its messages and with tags that make Roo send the view. Data that tags cannot express is in a field "condense",
// which Roo preserves: see note. If the two disagree, because Roo continued the conversation, Roo's tags are right. A
// file of Cline's without times or tags looks like Anthropic's; both formats read it alike.
package roo

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/request"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// none is not an index.
const none = -1

// Codec is the format.
var Codec = codec.Codec{
	Name:    "roo",
	Doc:     "Roo-Code, Zoo, Kilo, Cline: api_conversation_history.json with Roo's tags, nothing lost",
	Vendor:  "", // it holds messages of models of any vendor
	Detect:  detect,
	Read:    read,
	Write:   func(f *codec.File, out *codec.Output) error { return write(f, out, true) },
	Convert: func(f *codec.File, out *codec.Output) error { return write(f, out, false) },
}

// detect looks for messages with a time or a tag. OpenAI's have neither, but other
// tools may give them the former.
func detect(data []byte) bool {
	at := rawjson.SkipSpace(data, 0)
	if !rawjson.IsArray(data[at:]) {
		return false
	}
	found, seen := false, 0
	for m := range rawjson.Elements(data[at:]) {
		if seen++; seen > 20 {
			break
		}
		says := false
		for k, v := range rawjson.Fields(m) {
			switch string(k) {
			case "content", "encrypted_content", "summary":
				says = true
			case "ts":
				n := rawjson.Int(v)
				found = found || 1e12 <= n && n < 1e14 // milliseconds, this century and long after
			case "isSummary", "condenseId", "condenseParent", "isTruncationMarker", "truncationId", "truncationParent":
				found = true
			case "tool_calls", "tool_call_id", "function_call":
				return false
			case "role":
				if s := rawjson.Text(v); s != "user" && s != "assistant" {
					return false
				}
			default:
				if slices.Contains(request.ForeignFields, string(k)) {
					return false
				}
			}
		}
		if !says {
			return false
		}
	}
	return found
}

// A message is a message of a file of Roo's.
type message struct {
	core.Message // as the note has it
	raw          []byte
	tags         tags
	note         note
	// Roo's fields, without the note:
	role   string      // empty if it is not a string
	blocks bool        // whether the content is an array
	said   []core.Part // the content
}

// aside reports whether m only describes the conversation and is not part of it.
func (m *message) aside() bool { return m.note.Carrier || m.note.CopyOf != "" }

func read(data []byte, f *codec.File) error {
	if err := syntax.Validate(data); err != nil {
		return err
	}
	at := rawjson.SkipSpace(data, 0)
	if !rawjson.IsArray(data[at:]) {
		return &syntax.Error{Offset: at, Found: syntax.Describe(data[at:rawjson.SkipValue(data, at)]), Want: "an array of messages"}
	}
	var file []message
	names := naming{taken: codec.IDs{}}
	for raw := range rawjson.Elements(data[at:]) {
		m, err := decode(raw)
		if err != nil {
			return err.In(data, raw, len(file)+1)
		}
		if !m.aside() {
			m.ID = names.next(m.ownID())
		}
		file = append(file, m)
	}
	r := newConversation(file)
	r.adopt(&names)
	j, warnings, err := r.journal()
	if err != nil {
		return err
	}
	f.Journal = j
	f.Warnings = append(f.Warnings, warnings...)
	settle(f, data, at, file)
	return nil
}

// naming makes the IDs of messages: their own, or their number among the messages that have none. An inserted message
// has its own ID, so it does not change the numbers of the others.
type naming struct {
	taken codec.IDs
	n     int
}

func (r *naming) next(own string) string {
	if own != "" {
		return r.taken.Next(0, own)
	}
	r.n++
	return r.taken.Next(r.n, "")
}

// ownID returns the ID that the file has for m, if any.
func (m *message) ownID() string {
	switch {
	case m.note.ID != "":
		return m.note.ID
	case m.tags.summary != "":
		return plainName(m.tags.condenseID)
	case m.tags.marker:
		return plainName(m.tags.truncationID)
	}
	return ""
}

// settle records where the messages are in data.
func settle(f *codec.File, data []byte, at int, file []message) {
	sep := []byte{','}
	sep = append(sep, data[at+1:rawjson.SkipSpace(data, at+1)]...)
	var places []codec.Placement
	for i := range file {
		start := rawjson.Offset(data, file[i].raw)
		if i == 1 {
			sep = data[rawjson.Offset(data, file[0].raw)+len(file[0].raw) : start]
		}
		if !file[i].aside() {
			places = append(places, codec.Placement{ID: file[i].ID, Start: start, End: start + len(file[i].raw)})
		}
	}
	f.Settle(data, places, sep)
}

func decode(raw []byte) (message, *syntax.Error) {
	m := message{raw: raw}
	if !rawjson.IsObject(raw) {
		return m, &syntax.Error{Found: syntax.Describe(raw), Want: "an object with role and content"}
	}
	var role, content, kind []byte
	for k, v := range rawjson.Fields(raw) {
		switch string(k) {
		case "role":
			role = v
		case "content":
			content = v
		case "type":
			kind = v
		case "ts":
			m.Time = rawjson.UnixMilli(v)
		case "condense":
			m.note = note{}
			if rawjson.IsObject(v) && json.Unmarshal(v, &m.note) != nil {
				m.note = note{}
			}
		default:
			m.tags.see(string(k), v)
		}
	}
	reasoning := rawjson.Text(kind) == "reasoning"
	m.role, m.blocks = rawjson.Text(role), rawjson.IsArray(content)
	switch s := m.role; {
	case s == "user" || s == "assistant":
		m.Role = core.Role(s)
	case reasoning && role == nil:
		m.Role = core.RoleAssistant
	default:
		return m, syntax.WrongRole(raw, role, "user or assistant")
	}
	parts, err := blocks.Decode(content)
	if err != nil {
		err.Offset += rawjson.Offset(raw, content)
		return m, err
	}
	m.said = parts
	if reasoning {
		parts = append([]core.Part{decodeReasoning(raw)}, parts...)
	}
	m.Parts = parts
	m.Source = slices.Clip(raw)
	switch {
	case m.tags.summary != "":
		m.Kind = core.KindSummary
	case m.tags.marker:
		m.Kind = core.KindMarker
	}
	m.note.apply(&m.Message)
	return m, nil
}

// decodeReasoning decodes the reasoning of an OpenAI model, which Roo stores as a message of
// its own.
func decodeReasoning(raw []byte) core.Part {
	p := core.Reasoning{Text: rawjson.Text(rawjson.Field(raw, "text")), Encrypted: rawjson.Text(rawjson.Field(raw, "encrypted_content"))}
	if p.Text == "" {
		all := plain.Each(slices.Collect(rawjson.Elements(rawjson.Field(raw, "summary"))),
			func(block []byte) string { return rawjson.Text(rawjson.Field(block, "text")) })
		p.Text = strings.Join(all, "\n\n")
	}
	return p
}

// condensation returns an empty condensation of Roo's own.
func condensation(id string) history.Condensation {
	return history.Condensation{ID: id, Provider: "roo"}
}

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
	c.Edit.Hide = append(c.Edit.Hide, plain.Only(r.Edit.Hide, func(id string) bool { return known[id] })...)
	c.Edit.Rewrite = append(c.Edit.Rewrite, plain.Only(r.Edit.Rewrite, func(w core.Rewrite) bool { return known[w.ID] })...)
	c.Edit.Insert = append(c.Edit.Insert, plain.Only(r.Edit.Insert, func(in core.Insert) bool { return known[in.Message.ID] })...)
	return c, !c.Edit.Empty()
}
