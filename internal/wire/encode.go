package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/core"
)

// The history is nearly all that ever crosses the wire, so it is written, and read in
// decode.go, by hand: no structure is built only to be turned into another, and no text
// is copied more than once. What is written is what the generated code would write, field
// numbers and all; tests hold one against the other.

// The numbers of the fields concerned, from condense.proto.
const (
	numRequestMessages = 2

	numMessages = 1

	numMessageID        = 1
	numMessageRole      = 2
	numMessageKind      = 3
	numMessageParts     = 4
	numMessageTime      = 5
	numMessageProtected = 6
	numMessageTokens    = 7

	numPartText      = 1
	numPartCall      = 2
	numPartResult    = 3
	numPartImage     = 4
	numPartReasoning = 5
	numPartOpaque    = 6

	numResultContent = 2
	numResultError   = 3
)

// sizeField returns the size of a field that holds n bytes. No number here needs more than
// one byte for its tag.
func sizeField(n int) int { return 1 + protowire.SizeBytes(n) }

// sizeStrings returns the size of strings in fields of their own; empty ones are left out.
func sizeStrings(fields ...string) int {
	n := 0
	for _, s := range fields {
		if s != "" {
			n += sizeField(len(s))
		}
	}
	return n
}

func appendBytesTag(b []byte, num protowire.Number, n int) []byte {
	return protowire.AppendVarint(append(b, byte(num<<3)|byte(protowire.BytesType)), uint64(n))
}

// appendStrings writes strings into the fields from 1 on.
func appendStrings(b []byte, fields ...string) []byte {
	for i, s := range fields {
		if s != "" {
			b = append(appendBytesTag(b, protowire.Number(i+1), len(s)), s...)
		}
	}
	return b
}

func appendNumber(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(append(b, byte(num<<3)|byte(protowire.VarintType)), v)
}

func sizeMessage(m *core.Message) int {
	n := sizeStrings(name(m.ID), name(string(m.Role)), name(string(m.Kind)))
	for _, p := range m.Parts {
		n += sizeField(sizePart(p))
	}
	if !m.Time.IsZero() {
		n += 1 + protowire.SizeVarint(uint64(m.Time.UnixMilli()))
	}
	if m.Protected {
		n += 2
	}
	if m.Tokens != 0 {
		n += 1 + protowire.SizeVarint(uint64(m.Tokens))
	}
	return n
}

func appendMessage(b []byte, m *core.Message) []byte {
	b = appendStrings(b, name(m.ID), name(string(m.Role)), name(string(m.Kind)))
	for _, p := range m.Parts {
		b = appendPart(appendBytesTag(b, numMessageParts, sizePart(p)), p)
	}
	if !m.Time.IsZero() {
		b = appendNumber(b, numMessageTime, uint64(m.Time.UnixMilli()))
	}
	if m.Protected {
		b = appendNumber(b, numMessageProtected, 1)
	}
	if m.Tokens != 0 {
		b = appendNumber(b, numMessageTokens, uint64(m.Tokens))
	}
	return b
}

// sizePart returns the size of p. What is no part of core, as a value, has none.
func sizePart(p core.Part) int {
	if t, ok := p.(core.Text); ok {
		return sizeField(len(t))
	}
	if _, ok := kindNumber(p); !ok {
		return 0
	}
	return sizeField(sizeKind(p))
}

func appendPart(b []byte, p core.Part) []byte {
	if t, ok := p.(core.Text); ok {
		return append(appendBytesTag(b, numPartText, len(t)), t...)
	}
	num, ok := kindNumber(p)
	if !ok {
		return b
	}
	b = appendBytesTag(b, num, sizeKind(p))
	switch p := p.(type) {
	case core.ToolCall:
		return appendStrings(b, name(p.ID), name(p.Name), p.Args)
	case core.ToolResult:
		b = appendStrings(b, name(p.CallID))
		for _, c := range p.Content {
			b = appendPart(appendBytesTag(b, numResultContent, sizePart(c)), c)
		}
		if p.IsError {
			b = appendNumber(b, numResultError, 1)
		}
		return b
	case core.Image:
		return appendStrings(b, name(p.MediaType), p.Data, p.URL)
	case core.Reasoning:
		return appendStrings(b, p.Text, p.Signature, p.Encrypted)
	case core.Opaque:
		return appendStrings(b, name(p.Kind), p.JSON)
	default:
		return b // a text
	}
}

// kindNumber returns the field of a part, other than a text, that p is written to.
func kindNumber(p core.Part) (protowire.Number, bool) {
	switch p.(type) {
	case core.ToolCall:
		return numPartCall, true
	case core.ToolResult:
		return numPartResult, true
	case core.Image:
		return numPartImage, true
	case core.Reasoning:
		return numPartReasoning, true
	case core.Opaque:
		return numPartOpaque, true
	default:
		return 0, false
	}
}

// sizeKind returns the size of what stands in that field.
func sizeKind(p core.Part) int {
	switch p := p.(type) {
	case core.ToolCall:
		return sizeStrings(name(p.ID), name(p.Name), p.Args)
	case core.ToolResult:
		n := sizeStrings(name(p.CallID))
		for _, c := range p.Content {
			n += sizeField(sizePart(c))
		}
		if p.IsError {
			n += 2
		}
		return n
	case core.Image:
		return sizeStrings(name(p.MediaType), p.Data, p.URL)
	case core.Reasoning:
		return sizeStrings(p.Text, p.Signature, p.Encrypted)
	case core.Opaque:
		return sizeStrings(name(p.Kind), p.JSON)
	default:
		return 0
	}
}

// appendRun writes an envelope of messages; body is the sum of their fields' sizes.
func appendRun(b []byte, messages []core.Message, body int) []byte {
	b = appendBytesTag(b, numRequestMessages, body)
	for i := range messages {
		b = appendMessage(appendBytesTag(b, numMessages, sizeMessage(&messages[i])), &messages[i])
	}
	return b
}
