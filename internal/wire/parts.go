package wire

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// laterPart is the kind of the [core.Opaque] that stands for a part of a kind that came
// after this code: the whole part is in its JSON, as a string of base64.
const laterPart = "condense.v1.Part"

// toParts returns parts as the wire has them. The result shares the bytes of parts.
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

// fromParts returns the parts that the wire has. They take over the bytes of parts.
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

// encodeLater keeps the encoding of a part that this code does not know.
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

// bytesOf returns the bytes of s without copying them. They are only encoded, never
// written to: a history of 50 MB is not to be copied once more on its way.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // read-only, see above
}

// stringOf returns b as a string without copying it. Only for bytes that a decoder
// allocated and nobody else holds.
func stringOf(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // nobody writes to b, see above
}
