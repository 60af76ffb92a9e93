package caller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

type clientStream = grpc.BidiStreamingClient[condensepb.CondenseRequest, condensepb.CondenseResponse]

// A call is the host's side of one condensation. Its goroutine receives, a second one sends, a third counts: if both peers only
// sent, both would block when the flow-control windows of HTTP/2 are full.
type call struct {
	client   *Client
	req      *core.Request
	estimate bool // what it would cost is all that is wanted
	stream   clientStream
	replies  chan *condensepb.Reply
	work     chan *condensepb.Callback // callbacks that take time; nil before the first
	models   *modelUse                 // nil before the first is asked for
	others   sync.WaitGroup

	answer    answer
	fragments wire.Assembler
	seen      struct{ envelopes, callbacks, lines int }
	countable int // bytes that may still be counted
}

// waiting is how many replies, and how many callbacks, may wait. A plugin that makes more
// callbacks without reading the replies is blocked.
const waiting = 64

// Condense asks the plugin for a shorter conversation. Messages that the plugin kept are the messages of req. It
// returns promptly when ctx is done, whatever the plugin does. An error of the plugin is a [*RemoteError]. A result
// that is returned with an error has only the usage of the host's models.
func (c *Client) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	return c.call(ctx, req, false)
}

// EstimateCost implements [core.CostEstimator]. The error wraps [errors.ErrUnsupported] if the plugin does not estimate.
func (c *Client) EstimateCost(ctx context.Context, req *core.Request) (core.Usage, error) {
	if !c.estimates.Load() {
		return core.Usage{}, fmt.Errorf("the plugin estimates no cost: %w", errors.ErrUnsupported)
	}
	res, err := c.call(ctx, req, true)
	if err != nil {
		return core.Usage{}, err
	}
	return res.Usage, nil
}

func (c *Client) call(ctx context.Context, req *core.Request, estimate bool) (*core.Result, error) {
	if req == nil || req.Counter == nil {
		return nil, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := c.rpc.Condense(within, wire.CallOptions...)
	if err != nil {
		return nil, fromStatus(ctx, err)
	}
	call := &call{
		client: c, req: req, estimate: estimate, stream: stream, replies: make(chan *condensepb.Reply, waiting),
		answer:    newAnswer(req.Messages, c.opts.Limits),
		fragments: wire.Assembler{Max: c.opts.Limits.AnswerBytes, Fault: func(err error) error { return broken("%w", err) }},
		countable: c.opts.Limits.CountBytes,
	}
	call.others.Go(func() {
		if err := call.send(within); err != nil {
			cancel(err) // so that receive does not wait for an answer
		}
	})
	res, err := call.receive(within)
	if cause := context.Cause(within); cause != nil && ctx.Err() == nil {
		err = cause // the stream ended because sending failed
	}
	cancel(nil)
	call.others.Wait()
	res = call.charge(res)
	switch {
	case err == nil:
		return res, nil
	case errors.Is(err, ErrProtocol), errors.Is(err, core.ErrInvalidRequest), errors.As(err, new(*core.ViolationError)):
		return res, err
	default:
		return res, fromStatus(ctx, err)
	}
}

// charge adds the usage of the host's models to the result, whatever the plugin reports. A
// call that failed has a result for that only.
func (c *call) charge(res *core.Result) *core.Result {
	if c.models == nil || c.models.spent == (core.Usage{}) {
		return res
	}
	if res == nil {
		res = &core.Result{}
	}
	res.Usage = res.Usage.Add(c.models.spent)
	return res
}

// send sends the history, and replies as they become ready, until ctx is done. Its error is
// of this end; receive detects errors of the stream.
func (c *call) send(ctx context.Context) error {
	err := c.history(ctx)
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case r := <-c.replies:
			err = c.reply(r)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil // the stream has ended
	}
	return err
}

// history sends the request: the start message, then runs of messages.
func (c *call) history(ctx context.Context) error {
	start := toStart(c.req)
	start.LogLevel, start.Host, start.Estimate = c.logLevel(ctx), byhand.Valid(c.client.opts.Host), c.estimate
	start.Callbacks = c.callbacks()
	if list := c.client.opts.Models; list != nil {
		start.Models = toModels(list(c.req))
	}
	err := wire.Send(&condensepb.CondenseRequest{Kind: &condensepb.CondenseRequest_Start{Start: start}}, wrapRequest, c.stream.Send)
	if err != nil {
		return err
	}
	rest := c.req.Messages
	if c.req.Typed != nil { // what the user did not type is not the user's request, there as here
		rest = slices.Clone(rest)
		for i := range rest {
			rest[i].Program = rest[i].Program || new(core.Request).FromUser(&rest[i]) && !c.req.FromUser(&rest[i])
		}
	}
	for len(rest) > 0 {
		if err := c.flush(); err != nil {
			return err
		}
		n, err := c.run(rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// run sends an envelope of the first messages, and returns how many.
func (c *call) run(messages []core.Message) (n int, err error) {
	buf := runs.Get(chunkSize)
	*buf, n = byhand.AppendRun((*buf)[:0], messages, chunkSize)
	if len(*buf) <= wire.MaxEnvelope {
		return n, c.stream.SendMsg(&wire.Encoded{Buffer: mem.NewBuffer(buf, &runs)}) // which frees it
	}
	defer runs.Put(buf)
	return n, wire.Fragments(*buf, wrapRequest, c.stream.Send)
}

// flush sends the replies that are ready.
func (c *call) flush() error {
	for {
		select {
		case r := <-c.replies:
			if err := c.reply(r); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (c *call) reply(r *condensepb.Reply) error {
	env := &condensepb.CondenseRequest{Kind: &condensepb.CondenseRequest_Reply{Reply: r}}
	return wire.Send(env, wrapRequest, c.stream.Send)
}

// receive reads until the plugin is done.
func (c *call) receive(ctx context.Context) (*core.Result, error) {
	for {
		env, size, err := c.next()
		if err != nil {
			return nil, err
		}
		if c.seen.envelopes++; c.seen.envelopes > c.client.opts.Limits.Envelopes {
			return nil, broken("more than %d messages in a call", c.client.opts.Limits.Envelopes)
		}
		switch k := env.GetKind().(type) {
		case *condensepb.CondenseResponse_Callback:
			if err := c.callback(ctx, k.Callback, size); err != nil {
				return nil, err
			}
		case *condensepb.CondenseResponse_Log:
			c.log(ctx, k.Log)
		case *condensepb.CondenseResponse_Progress:
			c.progress(ctx, k.Progress)
		case *condensepb.CondenseResponse_Edit:
			if err := c.answer.add(k.Edit, size); err != nil {
				return nil, broken("%w", err)
			}
		case *condensepb.CondenseResponse_Done:
			res, err := c.answer.result(k.Done)
			if err != nil {
				return nil, broken("%w", err)
			}
			return res, nil
		default: // of a later version: ignored
		}
	}
}

// next returns the next envelope, assembled if it was sent in fragments, and its size in bytes.
func (c *call) next() (env *condensepb.CondenseResponse, size int, err error) {
	size, err = c.fragments.Next(c.stream, func(data []byte) (*condensepb.Fragment, error) {
		env = &condensepb.CondenseResponse{}
		err := wire.Unmarshal(data, env)
		return env.GetFragment(), err
	})
	switch {
	case errors.Is(err, io.EOF):
		err = broken("the call ended without an answer")
	// wire.CallOptions limit it.
	case status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "received message larger than max"):
		err = broken("%s", status.Convert(err).Message())
	}
	return env, size, err
}

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}

// chunkSize is the size at which the host ends a run of messages. A smaller one costs
// more CPU (64 KiB: a fifth more), a larger one costs memory and leaves the plugin idle
// for longer at the beginning.
const chunkSize = 256 << 10

// runs is the pool of buffers for the encodings of runs.
var runs bufferPool

// A bufferPool holds buffers of about one size. gRPC's own pools have sizes of 32 KiB and 1 MiB and are cleared every
// time.
type bufferPool struct{ pool sync.Pool }

// Get returns a buffer with a length of size.
func (p *bufferPool) Get(size int) *[]byte {
	if buf, ok := p.pool.Get().(*[]byte); ok && cap(*buf) >= size {
		*buf = (*buf)[:size]
		return buf
	}
	buf := make([]byte, size, max(size, chunkSize+chunkSize/8))
	return &buf
}

// Put returns a buffer to the pool, unless it is much larger than the others.
func (p *bufferPool) Put(buf *[]byte) {
	if cap(*buf) <= 4*chunkSize {
		p.pool.Put(buf)
	}
}

func wrapRequest(f *condensepb.Fragment) *condensepb.CondenseRequest {
	return &condensepb.CondenseRequest{Kind: &condensepb.CondenseRequest_Fragment{Fragment: f}}
}
