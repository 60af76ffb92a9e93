package core

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Role is the role of a message's author.
type Role string

// The roles. A source that answers a tool call in a message of its own (OpenAI) has
// RoleTool; one that answers in the user's next message (Anthropic) has RoleUser.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Kind says where a message comes from.
type Kind string

// The kinds.
const (
	KindOriginal Kind = ""        // it was part of the conversation
	KindSummary  Kind = "summary" // it summarizes hidden messages
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
	// Program is set for a message of the user that the agent's program wrote, if the source records that, or the host of a plugin knows it.
	Program bool
	// Time is when the message was written; zero if unknown.
	Time time.Time
	// Protected messages are kept verbatim by every provider; the host decides which.
	Protected bool
	// Tokens is the size by the host's counter, framing included; zero if not measured.
	Tokens int
	// Number is the message's place in the conversation as it was recorded, from 1, by which the agent can recall it; zero if unknown.
	Number int
	// Labels are notes of a program about the message, for providers, who get at most 16 of 200 bytes. The host adds kept: why the message
	// must stay, which is pin, recalled, tools, request, keep_first, keep_users, keep_calls or keep_errors.
	Labels map[string]string
	// Source, if set, is the message in its file, byte for byte. Code that changes Parts must
	// clear Source, because codecs write it back verbatim. Providers never see it.
	Source json.RawMessage
}

// Equal reports whether m and n have the same ID, role, kind and parts. This is the meaning of "verbatim". Time,
// Protected, Tokens, Number, Labels and Source belong to the host and are not compared.
func (m Message) Equal(n Message) bool {
	return m.ID == n.ID && m.Role == n.Role && m.Kind == n.Kind && EqualParts(m.Parts, n.Parts)
}

// Clone returns a copy of m that shares no slice with it but Source.
func (m Message) Clone() Message {
	m.Parts, m.Labels = cloneParts(m.Parts), maps.Clone(m.Labels)
	return m
}

// Blank reports whether m has no part, or only empty texts. Vendors' APIs refuse such a
// message.
func (m Message) Blank() bool { return blankParts(m.Parts) }

func blankParts(parts []Part) bool {
	return !slices.ContainsFunc(parts, func(p Part) bool { t, ok := p.(Text); return !ok || !blank(string(t)) })
}

func blank(s string) bool { return strings.Trim(s, " \t\r\n") == "" }

// A Part is one piece of a message's content. The set is closed: [Text], [ToolCall],
// [ToolResult], [Image], [Reasoning] and [Opaque]. Parts are values: all but ToolResult
// are comparable and immutable; the Content of a ToolResult must not be modified once it is in
// a message.
//
//sumtype:decl
type Part interface{ part() }

// Text is prose, code, or anything else that was written as text. It need not be valid
// UTF-8.
type Text string

// A ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID   string // names the call; the result refers to it
	Name string // of the tool
	Args string // JSON as the model wrote it; usually an object, not necessarily valid
}

// A ToolResult is a tool's answer.
type ToolResult struct {
	CallID  string // the [ToolCall] that it answers
	Content []Part // Text, Image or Opaque; empty if the tool said nothing
	IsError bool
}

// An Image is a picture, inline or by reference.
type Image struct {
	MediaType string // such as "image/png"; empty if unknown
	Data      string // base64 of the file; empty if URL is set
	URL       string
}

// Reasoning is a model's thinking before its answer. Signed or encrypted reasoning is only valid unchanged: it may be
// hidden with its message or left out, never changed.
type Reasoning struct {
	Text      string
	Signature string
	Encrypted string // for reasoning that only the vendor can read
}

// Opaque is content of a kind that the host does not know. It is passed on unchanged.
type Opaque struct {
	Kind string // as the source names it
	JSON string // the whole block
}

func (Text) part()       {}
func (ToolCall) part()   {}
func (ToolResult) part() {}
func (Image) part()      {}
func (Reasoning) part()  {}
func (Opaque) part()     {}

// ContentBytes returns the bytes of the content of parts: texts, names and arguments, images as encoded; no IDs, no
// signatures.
func ContentBytes(parts ...Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case Text:
			n += len(p)
		case ToolCall:
			n += len(p.Name) + len(p.Args)
		case ToolResult:
			n += ContentBytes(p.Content...)
		case Image:
			n += len(p.Data) + len(p.URL)
		case Reasoning:
			n += len(p.Text) + len(p.Encrypted)
		case Opaque:
			n += len(p.JSON)
		}
	}
	return n
}

// EqualParts reports whether a and b hold equal parts in the same order. Nil and empty
// are equal.
func EqualParts(a, b []Part) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true // the same slice: the usual case for a message that was kept
	}
	return slices.EqualFunc(a, b, equalPart)
}

func equalPart(a, b Part) bool {
	ra, ok := a.(ToolResult)
	rb, both := b.(ToolResult)
	if !ok {
		return a == b
	}
	return both && ra.CallID == rb.CallID && ra.IsError == rb.IsError && EqualParts(ra.Content, rb.Content)
}

// cloneParts returns parts that share no slice with the ones given.
func cloneParts(parts []Part) []Part {
	c, _ := copyParts(parts, make([]Part, partsIn(parts)))
	return c
}
