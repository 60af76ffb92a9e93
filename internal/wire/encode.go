package wire

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// The history is nearly all of the traffic, so it is encoded here, and decoded in decode.go, by hand: without
// intermediate structures, and without copying a text more than once. The output equals the generated code's; tests
// compare the two.

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

// sizeStrings returns the size of strings in separate fields; empty ones are left out.
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

// sizePart returns the size of p; 0 for types that are not parts of core.
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

// sizeKind returns the size of the content of that field.
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

// laterPart is the kind of the [core.Opaque] that replaces a part of a kind from a later
// version: the whole part is in its JSON, as a string of base64.
const laterPart = "condense.v1.Part"

// toParts encodes parts for sending. The result shares the bytes of parts.
func toParts(parts []core.Part) ([]*condensepb.Part, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	out := make([]*condensepb.Part, len(parts))
	for i, p := range parts {
		w, err := toPart(p)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		out[i] = w
	}
	return out, nil
}

func toPart(p core.Part) (*condensepb.Part, error) {
	w := &condensepb.Part{}
	switch p := p.(type) {
	case core.Text:
		w.Kind = &condensepb.Part_Text{Text: bytesOf(string(p))}
	case core.ToolCall:
		w.Kind = &condensepb.Part_ToolCall{ToolCall: &condensepb.ToolCall{Id: name(p.ID), Name: name(p.Name), Args: bytesOf(p.Args)}}
	case core.ToolResult:
		content, err := toParts(p.Content)
		if err != nil {
			return nil, err
		}
		w.Kind = &condensepb.Part_ToolResult{ToolResult: &condensepb.ToolResult{CallId: name(p.CallID), Content: content, IsError: p.IsError}}
	case core.Image:
		w.Kind = &condensepb.Part_Image{Image: &condensepb.Image{MediaType: name(p.MediaType), Data: bytesOf(p.Data), Url: bytesOf(p.URL)}}
	case core.Reasoning:
		w.Kind = &condensepb.Part_Reasoning{Reasoning: &condensepb.Reasoning{Text: bytesOf(p.Text), Signature: bytesOf(p.Signature), Encrypted: bytesOf(p.Encrypted)}}
	case core.Opaque:
		if p.Kind == laterPart {
			if raw, err := decodeLater(p.JSON); err == nil {
				return raw, nil
			}
		}
		w.Kind = &condensepb.Part_Opaque{Opaque: &condensepb.Opaque{Kind: name(p.Kind), Json: bytesOf(p.JSON)}}
	default:
		return nil, fmt.Errorf("%T is not a part", p)
	}
	return w, nil
}

// fromParts returns received parts. The result shares the bytes of parts.
func fromParts(parts []*condensepb.Part) []core.Part {
	if len(parts) == 0 {
		return nil
	}
	out := make([]core.Part, len(parts))
	for i, w := range parts {
		out[i] = fromPart(w)
	}
	return out
}

func fromPart(w *condensepb.Part) core.Part {
	switch k := w.GetKind().(type) {
	case *condensepb.Part_Text:
		return core.Text(stringOf(k.Text))
	case *condensepb.Part_ToolCall:
		c := k.ToolCall
		return core.ToolCall{ID: unname(c.GetId()), Name: unname(c.GetName()), Args: stringOf(c.GetArgs())}
	case *condensepb.Part_ToolResult:
		r := k.ToolResult
		return core.ToolResult{CallID: unname(r.GetCallId()), Content: fromParts(r.GetContent()), IsError: r.GetIsError()}
	case *condensepb.Part_Image:
		m := k.Image
		return core.Image{MediaType: unname(m.GetMediaType()), Data: stringOf(m.GetData()), URL: stringOf(m.GetUrl())}
	case *condensepb.Part_Reasoning:
		r := k.Reasoning
		return core.Reasoning{Text: stringOf(r.GetText()), Signature: stringOf(r.GetSignature()), Encrypted: stringOf(r.GetEncrypted())}
	case *condensepb.Part_Opaque:
		o := k.Opaque
		return core.Opaque{Kind: unname(o.GetKind()), JSON: stringOf(o.GetJson())}
	default:
		return encodeLater(w.ProtoReflect().GetUnknown())
	}
}

// encodeLater encodes a part of a kind that this version does not know.
func encodeLater(raw []byte) core.Part {
	return core.Opaque{Kind: laterPart, JSON: strconv.Quote(base64.StdEncoding.EncodeToString(raw))}
}

func decodeLater(json string) (*condensepb.Part, error) {
	s, err := strconv.Unquote(json)
	if err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	w := &condensepb.Part{}
	return w, proto.Unmarshal(raw, w)
}

// bytesOf returns the bytes of s without copying them, because a history may have 50 MB. They
// are only encoded, never written to.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // read-only, see above
}

// stringOf returns b as a string without copying it. Only for bytes that a decoder allocated
// and that have no other user.
func stringOf(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // b is never written to, see above
}
