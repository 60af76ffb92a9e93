package roo

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Message is one element of api_conversation_history.json. It keeps its JSON: members
// that this package does not know, their order, their spelling and the space between
// them. It is immutable; an edit is a new Message, and a pointer tells which is which.
//
// The zero Message is JavaScript's undefined. It has no members, and is null in JSON.
type Message struct {
	raw     string // "" is undefined
	content string // the value of the member as JSON, "" if absent; likewise ts
	ts      string
	role    string  // decoded, "" if it is no string
	blocks  []Block // not nil exactly if content is an array
	tags    *tags   // may be nil if the message has no tag, not even a falsy one
}

// A Tag is a member of a [Message] that names a summary or a truncation marker.
type Tag uint8

// The tags.
const (
	CondenseID       Tag = iota // condenseId, the name of this summary
	CondenseParent              // condenseParent, the summary that tells what this message said
	TruncationID                // truncationId, the name of this marker
	TruncationParent            // truncationParent, the marker that hides this message
	tagCount
)

// String returns the name of the member, "Tag(n)" if there is none.
func (t Tag) String() string {
	switch t {
	case CondenseID:
		return "condenseId"
	case CondenseParent:
		return "condenseParent"
	case TruncationID:
		return "truncationId"
	case TruncationParent:
		return "truncationParent"
	case tagCount:
	}
	return fmt.Sprintf("Tag(%d)", uint8(t))
}

// tags are the tags of one message. They are shared between messages, never changed.
type tags struct {
	summary     bool // isSummary is truthy
	summaryTrue bool // isSummary is true, which some rules demand
	marker      bool // isTruncationMarker is truthy
	present     [tagCount]bool
	names       [tagCount]string // as nameOf spells them
}

// ParseMessage reads one message from a JSON object.
func ParseMessage(data []byte) (*Message, error) {
	if err := checkSyntax(data); err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	raw := strings.TrimSpace(string(data))
	if kindOf(raw) != kindObject {
		return nil, fmt.Errorf("message: got %s, want an object", describe(raw))
	}
	m := new(Message)
	m.parse(raw)
	return m, nil
}

// parse sets m to the message that raw, a valid JSON object, holds.
func (m *Message) parse(raw string) {
	*m = Message{raw: raw}
	for c := (cursor{s: raw, i: 1}); c.more(); {
		switch key := c.key(); key {
		case "role":
			m.role = ""
			if v := c.value(); kindOf(v) == kindString {
				m.role = unquote(v)
			}
		case "content":
			at := c.i
			m.blocks = nil
			if c.s[at] == '[' {
				m.blocks = make([]Block, 0, 2) // as most messages have
				for c.enter(); c.more(); {
					m.blocks = append(m.blocks, parseBlock(&c))
				}
			} else {
				c.value()
			}
			m.content = c.s[at:c.i]
		case "ts":
			m.ts = c.value()
		case "isSummary":
			v := c.value()
			m.ownTags().summary, m.tags.summaryTrue = truthy(v), v == "true"
		case "isTruncationMarker":
			m.ownTags().marker = truthy(c.value())
		case "condenseId":
			m.ownTags().set(CondenseID, c.value())
		case "condenseParent":
			m.ownTags().set(CondenseParent, c.value())
		case "truncationId":
			m.ownTags().set(TruncationID, c.value())
		case "truncationParent":
			m.ownTags().set(TruncationParent, c.value())
		default:
			c.value()
		}
	}
}

// ownTags returns the tags of a message that is being parsed.
func (m *Message) ownTags() *tags {
	if m.tags == nil {
		m.tags = new(tags)
	}
	return m.tags
}

func (t *tags) set(tag Tag, value string) {
	t.present[tag] = true
	t.names[tag] = nameOf(value)
}

// with returns t with one tag set to a JSON value. T may be nil.
func (t *tags) with(tag Tag, value string) *tags {
	var with tags
	if t != nil {
		with = *t
	}
	with.set(tag, value)
	return &with
}

// without returns t without one tag, nil if there is nothing else. T may be nil.
func (t *tags) without(tag Tag) *tags {
	if t == nil {
		return nil
	}
	without := *t
	without.present[tag], without.names[tag] = false, ""
	if without == (tags{}) {
		return nil
	}
	return &without
}

// JSON returns the message as it was read, byte for byte. The caller owns the copy.
func (m *Message) JSON() json.RawMessage {
	if m.raw == "" {
		return json.RawMessage("null")
	}
	return json.RawMessage(m.raw)
}

// MarshalJSON returns the message as it was read. Note that [json.Marshal] removes the
// space in it and escapes <, > and &; [Encode] keeps every byte.
func (m *Message) MarshalJSON() ([]byte, error) { return m.JSON(), nil }

// UnmarshalJSON makes m the message that data holds.
func (m *Message) UnmarshalJSON(data []byte) error {
	parsed, err := ParseMessage(data)
	if err != nil {
		return err
	}
	*m = *parsed
	return nil
}

// Role returns who speaks, "user" or "assistant" in Roo's files; "" if that is not said.
func (m *Message) Role() string { return m.role }

// Content returns what is said as JSON, a string or an array of blocks in Roo's files;
// nil if the message has no content. The caller owns the copy.
func (m *Message) Content() json.RawMessage {
	if m.content == "" {
		return nil
	}
	return json.RawMessage(m.content)
}

// Blocks returns the content as blocks: the elements of an array, else the text in one
// block, none if there is no content. The caller owns the slice.
func (m *Message) Blocks() []Block {
	switch kindOf(m.content) {
	case kindUndefined, kindNull:
		return nil
	case kindArray:
		return slices.Clone(m.blocks)
	case kindString:
		return []Block{textBlock(m.content)}
	case kindBool, kindNumber, kindObject:
	}
	return []Block{TextBlock(toString(m.content))}
}

// TS returns when the message was written in milliseconds since 1970, and false if it has
// no such number.
func (m *Message) TS() (ms float64, ok bool) {
	if kindOf(m.ts) != kindNumber {
		return math.NaN(), false
	}
	return parseNumber(m.ts), true
}

// IsSummary reports whether the member isSummary is truthy.
func (m *Message) IsSummary() bool { return m.tags != nil && m.tags.summary }

// IsTruncationMarker reports whether the member isTruncationMarker is truthy.
func (m *Message) IsTruncationMarker() bool { return m.tags != nil && m.tags.marker }

// Tag returns the name in a tag, "" if the message does not have it. A name that is no
// string in the file is returned as JSON.
func (m *Message) Tag(t Tag) string {
	name := m.name(t)
	if kindOf(name) == kindString {
		return name[1 : len(name)-1]
	}
	return name
}

// name returns the name in a tag as nameOf spells it, "" if it is falsy.
func (m *Message) name(t Tag) string {
	if m.tags == nil || t >= tagCount {
		return ""
	}
	return m.tags.names[t]
}

// With returns m with a tag set to a name. Only that member of the JSON changes; if it
// was not there, it is added at the end.
func (m *Message) With(t Tag, name string) *Message {
	if t >= tagCount {
		return m
	}
	value := quote(name)
	edited := *m
	edited.raw = setMember(m.object(), t.String(), value)
	edited.tags = m.tags.with(t, value)
	return &edited
}

// Without returns m without a tag, m itself if it does not have it. Only that member of
// the JSON goes, with the comma and the space before it.
func (m *Message) Without(t Tag) *Message {
	if t >= tagCount || !m.has(t) {
		return m
	}
	edited := *m
	edited.raw = removeMember(m.raw, t.String())
	edited.tags = m.tags.without(t)
	return &edited
}

// has reports whether m has a tag, though it may be falsy.
func (m *Message) has(t Tag) bool { return m.tags != nil && m.tags.present[t] }

// withBlocks returns m with blocks for its content.
func (m *Message) withBlocks(blocks []Block) *Message {
	edited := *m
	edited.content, edited.blocks = joinBlocks(blocks), blocks
	edited.raw = setMember(m.object(), "content", edited.content)
	return &edited
}

// withTS returns m with ts set to a JSON value, or without it if that is "".
func (m *Message) withTS(ts string) *Message {
	edited := *m
	edited.ts = ts
	if ts == "" {
		edited.raw = removeMember(m.object(), "ts")
	} else {
		edited.raw = setMember(m.object(), "ts", ts)
	}
	return &edited
}

// object returns the JSON of m as something that members can be added to.
func (m *Message) object() string {
	if m.raw == "" {
		return "{}"
	}
	return m.raw
}
