package byhand

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/core"
)

// errKind means that a field is not of the type that the protocol gives it.
var errKind = errors.New("a field of another type")

// A Field is one field of an encoding.
type Field struct {
	Num   protowire.Number
	Type  protowire.Type
	Value []byte // of a field of bytes
	N     uint64 // of a number; the bits of one with a decimal point
}

// take sets f to the first field of data and returns the rest. Nearly all fields have a tag of one byte and a length of one or two,
// for which calls of other functions cost more than the work.
func (f *Field) take(data []byte) ([]byte, error) {
	if tag := data[0]; tag&7 == byte(protowire.BytesType) && tag < 0x80 && tag >= 8 && len(data) > 2 {
		size, head := int(data[1]), 2
		if size >= 0x80 && data[2] < 0x80 {
			size, head = size&0x7f|int(data[2])<<7, 3
		}
		if data[1] < 0x80 || head == 3 {
			if end := head + size; end <= len(data) {
				f.Num, f.Type, f.Value, f.N = protowire.Number(tag>>3), protowire.BytesType, data[head:end:end], 0
				return data[end:], nil
			}
		}
	}
	num, typ, n := protowire.ConsumeTag(data)
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	*f = Field{Num: num, Type: typ}
	var m int
	switch typ { //nolint:exhaustive // other types are skipped
	case protowire.BytesType:
		f.Value, m = protowire.ConsumeBytes(data[n:])
	case protowire.VarintType:
		f.N, m = protowire.ConsumeVarint(data[n:])
	case protowire.Fixed64Type:
		f.N, m = protowire.ConsumeFixed64(data[n:])
	default:
		m = protowire.ConsumeFieldValue(num, typ, data[n:])
	}
	if m < 0 {
		return nil, protowire.ParseError(m)
	}
	return data[n+m:], nil
}

// Text returns the value of f, which must not be changed afterwards.
func (f *Field) Text() (string, error) {
	if f.Type != protowire.BytesType {
		return "", errKind
	}
	return String(f.Value), nil
}

// DecodeRun appends the messages of the run body to messages. They share its bytes.
func DecodeRun(body []byte, messages []core.Message) ([]core.Message, error) {
	d := decoder{}
	var f Field
	for len(body) > 0 {
		rest, err := f.take(body)
		if err != nil {
			return nil, err
		}
		body = rest
		if f.Num != numMessages {
			continue
		}
		if f.Type != protowire.BytesType {
			return nil, errKind
		}
		m, err := d.message(f.Value)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", len(messages), err)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// A decoder allocates the lists of parts of many messages together, and those of the contents of results.
type decoder struct {
	slab, contents []core.Part
}

func (d *decoder) message(data []byte) (m core.Message, err error) {
	var f Field
	start := len(d.slab)
	for len(data) > 0 {
		if data, err = f.take(data); err != nil {
			return m, err
		}
		var s string
		switch int(f.Num) {
		case numMessageID:
			s, err = f.Text()
			m.ID = Unname(s)
		case numMessageRole:
			s, err = f.Text()
			m.Role = core.Role(Unname(s))
		case numMessageKind:
			s, err = f.Text()
			m.Kind = core.Kind(Unname(s))
		case numMessageParts:
			var p core.Part
			if f.Type != protowire.BytesType {
				return m, errKind
			}
			if p, err = d.part(f.Value, true); err != nil {
				return m, err
			}
			d.slab = append(d.slab, p)
		case numMessageTime:
			m.Time = time.UnixMilli(int64(f.N)).UTC()
		case numMessageProtected:
			m.Protected = f.N != 0
		case numMessageTokens:
			m.Tokens = int(f.N)
		case numMessageLabels:
			var label [3]string
			label, err = decodeStrings(f.Value)
			if m.Labels == nil {
				m.Labels = map[string]string{}
			}
			m.Labels[Unname(label[0])] = Unname(label[1])
		case numMessageNumber:
			m.Number = int(f.N)
		case numMessageProgram:
			m.Program = f.N != 0
		}
		if err != nil {
			return m, err
		}
	}
	if n := len(d.slab); n > start {
		m.Parts = d.slab[start:n:n]
	}
	return m, nil
}

// part returns the part in data. A part of an unknown kind, of a later version, is kept unchanged.
func (d *decoder) part(data []byte, top bool) (part core.Part, err error) {
	var f Field
	for rest := data; len(rest) > 0; {
		if rest, err = f.take(rest); err != nil {
			return nil, err
		}
		if f.Num < numPartText || f.Num > numPartOpaque {
			continue
		}
		if f.Type != protowire.BytesType {
			return nil, errKind
		}
		if part, err = d.kind(f.Num, f.Value, top); err != nil {
			return nil, err
		}
	}
	if part == nil {
		return EncodeLater(data), nil
	}
	return part, nil
}

// kind returns the part in the field num.
func (d *decoder) kind(num protowire.Number, data []byte, top bool) (core.Part, error) {
	switch int(num) {
	case numPartText:
		return core.Text(String(data)), nil
	case numPartResult:
		if !top {
			return nil, errors.New("a tool result inside a tool result")
		}
		return d.result(data)
	}
	s, err := decodeStrings(data)
	if err != nil {
		return nil, err
	}
	switch int(num) {
	case numPartCall:
		return core.ToolCall{ID: Unname(s[0]), Name: Unname(s[1]), Args: s[2]}, nil
	case numPartImage:
		return core.Image{MediaType: Unname(s[0]), Data: s[1], URL: s[2]}, nil
	case numPartReasoning:
		return core.Reasoning{Text: s[0], Signature: s[1], Encrypted: s[2]}, nil
	default:
		return core.Opaque{Kind: Unname(s[0]), JSON: s[1]}, nil
	}
}

// decodeStrings returns the fields 1, 2 and 3.
func decodeStrings(data []byte) (s [3]string, err error) {
	var f Field
	for len(data) > 0 {
		if data, err = f.take(data); err != nil {
			return s, err
		}
		if f.Num <= 3 {
			if s[f.Num-1], err = f.Text(); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// DecodeParts decodes a Content. The result shares the bytes of data.
func DecodeParts(data []byte) ([]core.Part, error) {
	var parts []core.Part
	var d decoder
	err := Each(data, func(f *Field) error {
		p, err := d.part(f.Value, true)
		parts = append(parts, p)
		return err
	})
	return parts, err
}

func (d *decoder) result(data []byte) (core.Part, error) {
	var r core.ToolResult
	var f Field
	var err error
	start := len(d.contents)
	for len(data) > 0 {
		if data, err = f.take(data); err != nil {
			return nil, err
		}
		switch int(f.Num) {
		case 1:
			r.CallID, err = f.Text()
			r.CallID = Unname(r.CallID)
		case numResultContent:
			if f.Type != protowire.BytesType {
				return nil, errKind
			}
			var p core.Part
			p, err = d.part(f.Value, false)
			d.contents = append(d.contents, p)
		case numResultError:
			r.IsError = f.N != 0
		}
		if err != nil {
			return nil, err
		}
	}
	if n := len(d.contents); n > start {
		r.Content = d.contents[start:n:n]
	}
	return r, nil
}
