package wire

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// A Guest is a provider that works on encoded messages: a module of WebAssembly. Its methods are called concurrently. Their errors
// are statuses of gRPC; any other counts as a bug of the guest.
type Guest interface {
	// Describe returns an encoded DescribeResponse.
	Describe(ctx context.Context) ([]byte, error)
	// Configure checks settings, and uses them for later calls if it returns no problem.
	Configure(ctx context.Context, settings []byte) ([]Problem, error)
	// Condense returns an encoded Edit.
	Condense(ctx context.Context, c *GuestCall) ([]byte, error)
}

// A Relay is the plugin's end of the protocol for a [Guest], as [Server] is for a strategy.
type Relay struct {
	condensepb.UnimplementedProviderServiceServer

	Guest Guest
	SDK   string // what runs it, for logs
}

// Register registers r with s.
func (r *Relay) Register(s grpc.ServiceRegistrar) { condensepb.RegisterProviderServiceServer(s, r) }

// Describe describes the guest.
func (r *Relay) Describe(ctx context.Context, _ *condensepb.DescribeRequest) (*condensepb.DescribeResponse, error) {
	data, err := r.Guest.Describe(ctx)
	if err != nil {
		return nil, asStatus(err)
	}
	res, err := Described(data)
	if err != nil {
		return nil, err
	}
	if res.Sdk = r.SDK; res.GetVersion() == "" {
		res.Version = "unknown"
	}
	return res, nil
}

// Configure passes the settings to the guest.
func (r *Relay) Configure(ctx context.Context, req *condensepb.ConfigureRequest) (*condensepb.ConfigureResponse, error) {
	found, err := r.Guest.Configure(ctx, req.GetSettings())
	if err != nil {
		return nil, asStatus(err)
	}
	return refused(found)
}

// A Problem is a problem of a setting.
type Problem = byhand.Problem

// ParseProblems decodes a ConfigureResponse.
func ParseProblems(data []byte) ([]Problem, error) {
	res := &condensepb.ConfigureResponse{}
	err := Unmarshal(data, res)
	return Problems(res, valid), err
}

// Problems returns the problems in an answer, with texts as clean makes them.
func Problems(res *condensepb.ConfigureResponse, clean func(string) string) []Problem {
	var all []Problem
	for _, p := range res.GetProblems() {
		all = append(all, Problem{Key: clean(p.GetKey()), Message: clean(p.GetMessage())})
	}
	return all
}

func asStatus(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Internal, valid(err.Error()))
}

// A GuestCall is a condensation by a guest. Its methods are safe for concurrent use, even after the call has ended.
type GuestCall struct {
	Start    []byte // encoded
	Messages []byte // an encoded Messages

	call *serverCall

	mu    sync.Mutex
	steps []*condensepb.Step
}

// Condense passes a call to the guest, and its answer to the host. It returns when the call has ended, whatever the guest does.
func (r *Relay) Condense(stream serverStream) error {
	c := newServerCall(stream)
	defer c.end()
	g := &GuestCall{call: c}
	if err := g.receive(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(errEnded)
	go c.receive()
	type answer struct {
		edit []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		edit, err := r.Guest.Condense(ctx, g)
		answers <- answer{edit, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return asStatus(a.err)
		}
		return g.answer(a.edit)
	case <-ctx.Done():
		return toStatus(context.Cause(ctx))
	}
}

// receive receives the request. The host sends nothing else before it is complete.
func (g *GuestCall) receive() error {
	start, data, err := g.call.begin()
	if err != nil {
		return err
	}
	g.Start = data
	for n := int64(0); n < start.GetMessageCount(); {
		run, err := g.call.run()
		if err != nil {
			return err
		}
		err = byhand.Each(run, func(f *byhand.Field) error {
			if f.Num == 1 {
				n++
			}
			return nil
		})
		if err != nil {
			return invalid(err)
		}
		g.Messages = append(g.Messages, run...)
	}
	return nil
}

// entryWeight is what an entry of an answer counts: a host limits the entries of one message.
const entryWeight = 16

// answer sends the edit and the end mark.
func (g *GuestCall) answer(edit []byte) error {
	c := g.call
	c.sending.Lock()
	defer c.sending.Unlock()
	b := &byhand.Batch{Emit: func(piece []byte) error { return sendEdit(c.stream, piece) }}
	var failed error // of the stream
	done := &condensepb.Done{}
	err := byhand.Each(edit, func(f *byhand.Field) error {
		if f.Num == byhand.NumDone {
			return Unmarshal(f.Value, done)
		}
		if f.Value != nil {
			failed = b.Add(f.Num, f.Value, entryWeight)
		}
		return failed
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return status.Errorf(codes.Internal, "its answer is no Edit: %v", err)
	}
	if err := b.Flush(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	done.Usage, done.Steps = nil, g.steps
	return Send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Done{Done: done}}, wrapResponse, c.stream.Send)
}

// Log sends a line to the host's log.
func (g *GuestCall) Log(level slog.Level, text string) {
	if level >= g.call.level {
		_ = g.call.send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Log{
			Log: &condensepb.Log{Level: LevelName(level), Message: []byte(text)},
		}})
	}
}

// Progress reports progress; a negative fraction is unknown.
func (g *GuestCall) Progress(fraction float64, text string) { g.call.progress(fraction, text) }

// Report adds an encoded Step to the report.
func (g *GuestCall) Report(step []byte) error {
	s := &condensepb.Step{}
	if err := Unmarshal(step, s); err != nil {
		return fmt.Errorf("it reports something that is no Step: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.steps) < MaxSteps {
		g.steps = append(g.steps, s)
	}
	return nil
}

// Ask has the host answer a Generate, a CountTokens, or the Callback in one. It returns an encoded Reply, a refusal included.
func (g *GuestCall) Ask(ctx context.Context, name string, data []byte) ([]byte, error) {
	num := protowire.Number(2)
	if name == "generate" {
		return g.call.ask(ctx, num+1, data)
	}
	err := byhand.Each(data, func(f *byhand.Field) error {
		if f.Num != byhand.NumCallback {
			return nil
		}
		return byhand.Each(f.Value, func(f *byhand.Field) error {
			num, data = f.Num, f.Value
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("it counts with something that is no CountTokens: %w", err)
	}
	return g.call.ask(ctx, num, data)
}

// Described decodes a DescribeResponse.
func Described(data []byte) (*condensepb.DescribeResponse, error) {
	res := &condensepb.DescribeResponse{}
	if err := Unmarshal(data, res); err != nil {
		return nil, status.Errorf(codes.Internal, "its description is no DescribeResponse: %v", err)
	}
	return res, nil
}
