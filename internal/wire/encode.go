package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

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
		w.Kind = &condensepb.Part_Text{Text: byhand.Bytes(string(p))}
	case core.ToolCall:
		w.Kind = &condensepb.Part_ToolCall{ToolCall: &condensepb.ToolCall{Id: byhand.Name(p.ID), Name: byhand.Name(p.Name), Args: byhand.Bytes(p.Args)}}
	case core.ToolResult:
		content, err := toParts(p.Content)
		if err != nil {
			return nil, err
		}
		w.Kind = &condensepb.Part_ToolResult{ToolResult: &condensepb.ToolResult{CallId: byhand.Name(p.CallID), Content: content, IsError: p.IsError}}
	case core.Image:
		w.Kind = &condensepb.Part_Image{Image: &condensepb.Image{MediaType: byhand.Name(p.MediaType), Data: byhand.Bytes(p.Data), Url: byhand.Bytes(p.URL)}}
	case core.Reasoning:
		w.Kind = &condensepb.Part_Reasoning{Reasoning: &condensepb.Reasoning{Text: byhand.Bytes(p.Text), Signature: byhand.Bytes(p.Signature), Encrypted: byhand.Bytes(p.Encrypted)}}
	case core.Opaque:
		if p.Kind == byhand.LaterPart {
			if raw, err := decodeLater(p.JSON); err == nil {
				return raw, nil
			}
		}
		w.Kind = &condensepb.Part_Opaque{Opaque: &condensepb.Opaque{Kind: byhand.Name(p.Kind), Json: byhand.Bytes(p.JSON)}}
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
		return core.Text(byhand.String(k.Text))
	case *condensepb.Part_ToolCall:
		c := k.ToolCall
		return core.ToolCall{ID: byhand.Unname(c.GetId()), Name: byhand.Unname(c.GetName()), Args: byhand.String(c.GetArgs())}
	case *condensepb.Part_ToolResult:
		r := k.ToolResult
		return core.ToolResult{CallID: byhand.Unname(r.GetCallId()), Content: fromParts(r.GetContent()), IsError: r.GetIsError()}
	case *condensepb.Part_Image:
		m := k.Image
		return core.Image{MediaType: byhand.Unname(m.GetMediaType()), Data: byhand.String(m.GetData()), URL: byhand.String(m.GetUrl())}
	case *condensepb.Part_Reasoning:
		r := k.Reasoning
		return core.Reasoning{Text: byhand.String(r.GetText()), Signature: byhand.String(r.GetSignature()), Encrypted: byhand.String(r.GetEncrypted())}
	case *condensepb.Part_Opaque:
		o := k.Opaque
		return core.Opaque{Kind: byhand.Unname(o.GetKind()), JSON: byhand.String(o.GetJson())}
	default:
		return byhand.EncodeLater(w.ProtoReflect().GetUnknown())
	}
}

func decodeLater(json string) (*condensepb.Part, error) {
	raw, err := byhand.DecodeLater(json)
	if err != nil {
		return nil, err
	}
	w := &condensepb.Part{}
	return w, proto.Unmarshal(raw, w)
}
