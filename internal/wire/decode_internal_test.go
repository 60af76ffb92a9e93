package wire

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// toMessage returns m as the generated code has it: the measure of encode.go.
func toMessage(tb testing.TB, m *core.Message) *condensepb.Message {
	tb.Helper()
	parts, err := toParts(m.Parts)
	if err != nil {
		tb.Fatal(err)
	}
	w := &condensepb.Message{
		Id: byhand.Name(m.ID), Role: byhand.Name(string(m.Role)), Kind: byhand.Name(string(m.Kind)),
		Parts: parts, Protected: m.Protected, Tokens: int64(m.Tokens), Labels: m.Labels, Number: int64(m.Number), Program: m.Program,
	}
	if !m.Time.IsZero() {
		w.TimeMs = new(m.Time.UnixMilli())
	}
	return w
}

// // toParts returns parts as the generated code has them.
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

func decodeLater(json string) (*condensepb.Part, error) {
	raw, err := byhand.DecodeLater(json)
	if err != nil {
		return nil, err
	}
	w := &condensepb.Part{}
	return w, proto.Unmarshal(raw, w)
}

// encodeRun writes messages as a call does.
func encodeRun(messages []core.Message) []byte {
	out, _ := byhand.AppendRun(nil, messages, math.MaxInt)
	return out
}

// TestEncodeIsProtobuf: what is written by hand is, byte for byte, what the generated code
// writes, and is read back.
func TestEncodeIsProtobuf(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		messages := coretest.Random(r, nil)
		for i := range messages {
			switch m := &messages[i]; r.IntN(12) {
			case 0:
				m.Time, m.Tokens, m.Role = time.Time{}, 0, "" // what proto3 leaves out
			case 1:
				m.Time, m.Tokens, m.ID = time.UnixMilli(-5), -1, "\xff"
			case 2:
				m.Labels = map[string]string{"kept": "pin", "a": "b", "topic": strings.Repeat("x", 200)}
				m.Time, m.Number, m.Program = time.UnixMilli(0), i+1, true // the time is set, and zero
			case 3:
				m.Parts = append(slices.Clip(m.Parts), core.ToolCall{}, core.ToolResult{}, core.Image{}, core.Reasoning{}, core.Opaque{}, core.Text(""))
			}
		}
		got := encodeRun(messages)
		body := &condensepb.Messages{}
		for i := range messages {
			body.Messages = append(body.Messages, toMessage(t, &messages[i]))
		}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(
			&condensepb.CondenseRequest{Kind: &condensepb.CondenseRequest_Messages{Messages: body}})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: wrote\n%x\nwant\n%x", seed, got, want)
		}
		run, err := kindOf(got)
		if err != nil || run.Num != numMessages {
			t.Fatalf("seed %d: not taken for a run, %v", seed, err)
		}
		back, err := byhand.DecodeRun(run.Value, nil)
		if err != nil || len(back) != len(messages) {
			t.Fatalf("seed %d: read %d messages, %v; want %d", seed, len(back), err, len(messages))
		}
		for i, m := range messages {
			if b := back[i]; !b.Equal(m) || b.Tokens != m.Tokens || b.Number != m.Number || b.Program != m.Program || !maps.Equal(b.Labels, m.Labels) || b.Protected != m.Protected || !b.Time.Equal(m.Time.Truncate(time.Millisecond)) {
				t.Fatalf("seed %d: read %+v; want %+v", seed, b, m)
			}
		}
	}
}

// TestLaterFields: fields, parts and envelopes that came after this code do no harm, and a
// part of a later kind is sent back as it came.
func TestLaterFields(t *testing.T) {
	later := protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "later")
	later = protowire.AppendFixed64(protowire.AppendTag(later, 100, protowire.Fixed64Type), 7)
	audio := &condensepb.Part{}
	audio.ProtoReflect().SetUnknown(later)
	call := &condensepb.ToolCall{Id: "c", Args: []byte("{}")}
	call.ProtoReflect().SetUnknown(later)
	result := &condensepb.ToolResult{CallId: "c", Content: []*condensepb.Part{audio}}
	result.ProtoReflect().SetUnknown(later)
	m := &condensepb.Message{Id: "m", Role: "user", Parts: []*condensepb.Part{
		audio, {Kind: &condensepb.Part_ToolCall{ToolCall: call}}, {Kind: &condensepb.Part_ToolResult{ToolResult: result}},
	}}
	m.ProtoReflect().SetUnknown(later)
	env := &condensepb.CondenseRequest{Kind: &condensepb.CondenseRequest_Messages{Messages: &condensepb.Messages{Messages: []*condensepb.Message{m}}}}
	env.ProtoReflect().SetUnknown(later)
	data, err := proto.Marshal(env)
	if err != nil {
		t.Fatal(err)
	}
	run, err := kindOf(data)
	if err != nil || run.Num != numMessages {
		t.Fatal(run.Num, err)
	}
	messages, err := byhand.DecodeRun(run.Value, nil)
	if err != nil || len(messages) != 1 || messages[0].ID != "m" || len(messages[0].Parts) != 3 {
		t.Fatalf("read %+v, %v", messages, err)
	}
	parts := messages[0].Parts
	if parts[1] != (core.ToolCall{ID: "c", Args: "{}"}) {
		t.Errorf("the call is %+v", parts[1])
	}
	back, err := toPart(parts[0])
	if err != nil || !proto.Equal(back, audio) {
		t.Errorf("sent back %v, %v; want %v", back, err, audio)
	}
	// In a rewrite it is not even sent: it is kept.
	after := []core.Message{{ID: "m", Role: "user", Parts: []core.Part{
		core.Text("new"), parts[0], core.ToolResult{CallID: "c", Content: []core.Part{parts[0], core.Text("x")}},
	}}}
	err = byhand.Edits(messages, after, map[string]int{"m": 0}, func(data []byte) error {
		edit := &condensepb.Edit{}
		if err := proto.Unmarshal(data, edit); err != nil {
			return err
		}
		is := edit.GetRewrite()[0].GetParts()
		_, kept := is[1].GetKind().(*condensepb.NewPart_Keep)
		_, keptInside := is[2].GetResult().GetContent()[0].GetKind().(*condensepb.NewPart_Keep)
		if !kept || !keptInside || len(edit.GetRewrite()) != 1 {
			t.Errorf("rewritten as %v", edit)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	// Elsewhere it is sent unchanged.
	raw, err := proto.Marshal(audio)
	if got := byhand.AppendPart(nil, parts[0]); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("sent back %x, %v; want %x", got, err, raw)
	}
}

func TestNames(t *testing.T) {
	for _, s := range []string{"", "toolu_1", "é", "\xff", "a\x80b", byhand.Escape, byhand.Escape + "ff", byhand.Escape + "zz", "\ufffd"} {
		w := byhand.Name(s)
		if got := byhand.Unname(w); got != s {
			t.Errorf("%q became %q, then %q", s, w, got)
		}
	}
}

// FuzzDecodeRun: no bytes make the plugin's decoder panic, and what it reads it can write
// again.
func FuzzDecodeRun(f *testing.F) {
	for seed := range uint64(5) {
		data := encodeRun(coretest.Random(rand.New(rand.NewPCG(seed, 0)), &coretest.RandomOptions{Max: 3, Tidy: true}))
		f.Add(data)
	}
	f.Add([]byte("\x12\x04\x0a\x02\x22\x00"))
	f.Add([]byte("\x12\x06\x0a\x04\x08\x01\x10\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		run, err := kindOf(data)
		if err != nil || run.Num != numMessages {
			return
		}
		messages, err := byhand.DecodeRun(slices.Clone(run.Value), nil)
		if err != nil || len(messages) == 0 {
			return
		}
		if run, err = kindOf(encodeRun(messages)); err != nil || run.Num != numMessages {
			t.Fatalf("what was written is no run, %v", err)
		}
		again, err := byhand.DecodeRun(run.Value, nil)
		if err != nil || len(again) != len(messages) {
			t.Fatalf("read %d messages, then %d, %v", len(messages), len(again), err)
		}
		for i := range messages {
			if !again[i].Equal(messages[i]) {
				t.Fatalf("message %d was %+v, is %+v", i, messages[i], again[i])
			}
		}
	})
}
