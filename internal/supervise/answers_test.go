package supervise_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/condensehq/condense/internal/wire/condensepb"
)

type answerStream = grpc.BidiStreamingServer[condensepb.CondenseRequest, condensepb.CondenseResponse]

// answer returns a program that speaks the protocol without the SDK.
func answer(do func(answerStream) error) func() {
	return func() { serveWith(&rawServer{do: do}) }
}

// A rawServer takes in the history and answers as it likes.
type rawServer struct {
	condensepb.UnimplementedProviderServiceServer

	do func(answerStream) error
}

func (*rawServer) Describe(context.Context, *condensepb.DescribeRequest) (*condensepb.DescribeResponse, error) {
	return &condensepb.DescribeResponse{Name: "raw"}, nil
}

func (*rawServer) Configure(context.Context, *condensepb.ConfigureRequest) (*condensepb.ConfigureResponse, error) {
	return &condensepb.ConfigureResponse{}, nil
}

func (s *rawServer) Condense(stream grpc.BidiStreamingServer[condensepb.CondenseRequest, condensepb.CondenseResponse]) error {
	left, ids := int64(1), []string(nil)
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
		for _, m := range req.GetMessages().GetMessages() {
			ids = append(ids, m.GetId())
			left--
		}
	}
	return s.do(stream)
}

func edit(e *condensepb.Edit) *condensepb.CondenseResponse {
	return &condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Edit{Edit: e}}
}

func summary(text []byte) *condensepb.Insert {
	return &condensepb.Insert{Role: "user", Kind: "summary", Parts: []*condensepb.Part{{Kind: &condensepb.Part_Text{Text: text}}}}
}

// oneGigabyte answers with a summary of 1 GB, in lawful envelopes.
func oneGigabyte(s answerStream) error {
	e := edit(&condensepb.Edit{Insert: []*condensepb.Insert{summary(bytes.Repeat([]byte("all work and no play "), 1<<20/21))}})
	for range 1024 {
		if err := s.Send(e); err != nil {
			return err
		}
	}
	return done(s)
}

// oneEnvelope answers with 1 GB at once.
func oneEnvelope(s answerStream) error {
	return s.Send(edit(&condensepb.Edit{Insert: []*condensepb.Insert{summary(make([]byte, 1<<30))}}))
}

// tenMillion answers with that many new messages.
func tenMillion(s answerStream) error {
	e := &condensepb.Edit{}
	for range 100_000 {
		e.Insert = append(e.Insert, summary([]byte("x")))
	}
	for range 100 {
		if err := s.Send(edit(e)); err != nil {
			return err
		}
	}
	return done(s)
}

// drip sends a little, often enough to seem alive, and never ends.
func drip(s answerStream) error {
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
