//go:build linux

package supervise_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

type answerFunc func(answerStream, []*condensepb.Message) error

type answerStream = grpc.BidiStreamingServer[condensepb.CondenseRequest, condensepb.CondenseResponse]

// answer returns a program that serves the protocol without the SDK.
func answer(do answerFunc) func() {
	return func() { serveWith(&rawServer{do: do}) }
}

// A rawServer reads the history and sends any answer.
type rawServer struct {
	condensepb.UnimplementedProviderServiceServer

	do  answerFunc
	may core.Abilities // declared
}

// limited returns a program like [answer] that declares abilities.
func limited(may core.Abilities, do answerFunc) func() {
	return func() { serveWith(&rawServer{do: do, may: may}) }
}

func (s *rawServer) Describe(context.Context, *condensepb.DescribeRequest) (*condensepb.DescribeResponse, error) {
	return &condensepb.DescribeResponse{Name: "raw", Abilities: s.may.Names()}, nil
}

// askModel asks for a language model, and hides a message whatever the host replies.
func askModel(s answerStream, history []*condensepb.Message) error {
	err := s.Send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Callback{Callback: &condensepb.Callback{
		Id: 1, Call: &condensepb.Callback_Generate{Generate: &condensepb.Generate{System: []byte("Say it all.")}},
	}}})
	if err != nil {
		return err
	}
	if _, err := s.Recv(); err != nil {
		return err
	}
	return edits(hideText)(s, history)
}

// hideText hides a message of the assistant, which the rules allow.
func hideText(history []*condensepb.Message) *condensepb.Edit {
	return hide(find(history, func(m *condensepb.Message) bool {
		return m.GetRole() == "assistant" && len(m.GetParts()) == 1 && !calls(m) && !m.GetProtected()
	}).GetId(), "")
}

func (*rawServer) Configure(context.Context, *condensepb.ConfigureRequest) (*condensepb.ConfigureResponse, error) {
	return &condensepb.ConfigureResponse{}, nil
}

func (s *rawServer) Condense(stream grpc.BidiStreamingServer[condensepb.CondenseRequest, condensepb.CondenseResponse]) error {
	left, history := int64(1), []*condensepb.Message(nil)
	for first := true; left > 0; first = false {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if first {
			left = req.GetStart().GetMessageCount()
			continue
		}
		history = append(history, req.GetMessages().GetMessages()...)
		left -= int64(len(req.GetMessages().GetMessages()))
	}
	return s.do(stream, history)
}

func edit(e *condensepb.Edit) *condensepb.CondenseResponse {
	return &condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Edit{Edit: e}}
}

func summary(text []byte) *condensepb.Insert {
	return &condensepb.Insert{Role: "user", Kind: "summary", Parts: []*condensepb.Part{{Kind: &condensepb.Part_Text{Text: text}}}}
}

// oneGigabyte answers with a summary of 1 GB, in valid envelopes.
func oneGigabyte(s answerStream, _ []*condensepb.Message) error {
	e := edit(&condensepb.Edit{Insert: []*condensepb.Insert{summary(bytes.Repeat([]byte("all work and no play "), 1<<20/21))}})
	for range 1024 {
		if err := s.Send(e); err != nil {
			return err
		}
	}
	return done(s)
}

// oneEnvelope answers with 64 MB at once, which gRPC would do.
func oneEnvelope(s answerStream, _ []*condensepb.Message) error {
	return s.Send(edit(&condensepb.Edit{Insert: []*condensepb.Insert{summary(make([]byte, 64<<20))}}))
}

// tenMillion answers with that many new messages.
func tenMillion(s answerStream, _ []*condensepb.Message) error {
	e := &condensepb.Edit{}
	for range 10_000 {
		e.Insert = append(e.Insert, summary([]byte("x")))
	}
	for range 1000 {
		if err := s.Send(edit(e)); err != nil {
			return err
		}
	}
	return done(s)
}

// logs never stops logging.
func logs(s answerStream, _ []*condensepb.Message) error {
	line := bytes.Repeat([]byte("log "), 250)
	for {
		err := s.Send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Log{Log: &condensepb.Log{Level: "info", Message: line}}})
		if err != nil {
			return err
		}
	}
}

// drip sends small pieces, often enough to seem alive, and never ends.
func drip(s answerStream, _ []*condensepb.Message) error {
	for {
		err := s.Send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Progress{Progress: &condensepb.Progress{Text: "nearly there"}}})
		if err != nil {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
}

func done(s answerStream) error {
	return s.Send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Done{Done: &condensepb.Done{}}})
}

// edits returns an answer of one edit.
func edits(of func([]*condensepb.Message) *condensepb.Edit) answerFunc {
	return func(s answerStream, history []*condensepb.Message) error {
		if err := s.Send(edit(of(history))); err != nil {
			return err
		}
		return done(s)
	}
}

func hide(first, last string) *condensepb.Edit {
	return &condensepb.Edit{Hide: []*condensepb.MessageRange{{First: first, Last: last}}}
}

// find returns the first message that ok accepts.
func find(history []*condensepb.Message, ok func(*condensepb.Message) bool) *condensepb.Message {
	for _, m := range history {
		if ok(m) {
			return m
		}
	}
	return &condensepb.Message{Id: "not found"}
}

func protected(m *condensepb.Message) bool { return m.GetProtected() }

func calls(m *condensepb.Message) bool {
	return slices.ContainsFunc(m.GetParts(), func(p *condensepb.Part) bool { return p.GetToolCall() != nil })
}

func editProtected(history []*condensepb.Message) *condensepb.Edit {
	text := &condensepb.Part{Kind: &condensepb.Part_Text{Text: []byte("Do something else.")}}
	return &condensepb.Edit{Rewrite: []*condensepb.Rewrite{{
		Id: find(history, protected).GetId(), Parts: []*condensepb.NewPart{{Kind: &condensepb.NewPart_Put{Put: text}}},
	}}}
}

// reorder hides the beginning and repeats it at the end.
func reorder(history []*condensepb.Message) *condensepb.Edit {
	e := hide(history[3].GetId(), "")
	e.Insert = []*condensepb.Insert{{
		After: history[len(history)-1].GetId(), Role: history[3].GetRole(), Kind: "summary", Parts: history[3].GetParts(),
	}}
	return e
}

// seen are the messages of the conversations that this process has been asked about.
var seen struct {
	sync.Mutex

	ids []string
}

// hideOthers answers a conversation with the IDs of the first that it saw.
func hideOthers(history []*condensepb.Message) *condensepb.Edit {
	seen.Lock()
	defer seen.Unlock()
	if seen.ids == nil {
		for _, m := range history {
			seen.ids = append(seen.ids, m.GetId())
		}
		return &condensepb.Edit{}
	}
	return hide(seen.ids[2], "")
}

// claim reports implausible numbers: large savings, and a negative price.
func claim(s answerStream, _ []*condensepb.Message) error {
	return s.Send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Done{
		Done: &condensepb.Done{Usage: &condensepb.Usage{InputTokens: -1_000_000, Usd: math.NaN()}},
	}})
}
