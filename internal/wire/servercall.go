package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

type serverStream = grpc.BidiStreamingServer[condensepb.CondenseRequest, condensepb.CondenseResponse]

// errEnded is the error of a callback whose call has ended.
var errEnded = errors.New("the call has ended")

// A serverCall is the plugin's side of one condensation. Its methods are safe for concurrent use: a provider may log, count and
// report from many goroutines, even after the call has ended.
type serverCall struct {
	stream    serverStream
	fragments Assembler
	level     slog.Level  // the least that the host wants
	estimate  bool        // the host wants to know only what the call would cost
	host      byhand.Host // once the request has come

	sending sync.Mutex // held while sending, so that fragments stay together
	ended   bool       // guarded by sending

	mu      sync.Mutex
	lastID  uint64
	waiting map[uint64]chan []byte // nil when no reply will come any more
}

// Condense asks the provider for a shorter conversation and sends the difference.
func (s *Server) Condense(stream serverStream) error {
	o, err := s.acquire()
	if err != nil {
		return err
	}
	defer o.calls.Done()
	c := newServerCall(stream)
	defer c.end()
	req, err := c.history(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(errEnded)
	go c.receive()
	// The provider works on a copy, so that the difference to the request is known even if it modifies the messages, and in a
	// separate goroutine, so that a provider that ignores its context does not block the host.
	given := req.Clone()
	c.host.Fill(ctx, given, cancel)
	answers := make(chan providerAnswer, 1)
	o.calls.Go(func() { // which the handler may not wait for
		a := providerAnswer{err: status.Error(codes.Internal, "the provider ended its goroutine without an answer")}
		defer func() { answers <- a }()
		a = s.ask(core.WithProgress(context.WithValue(ctx, callKey{}, c), c.progress), o.provider, given, c.estimate)
	})
	select {
	case a := <-answers:
		if cause := context.Cause(ctx); cause != nil && stream.Context().Err() == nil {
			return toStatus(cause) // a callback failed, so the provider's result is not valid
		}
		if a.err != nil {
			return a.err
		}
		return c.answer(req, a.res)
	case <-ctx.Done():
		return toStatus(context.Cause(ctx))
	}
}

type providerAnswer struct {
	res *core.Result
	err error // a status
}

// ask calls the provider. It recovers panics of the provider and of its error.
func (s *Server) ask(ctx context.Context, p core.CondensationProvider, req *core.Request, estimate bool) (a providerAnswer) {
	defer func() {
		if v := recover(); v != nil {
			a = providerAnswer{err: s.panicked(ctx, v)}
		}
	}()
	if estimate {
		a.res = &core.Result{Messages: req.Messages}
		a.res.Usage, a.err = core.EstimateCost(ctx, p, req)
	} else {
		a.res, a.err = p.Condense(ctx, req)
	}
	if a.err != nil {
		a.err = toStatus(a.err)
	}
	return a
}

// panicked reports a panic: the stack to the plugin's own log, the reason to the host.
func (s *Server) panicked(ctx context.Context, v any) error {
	stack := debug.Stack()
	s.opts.Logger.ErrorContext(ctx, "the provider panicked", "panic", fmt.Sprint(v), "stack", string(stack))
	return status.Error(codes.Internal, valid(fmt.Sprintf("panic: %v%s", v, plain.Where(stack))))
}

// begin receives the start of a call, and returns its encoding too.
func (c *serverCall) begin() (start *condensepb.Start, data []byte, err error) {
	kind, err := c.next()
	if err != nil {
		return nil, nil, err
	}
	if kind.Num != numStart {
		return nil, nil, status.Error(codes.InvalidArgument, "the call does not begin with start")
	}
	start = &condensepb.Start{}
	if err = proto.Unmarshal(kind.Value, start); err != nil {
		return nil, nil, invalid(err)
	}
	c.level = Levels[start.GetLogLevel()]
	return start, kind.Value, nil
}

// history receives the request. The host sends nothing else before it is complete.
func (c *serverCall) history(s *Server) (*core.Request, error) {
	start, data, err := c.begin()
	if err != nil {
		return nil, err
	}
	begun, err := byhand.DecodeStart(data)
	if err != nil {
		return nil, invalid(err)
	}
	s.models.Store(begun.Models)
	c.estimate, c.host.Ask, c.host.Callbacks = start.GetEstimate(), c.ask, start.GetCallbacks()
	req := begun.Request
	req.Abilities = s.strategy.Abilities
	req.Messages = make([]core.Message, 0, max(0, min(start.GetMessageCount(), 1<<16)))
	for int64(len(req.Messages)) < start.GetMessageCount() {
		run, err := c.run()
		if err != nil {
			return nil, err
		}
		if req.Messages, err = byhand.DecodeRun(run, req.Messages); err != nil {
			return nil, invalid(err)
		}
	}
	if n := len(req.Messages); int64(n) > start.GetMessageCount() {
		return nil, status.Errorf(codes.InvalidArgument, "%d messages came; %d were announced", n, start.GetMessageCount())
	}
	at := make(map[string]int, len(req.Messages))
	for i := range req.Messages {
		id := req.Messages[i].ID
		if at[id] = i; len(at) <= i || id == "" {
			return nil, status.Errorf(codes.InvalidArgument, "message %d has the ID %q: want one that no other has", i, valid(id))
		}
	}
	c.host.Messages, c.host.At = req.Messages, at
	return req, nil
}

// run returns the encoded Messages in the next envelope; nothing if it is something of a later version.
func (c *serverCall) run() ([]byte, error) {
	kind, err := c.next()
	if kind.Num != numMessages {
		kind.Value = nil
	}
	return kind.Value, err
}

// next returns what the next envelope is, assembled if it was sent in fragments.
func (c *serverCall) next() (kind byhand.Field, err error) {
	_, err = c.fragments.Next(c.stream, func(data []byte) (_ *condensepb.Fragment, err error) {
		if kind, err = kindOf(data); err != nil || kind.Num != numFragment {
			return nil, err
		}
		fragment := &condensepb.Fragment{}
		return fragment, proto.Unmarshal(kind.Value, fragment)
	})
	return kind, err
}

// The kinds of a CondenseRequest.
const (
	numStart = iota + 1
	numMessages
	numReply
	numFragment
)

// kindOf returns the field of an encoded CondenseRequest that says what it is; none if it is of a later version.
func kindOf(data []byte) (kind byhand.Field, err error) {
	return kind, byhand.Each(data, func(f *byhand.Field) error {
		if f.Num <= numFragment && f.Value != nil {
			kind = *f
		}
		return nil
	})
}

// invalid returns the status of a mistake of the host.
func invalid(err error) error { return status.Error(codes.InvalidArgument, valid(err.Error())) }

func newServerCall(stream serverStream) *serverCall {
	return &serverCall{stream: stream, fragments: Assembler{Max: math.MaxInt, Fault: invalid}, waiting: map[uint64]chan []byte{}}
}

// receive passes replies to the callbacks that wait for them, until the stream ends.
func (c *serverCall) receive() {
	for {
		id := uint64(0)
		kind, err := c.next()
		if err == nil && kind.Num == numReply {
			err = byhand.Each(kind.Value, func(f *byhand.Field) error {
				if f.Num == 1 {
					id = f.N
				}
				return nil
			})
		}
		if err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, ch := range c.waiting {
				close(ch)
			}
			c.waiting = nil
			return
		}
		c.mu.Lock()
		ch := c.waiting[id] // none for what is no reply
		delete(c.waiting, id)
		c.mu.Unlock()
		if ch != nil {
			ch <- kind.Value // has room for it
		}
	}
}

// send sends env, unless the call has ended.
func (c *serverCall) send(env *condensepb.CondenseResponse) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.ended {
		return errEnded
	}
	return Send(env, wrapResponse, c.stream.Send)
}

// end stops goroutines of the provider that still run from using the stream, which must not
// be used after its handler has returned.
func (c *serverCall) end() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.ended = true
}

// ask sends the Callback whose field num is request, and waits for the Reply, or for ctx.
func (c *serverCall) ask(ctx context.Context, num protowire.Number, request []byte) ([]byte, error) {
	cb := &condensepb.Callback{}
	if err := Unmarshal(byhand.AppendBytes(nil, num, request), cb); err != nil {
		return nil, fmt.Errorf("it asks with something that is no Callback: %w", err)
	}
	ch := make(chan []byte, 1)
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		return nil, errEnded
	}
	c.lastID++
	cb.Id = c.lastID
	c.waiting[cb.GetId()] = ch
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, cb.GetId())
	}()
	if err := c.send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Callback{Callback: cb}}); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r, ok := <-ch:
		if !ok {
			return nil, errEnded
		}
		return r, nil
	}
}

// answer sends the difference of res to req, and the end mark.
func (c *serverCall) answer(req *core.Request, res *core.Result) error {
	if err := byhand.Expressible(req, res); err != nil {
		return toStatus(err)
	}
	err := byhand.Edits(req.Messages, res.Messages, c.host.At, func(edit []byte) error {
		c.sending.Lock()
		defer c.sending.Unlock()
		if c.ended {
			return errEnded
		}
		return sendEdit(c.stream, edit)
	})
	if err != nil {
		return toStatus(err)
	}
	steps, err := ToSteps(res.Steps)
	if err != nil {
		return toStatus(err)
	}
	return c.send(&condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Done{
		Done: &condensepb.Done{Usage: ToUsage(Less(res.Usage, c.host.Spent())), Steps: steps, State: res.State, Later: valid(res.Later)},
	}})
}

// ToSteps returns steps as the generated code has them.
func ToSteps(steps []core.Step) (out []*condensepb.Step, _ error) {
	for i := range steps[:min(len(steps), MaxSteps)] {
		step := &condensepb.Step{}
		if err := proto.Unmarshal(byhand.EncodeStep(&steps[i]), step); err != nil {
			return nil, err
		}
		out = append(out, step)
	}
	return out, nil
}

// MaxSteps is how many steps of an answer are reported; the rest is dropped.
const MaxSteps = 1000

// ToUsage returns a usage as the generated code has it.
func ToUsage(u core.Usage) *condensepb.Usage {
	return &condensepb.Usage{
		Calls: int64(u.Calls), InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens),
		CachedTokens: int64(u.CachedTokens), Usd: u.USD, Unpriced: int64(u.Unpriced),
	}
}

// Less returns u without v.
func Less(u, v core.Usage) core.Usage {
	return core.Usage{
		Calls: max(u.Calls-v.Calls, 0), InputTokens: max(u.InputTokens-v.InputTokens, 0),
		OutputTokens: max(u.OutputTokens-v.OutputTokens, 0), CachedTokens: max(u.CachedTokens-v.CachedTokens, 0),
		USD: cents(u.USD - v.USD), Unpriced: max(u.Unpriced-v.Unpriced, 0),
	}
}

// cents returns an amount without the rounding errors of floating-point arithmetic.
func cents(usd float64) float64 {
	const least = 1e-9
	if usd < least {
		return 0
	}
	return usd
}
