// Package byhand encodes and decodes the part of the protocol that is large, or that a guest in WebAssembly needs: without
// intermediate structures, without copying a text more than once, and without the runtime of protobuf and gRPC. Its output equals
// that of the generated code; tests compare the two.
package byhand

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/core"
)

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
	numMessageNumber    = 8
	numMessageProgram   = 9
	numMessageLabels    = 10

	numPartText      = 1
	numPartCall      = 2
	numPartResult    = 3
	numPartImage     = 4
	numPartReasoning = 5
	numPartOpaque    = 6

	numResultContent = 2
	numResultError   = 3
)

// usual is how many bytes the length of a message or a part takes in most cases.
const usual = 2

// begin begins the field num, whose length, of that many bytes in most cases, end writes.
func begin(b []byte, num protowire.Number, width int) (_ []byte, at int) {
	b = append(append(b, byte(num<<3)|byte(protowire.BytesType)), make([]byte, width)...)
	return b, len(b)
}

// end ends the field whose content is b[at:], which is moved if its length takes more or less bytes than begin left.
func end(b []byte, at, width int) []byte {
	n := len(b) - at
	if width == 2 && n>>7 > 0 && n>>14 == 0 {
		b[at-2], b[at-1] = byte(n)|0x80, byte(n>>7)
		return b
	}
	var length [binary.MaxVarintLen64]byte
	return slices.Replace(b, at-width, at, protowire.AppendVarint(length[:0], uint64(n))...)
}

func appendBytesTag(b []byte, num protowire.Number, n int) []byte {
	return protowire.AppendVarint(append(b, byte(num<<3)|byte(protowire.BytesType)), uint64(n))
}

// AppendStrings writes strings into the fields from 1 on.
func AppendStrings(b []byte, fields ...string) []byte {
	for i, s := range fields {
		if s != "" {
			b = append(appendBytesTag(b, protowire.Number(i+1), len(s)), s...)
		}
	}
	return b
}

// AppendFloat writes v into the field num.
func AppendFloat(b []byte, num protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(append(b, byte(num<<3)|byte(protowire.Fixed64Type)), math.Float64bits(v))
}

// AppendNumber writes v into the field num.
func AppendNumber(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(append(b, byte(num<<3)|byte(protowire.VarintType)), v)
}

// numbersOf returns the fields of m from numMessageProtected on.
func numbersOf(m *core.Message) [4]uint64 {
	n := [...]uint64{0, uint64(m.Tokens), uint64(m.Number), 0}
	if m.Protected {
		n[0] = 1
	}
	if m.Program {
		n[3] = 1
	}
	return n
}

func appendMessage(b []byte, m *core.Message) []byte {
	b = AppendStrings(b, Name(m.ID), Name(string(m.Role)), Name(string(m.Kind)))
	for _, p := range m.Parts {
		b = appendPart(b, numMessageParts, p)
	}
	if !m.Time.IsZero() {
		b = AppendNumber(b, numMessageTime, uint64(m.Time.UnixMilli()))
	}
	for i, v := range numbersOf(m) {
		if v != 0 {
			b = AppendNumber(b, protowire.Number(numMessageProtected+i), v)
		}
	}
	if len(m.Labels) == 0 {
		return b
	}
	for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
		b = AppendBytes(b, numMessageLabels, AppendStrings(nil, Name(k), Name(m.Labels[k])))
	}
	return b
}

// appendPart writes p into the field num.
func appendPart(b []byte, num protowire.Number, p core.Part) []byte {
	b, at := begin(b, num, usual)
	return end(AppendPart(b, p), at, usual)
}

// AppendPart writes p.
func AppendPart(b []byte, p core.Part) []byte {
	if t, ok := p.(core.Text); ok {
		return append(appendBytesTag(b, numPartText, len(t)), t...)
	}
	if raw, ok := later(p); ok {
		return append(b, raw...)
	}
	num, texts := kindOf(p)
	if num == 0 {
		return b
	}
	b, at := begin(b, num, usual)
	b = AppendStrings(b, texts[:]...)
	if r, ok := p.(core.ToolResult); ok {
		for _, c := range r.Content {
			b = appendPart(b, numResultContent, c)
		}
		if r.IsError {
			b = AppendNumber(b, numResultError, 1)
		}
	}
	return end(b, at, usual)
}

// kindOf returns the field of a part, other than a text, that p is written to, and the texts in its fields from 1 on; 0 if p is no part.
func kindOf(p core.Part) (num protowire.Number, texts [3]string) {
	switch p := p.(type) {
	case core.ToolCall:
		return numPartCall, [...]string{Name(p.ID), Name(p.Name), p.Args}
	case core.ToolResult:
		return numPartResult, [...]string{Name(p.CallID), "", ""}
	case core.Image:
		return numPartImage, [...]string{Name(p.MediaType), p.Data, p.URL}
	case core.Reasoning:
		return numPartReasoning, [...]string{p.Text, p.Signature, p.Encrypted}
	case core.Opaque:
		return numPartOpaque, [...]string{Name(p.Kind), p.JSON, ""}
	case core.Text: // has no fields of its own
	}
	return 0, texts
}

// AppendRun writes an envelope of the first messages, as many as have most bytes but at least one, and returns how many.
func AppendRun(b []byte, messages []core.Message, most int) (_ []byte, n int) {
	const width = 3
	b, at := begin(b, numRequestMessages, width)
	for n < len(messages) {
		before := len(b)
		if n > 0 && before-at+core.ContentBytes(messages[n].Parts...) > most {
			break
		}
		var from int
		b, from = begin(b, numMessages, usual)
		if b = end(appendMessage(b, &messages[n]), from, usual); n > 0 && len(b)-at > most {
			b = b[:before]
			break
		}
		n++
	}
	return end(b, at, width), n
}

// LaterPart is the kind of the [core.Opaque] that replaces a part of a kind from a later
// version: the whole part is in its JSON, as a string of base64.
const LaterPart = "condense.v1.Part"

// EncodeLater encodes a part of a kind that this version does not know.
func EncodeLater(raw []byte) core.Part {
	return core.Opaque{Kind: LaterPart, JSON: strconv.Quote(base64.StdEncoding.EncodeToString(raw))}
}

// later returns the encoding of p if it is of a kind from a later version.
func later(p core.Part) ([]byte, bool) {
	o, ok := p.(core.Opaque)
	if !ok || o.Kind != LaterPart {
		return nil, false
	}
	raw, err := DecodeLater(o.JSON)
	return raw, err == nil
}

// DecodeLater returns the encoding of the part that [EncodeLater] wrote.
func DecodeLater(json string) ([]byte, error) {
	s, err := strconv.Unquote(json)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(s)
}

// Escape is the prefix of a name that cannot be sent verbatim. No real name has it.
const Escape = "\ufffdhex:"

// Name encodes s for sending: a string of protobuf is UTF-8. [Unname] is its inverse.
func Name(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, Escape) {
		return s
	}
	return Escape + hex.EncodeToString([]byte(s))
}

// Unname returns the name that was sent as s.
func Unname(s string) string {
	if rest, ok := strings.CutPrefix(s, Escape); ok {
		if b, err := hex.DecodeString(rest); err == nil {
			return string(b)
		}
	}
	return s
}

// Bytes returns the bytes of s without copying them, because a history may have 50 MB. They
// are only encoded, never written to.
func Bytes(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // read-only, see above
}

// String returns b as a string without copying it. Only for bytes that a decoder allocated
// and that have no other user.
func String(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // b is never written to, see above
}
