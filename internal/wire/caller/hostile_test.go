package caller_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire/caller"
	pb "github.com/condensehq/condense/internal/wire/condensepb"
)

type stream = grpc.BidiStreamingServer[pb.CondenseRequest, pb.CondenseResponse]

func edit(e *pb.Edit) *pb.CondenseResponse {
	return &pb.CondenseResponse{Kind: &pb.CondenseResponse_Edit{Edit: e}}
}

func done(u *pb.Usage) *pb.CondenseResponse {
	return &pb.CondenseResponse{Kind: &pb.CondenseResponse_Done{Done: &pb.Done{Usage: u}}}
}

func fragment(data string, last bool) *pb.CondenseResponse {
	return &pb.CondenseResponse{Kind: &pb.CondenseResponse_Fragment{Fragment: &pb.Fragment{Data: []byte(data), Last: last}}}
}

func hide(ids ...string) *pb.Edit {
	e := &pb.Edit{}
	for _, id := range ids {
		first, last, _ := strings.Cut(id, "..")
		e.Hide = append(e.Hide, &pb.MessageRange{First: first, Last: last})
	}
	return e
}

func rewrite(id string, parts ...*pb.NewPart) *pb.Edit {
	return &pb.Edit{Rewrite: []*pb.Rewrite{{Id: id, Parts: parts}}}
}

func keep(i uint32) *pb.NewPart { return &pb.NewPart{Kind: &pb.NewPart_Keep{Keep: i}} }

func put(p *pb.Part) *pb.NewPart { return &pb.NewPart{Kind: &pb.NewPart_Put{Put: p}} }

func result(part uint32, content ...*pb.NewPart) *pb.NewPart {
	return &pb.NewPart{Kind: &pb.NewPart_Result{Result: &pb.ResultEdit{Part: part, Content: content}}}
}

func text(s string) *pb.Part { return &pb.Part{Kind: &pb.Part_Text{Text: []byte(s)}} }

func toolResult(content ...*pb.Part) *pb.Part {
	return &pb.Part{Kind: &pb.Part_ToolResult{ToolResult: &pb.ToolResult{CallId: "c1", Content: content}}}
}

// unknown returns an envelope with an unknown field.
func unknown[M proto.Message](m M) M {
	m.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), "later"))
	return m
}

// nested returns a tool result in a tool result and so on.
func nested(depth int) *pb.Part {
	p := text("x")
	for range depth {
		p = toolResult(p)
	}
	return p
}

func many[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// TestPeer has plugins say all kinds of things. The conversation is m1 m2 m3 m4 m5 with two
// texts each; m5 holds the result of a call with two texts and a picture.
func TestPeer(t *testing.T) {
	messages := chat(5)
	messages[3].Parts = append(messages[3].Parts, coretest.Call("c1"))
	messages[4].Parts = []core.Part{
		core.Text("here"),
		core.ToolResult{CallID: "c1", Content: []core.Part{core.Text("a"), core.Text("b"), coretest.Image(1)}},
	}
	image := coretest.Image(1)
	tests := []struct {
		name string
		send []*pb.CondenseResponse
		want string // the messages, or what is wrong
		five []core.Part
	}{
		{name: "nothing changes", send: []*pb.CondenseResponse{done(nil)}, want: "m1 m2 m3 m4 m5"},
		{name: "hide", send: []*pb.CondenseResponse{edit(hide("m2", "m4..m5")), done(nil)}, want: "m1 m3"},
		{name: "edits add up", send: []*pb.CondenseResponse{edit(hide("m4")), edit(hide("m1..m2")), done(nil)}, want: "m3 m5"},
		{name: "insert", send: []*pb.CondenseResponse{edit(&pb.Edit{Insert: []*pb.Insert{
			{After: "m5", Role: "user", Parts: []*pb.Part{text("end")}},
			{Role: "user", Parts: []*pb.Part{text("front")}},
			{After: "m2", Role: "user", Parts: []*pb.Part{text("first")}},
			{After: "m2", Role: "user", Parts: []*pb.Part{text("second")}},
		}, Hide: hide("m2..m4").Hide}), done(nil)}, want: `["front"] m1 ["first"] ["second"] m5 ["end"]`},
		{
			name: "rewrite", send: []*pb.CondenseResponse{edit(rewrite("m5", result(1, keep(2), put(text("less"))), keep(0))), done(nil)},
			want: "m1 m2 m3 m4 m5", five: []core.Part{core.ToolResult{CallID: "c1", Content: []core.Part{image, core.Text("less")}}, core.Text("here")},
		},
		{name: "what came later is ignored", send: []*pb.CondenseResponse{unknown(&pb.CondenseResponse{}), unknown(edit(unknown(hide("m1")))), done(nil)}, want: "m2 m3 m4 m5"},
		{name: "after done", send: []*pb.CondenseResponse{edit(hide("m1")), done(nil), edit(hide("nobody"))}, want: "m2 m3 m4 m5"},

		{name: "no answer", send: nil, want: "the call ended without an answer"},
		{name: "not done", send: []*pb.CondenseResponse{edit(hide("m1"))}, want: "the call ended without an answer"},
		{name: "unknown message", send: []*pb.CondenseResponse{edit(hide("m9")), done(nil)}, want: `hide: there is no message "m9"`},
		{name: "no message", send: []*pb.CondenseResponse{edit(hide("")), done(nil)}, want: `hide: there is no message ""`},
		{name: "unknown end", send: []*pb.CondenseResponse{edit(hide("m1..m9")), done(nil)}, want: `hide: there is no message "m9"`},
		{name: "backwards", send: []*pb.CondenseResponse{edit(hide("m3..m1")), done(nil)}, want: `hide: message "m1" is before "m3"`},
		{name: "hidden twice", send: []*pb.CondenseResponse{edit(hide("m1..m3")), edit(hide("m2")), done(nil)}, want: `hide: message "m2" is hidden twice`},
		{name: "hidden and rewritten", send: []*pb.CondenseResponse{edit(hide("m1")), edit(rewrite("m1", keep(0))), done(nil)}, want: `rewrite of message "m1": it is rewritten twice, or hidden`},
		{name: "rewritten and hidden", send: []*pb.CondenseResponse{edit(rewrite("m1", keep(0))), edit(hide("m1..m2")), done(nil)}, want: `hide: message "m1" is rewritten too`},
		{name: "rewrite of nobody", send: []*pb.CondenseResponse{edit(rewrite("m0")), done(nil)}, want: `rewrite of message "m0": there is no message "m0"`},
		{name: "no such part", send: []*pb.CondenseResponse{edit(rewrite("m1", keep(0), keep(2))), done(nil)}, want: "part 1: there is no part 2 to keep, only 2 parts"},
		{name: "part out of range", send: []*pb.CondenseResponse{edit(rewrite("m1", keep(math.MaxUint32))), done(nil)}, want: "there is no part 4294967295"},
		{name: "no result", send: []*pb.CondenseResponse{edit(rewrite("m5", result(0))), done(nil)}, want: "part 0: part 0 is no tool result"},
		{name: "no content", send: []*pb.CondenseResponse{edit(rewrite("m5", result(1, keep(3)))), done(nil)}, want: "there is no part 3 to keep, only 3 parts"},
		{name: "result in result", send: []*pb.CondenseResponse{edit(rewrite("m5", result(1, result(0)))), done(nil)}, want: "part 0 is no tool result"},
		{name: "empty part", send: []*pb.CondenseResponse{edit(rewrite("m1", &pb.NewPart{})), done(nil)}, want: "part 0: neither kept nor put"},
		{name: "part without kind", send: []*pb.CondenseResponse{edit(rewrite("m1", put(&pb.Part{}))), done(nil)}, want: "a part without a kind"},
		{name: "part of a later kind", send: []*pb.CondenseResponse{edit(rewrite("m1", put(unknown(&pb.Part{})))), done(nil)}, want: "a part without a kind, or of a kind that this host does not know"},
		{name: "nested result", send: []*pb.CondenseResponse{edit(rewrite("m1", put(nested(2)))), done(nil)}, want: "content 0: a tool result inside a tool result"},
		{name: "absurdly nested", send: []*pb.CondenseResponse{edit(rewrite("m1", put(nested(5000)))), done(nil)}, want: "more than 32 levels deep"},
		{name: "call in result", send: []*pb.CondenseResponse{edit(rewrite("m1", put(toolResult(&pb.Part{Kind: &pb.Part_ToolCall{}})))), done(nil)}, want: "content 0: a tool call inside a tool result"},
		{name: "insert after an unknown message", send: []*pb.CondenseResponse{edit(&pb.Edit{Insert: []*pb.Insert{{After: "x"}}}), done(nil)}, want: `insert after message "x": there is no message "x"`},
		{name: "insert without a kind", send: []*pb.CondenseResponse{edit(&pb.Edit{Insert: []*pb.Insert{{Parts: []*pb.Part{{}}}}}), done(nil)}, want: "part 0: a part without a kind"},
		{name: "negative usage", send: []*pb.CondenseResponse{done(&pb.Usage{Calls: -1})}, want: "usage is"},
		{name: "usage is no number", send: []*pb.CondenseResponse{done(&pb.Usage{Usd: math.NaN()})}, want: "usage is"},
		{name: "infinite usage", send: []*pb.CondenseResponse{done(&pb.Usage{Usd: math.Inf(1)})}, want: "usage is"},

		{name: "too large for one message", send: []*pb.CondenseResponse{edit(rewrite("m1", put(text(strings.Repeat("x", 4<<20))))), done(nil)}, want: "received message larger than max"},
		{name: "too much together", send: many(11, edit(&pb.Edit{Insert: []*pb.Insert{{Role: "user", Parts: []*pb.Part{text(strings.Repeat("x", 1000))}}}})), want: "edits of more than 10000 bytes"},
		{name: "too much in fragments", send: append(many(11, fragment(strings.Repeat("x", 1000), false)), fragment("", true)), want: "fragments of more than 10000 bytes"},
		{name: "too many entries", send: []*pb.CondenseResponse{edit(&pb.Edit{Insert: many(200_000, &pb.Insert{})})}, want: "more than 131072 entries in one message"},
		{name: "too many new messages", send: many(3, edit(&pb.Edit{Insert: many(5, &pb.Insert{Role: "user"})})), want: "more than 10 new messages"},
		{name: "too many parts", send: many(2, edit(&pb.Edit{Insert: []*pb.Insert{{Parts: many(60, text(""))}}})), want: "more than 100 parts"},
		{name: "too many ranges", send: []*pb.CondenseResponse{edit(hide(many(1000, "m1..m5")...)), done(nil)}, want: "is hidden twice"},
		{name: "fragments of nothing", send: []*pb.CondenseResponse{fragment("", false)}, want: "a fragment that is empty and not the last"},
		{name: "fragment is missing", send: []*pb.CondenseResponse{fragment("x", false), done(nil)}, want: "a fragment is missing"},
		{name: "fragments of garbage", send: []*pb.CondenseResponse{fragment("\xff\xff", false), fragment("\xff", true)}, want: "unexpected EOF"},
		{name: "fragments of fragments", send: []*pb.CondenseResponse{fragment("\x32\x00", true)}, want: "a fragment of fragments"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &peer{condense: func(s stream) error {
				for _, m := range tt.send {
					if err := s.Send(m); err != nil {
						return err
					}
				}
				return nil
			}}
			opts := &caller.Options{}
			if strings.HasPrefix(tt.name, "too much") || strings.HasPrefix(tt.name, "too many new") || strings.HasPrefix(tt.name, "too many parts") {
				opts.Limits = caller.Limits{AnswerBytes: 10_000, NewMessages: 10, NewParts: 100}
			}
			res, err := p.client(t, opts).Condense(t.Context(), coretest.HalfRequest(messages))
			if err != nil {
				if !errors.Is(err, caller.ErrProtocol) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got error %v; want %q", err, tt.want)
				}
				return
			}
			if got := strings.Join(ids(res.Messages), " "); got != tt.want {
				t.Errorf("got %s; want %s", got, tt.want)
			}
			if tt.five != nil && !core.EqualParts(res.Messages[4].Parts, tt.five) {
				t.Errorf("m5 is %v; want %v", res.Messages[4].Parts, tt.five)
			}
		})
	}
}

// TestErrors: an error keeps its meaning and its words on the way.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		code codes.Code
		want error
	}{
		{codes.InvalidArgument, core.ErrInvalidRequest},
		{codes.Unavailable, core.ErrUnavailable},
		{codes.Canceled, core.ErrUnavailable}, // not canceled on this side
		{codes.Unimplemented, errors.ErrUnsupported},
		{codes.DeadlineExceeded, context.DeadlineExceeded}, // its own, not the call's
		{codes.Internal, nil},
		{codes.Code(4711), nil},
	} {
		p := &peer{condense: func(stream) error { return status.Error(tt.code, "it \x1b[31mbroke\u202e") }}
		_, err := p.client(t, nil).Condense(t.Context(), coretest.HalfRequest(chat(2)))
		e, ok := errors.AsType[*caller.RemoteError](err)
		if !ok || e.Error() != "it [31mbroke" {
			t.Errorf("%s: got error %#v", tt.code, err)
			continue
		}
		if tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v is not %v", tt.code, err, tt.want)
		}
		if tt.want == nil && e.Unwrap() != nil {
			t.Errorf("%s: unwraps to %v", tt.code, e.Unwrap())
		}
	}
	for _, want := range []error{core.ErrInvalidRequest, core.ErrUnavailable, errors.ErrUnsupported} {
		c := serve(t, provided(core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) {
			return nil, errors.Join(errors.New("because"), want)
		})), nil)
		_, err := c.Condense(t.Context(), coretest.HalfRequest(chat(2)))
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "because") {
			t.Errorf("got error %v; want %v", err, want)
		}
	}
}

// TestSlowDrip: a plugin that always says something and never comes to an end is cut off.
func TestSlowDrip(t *testing.T) {
	p := &peer{condense: func(s stream) error {
		for {
			if err := s.Send(&pb.CondenseResponse{Kind: &pb.CondenseResponse_Log{Log: &pb.Log{Message: []byte("still here")}}}); err != nil {
				return err
			}
		}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := p.client(t, nil).Condense(ctx, coretest.HalfRequest(chat(2)))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
	_, err = p.client(t, &caller.Options{Limits: caller.Limits{Envelopes: 1000}}).Condense(t.Context(), coretest.HalfRequest(chat(2)))
	if !errors.Is(err, caller.ErrProtocol) {
		t.Errorf("got error %v; want caller.ErrProtocol", err)
	}
}

// TestDescribeStrange: what a plugin says of itself can be printed.
func TestDescribeStrange(t *testing.T) {
	p := &peer{describe: func() *pb.DescribeResponse {
		return &pb.DescribeResponse{
			Name: "evil\x1b]0;title\x07", Doc: "line one\nline two\r\x00\u202e", Version: "1\u200b",
			Settings: []*pb.Setting{{Name: "s", Default: []byte("{not json")}, {Name: "t", Default: []byte("3"), Enum: []string{"a\u009b"}}},
		}
	}}
	d, err := p.client(t, nil).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "evil]0;title" || d.Doc != "line one\nline two" || d.Version != "1" || string(d.Settings[0].Default) != "null" || string(d.Settings[1].Default) != "3" {
		t.Errorf("got %+v", d)
	}
}

// TestDescribeHuge: a small answer that becomes large when it is decoded is not decoded.
func TestDescribeHuge(t *testing.T) {
	p := &peer{describe: func() *pb.DescribeResponse {
		return &pb.DescribeResponse{Name: "huge", Settings: many(150_000, &pb.Setting{})}
	}}
	if _, err := p.client(t, nil).Describe(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 131072 entries") {
		t.Errorf("got error %v", err)
	}
}

// TestStepsStrange: what a plugin says of its steps is bounded and can be printed.
func TestStepsStrange(t *testing.T) {
	kinds := map[string]int64{}
	for i := range 1000 {
		kinds[strconv.Itoa(i)] = 1
	}
	steps := append([]*pb.Step{
		{Name: "evil\x1b]0;title\x07\nsecond line", Note: []byte("\xff\u202e" + strings.Repeat("x", 1<<20)), Ms: math.NaN()},
		{Name: strings.Repeat("n", 1000), Saved: kinds, Ms: 1e300},
		{Ms: -1, Looked: math.MinInt64, Note: []byte(strings.Repeat("\xff", 4000)), Saved: map[string]int64{"tool": 7, "tool ": 9, "tool\u200b": 5}},
	}, many(5000, &pb.Step{})...)
	p := &peer{condense: func(s stream) error {
		return s.Send(&pb.CondenseResponse{Kind: &pb.CondenseResponse_Done{Done: &pb.Done{Steps: steps}}})
	}}
	res, err := p.client(t, nil).Condense(t.Context(), coretest.HalfRequest(chat(2)))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Steps) != 1000 {
		t.Errorf("got %d steps, want 1000", len(res.Steps))
	}
	first, second, third := res.Steps[0], res.Steps[1], res.Steps[2]
	if first.Name != "evil]0;title second line" || len(first.Note) > 1<<10 || !strings.HasPrefix(first.Note, "\ufffdxxx") || first.Duration != 0 {
		t.Errorf("got %.200v", first)
	}
	if len(second.Name) != 100 || len(second.Saved) != 32 || second.Duration != 0 {
		t.Errorf("got a name of %d bytes, %d kinds, %v", len(second.Name), len(second.Saved), second.Duration)
	}
	if third.Duration != 0 || third.Looked != math.MinInt64 || len(third.Note) > 1<<10 || !utf8.ValidString(third.Note) || third.Saved["tool"] != 21 {
		t.Errorf("got %+v", third)
	}
}
