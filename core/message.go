package core

import (
	"encoding/json"
	"time"
)

// A Role says who speaks.
type Role string

// The roles. A source that answers a tool call in a message of its own (OpenAI) has
// RoleTool; one that answers in the user's next message (Anthropic) has RoleUser.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Kind says what a message stands for.
type Kind string

// The kinds.
const (
	KindOriginal Kind = ""        // it was part of the conversation
	KindSummary  Kind = "summary" // it tells what hidden messages said
	KindMarker   Kind = "marker"  // it says that messages are hidden
)

// A Message is one turn of a conversation.
type Message struct {
	// ID names the message in its conversation. It is unique, is given by the codec or
	// the host, and never changes. A provider leaves it empty on a message of its own.
	ID    string
	Role  Role
	Kind  Kind
	Parts []Part
	// Time is when the message was written; zero if unknown.
	Time time.Time
	// Protected messages are kept verbatim by every provider; the host decides which.
	Protected bool
	// Tokens is the size by the host's counter, framing included; zero if not measured.
	Tokens int
	// Source, if set, is the message as its file had it, byte for byte, and Parts are
	// what it says: whoever changes Parts drops Source. Codecs write it back verbatim.
	// Providers never see it.
	Source json.RawMessage
}

// Equal reports whether m and n are the same message with the same words: ID, role,
// kind and parts. This is what "verbatim" means. Time, Protected, Tokens and Source are
// the host's and not compared.
func (m Message) Equal(n Message) bool {
	return m.ID == n.ID && m.Role == n.Role && m.Kind == n.Kind && EqualParts(m.Parts, n.Parts)
}

// Clone returns a copy of m that shares no slice with it but Source.
func (m Message) Clone() Message {
	m.Parts = cloneParts(m.Parts)
	return m
}

// Blank reports whether m says nothing: it has no part, or only empty texts. The APIs
// of the model vendors refuse such a message.
func (m Message) Blank() bool { return blankParts(m.Parts) }

func blankParts(parts []Part) bool {
	for _, p := range parts {
		if t, ok := p.(Text); !ok || !blank(string(t)) {
			return false
		}
	}
	return true
}

func blank(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\n', '\r':
		default:
			return false
		}
	}
	return true
}
