package coretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
)

// conduct are the cases about how a provider behaves.
var conduct = []testCase{
	{
		name: "cancelled", about: "the context is done before the call",
		rule:    ruleContext,
		request: half(Session),
		check: func(ctx context.Context, e *examiner, req *core.Request) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			e.interrupted(ctx, req, false)
		},
	},
	{
		name: "cancelled during the call", about: "the caller gives up while the provider works",
		rule:    ruleContext,
		request: half(func() []core.Message { return Conversation(exchanges(100, core.RoleTool)...) }),
		check: func(ctx context.Context, e *examiner, req *core.Request) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer time.AfterFunc(5*time.Millisecond, cancel).Stop()
			e.interrupted(ctx, req, true)
		},
	},
	{
		name: "deadline during the call", about: "the time is up while the provider works",
		rule:    ruleContext,
		request: half(func() []core.Message { return Conversation(exchanges(100, core.RoleUser)...) }),
		check: func(ctx context.Context, e *examiner, req *core.Request) {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			e.interrupted(ctx, req, true)
		},
	},
	{
		name: "request kept", about: "a second call must not change the first one's request or result",
		rule:    ruleRequest,
		request: half(Session),
		check: func(ctx context.Context, e *examiner, req *core.Request) {
			before := req.Clone()
			res := e.ask(ctx, req)
			if e.hung {
				return
			}
			var messages []core.Message
			if res != nil {
				messages = cloneMessages(res.Messages)
			}
			e.ask(ctx, HalfRequest(Conversation(exchanges(8, core.RoleTool)...)))
			if e.hung {
				return
			}
			if err := sameRequest(before, req); err != nil {
				e.fail(ruleRequest, fmt.Errorf("after the next call: %w", err))
			}
			if res == nil {
				return
			}
			if err := sameMessages(messages, res.Messages); err != nil {
				e.fail(ruleRequest, fmt.Errorf("the result, after the next call: %w", err))
			}
		},
	},
	{
		name: "concurrent calls", about: "eight calls at once, two conversations (worth more with the race detector)",
		rule:    ruleReturn,
		request: half(Session),
		check: func(ctx context.Context, e *examiner, req *core.Request) {
			other := HalfRequest(Conversation(exchanges(8, core.RoleTool)...))
			e.concurrently(ctx, req.Clone(), other.Clone(), req.Clone(), other.Clone(), req.Clone(), other.Clone(), req, other)
		},
	},
	{
		name: "again", about: "what the provider made of a conversation is handed to it again, with half the budget",
		rule:    "valid-parts",
		request: half(Session),
		check: func(ctx context.Context, e *examiner, req *core.Request) {
			res := e.ask(ctx, req)
			if res == nil {
				return
			}
			messages, err := adopt(req.Messages, res.Messages)
			if err != nil {
				e.fail("valid-parts", err)
				return
			}
			e.ask(ctx, HalfRequest(messages))
		},
	},
}

// interrupted makes a call whose context is done or will be soon. An answer is as good
// as an error only if the provider may have been faster.
func (e *examiner) interrupted(ctx context.Context, req *core.Request, mayAnswer bool) {
	before := req.Clone()
	res, err := call(ctx, e.provider, req)
	if err == nil && !mayAnswer {
		e.fail(ruleContext, errors.New("it answered although its context was done"))
	}
	e.judge(ctx, before, req, res, err)
	if errors.Is(e.declined, ctx.Err()) {
		e.declined = nil // as it should
	}
}

// concurrently makes all calls at once, and looks at the answers when all are in: a
// provider may not touch a request after returning, the examiner not before.
func (e *examiner) concurrently(parent context.Context, reqs ...*core.Request) {
	ctx, cancel := context.WithTimeout(parent, CallTimeout)
	defer cancel()
	type answer struct {
		before *core.Request
		res    *core.Result
		err    error
	}
	answers := make([]answer, len(reqs))
	var wg sync.WaitGroup
	for i, req := range reqs {
		answers[i].before = req.Clone()
		wg.Go(func() { answers[i].res, answers[i].err = call(ctx, e.provider, req) })
	}
	wg.Wait()
	for i, a := range answers {
		e.late(parent, ctx, a.err)
		e.judge(ctx, a.before, reqs[i], a.res, a.err)
	}
}

// adopt returns after as a host would hand it out: what was kept is the host's own, what
// is new has an ID, everything is measured.
func adopt(before, after []core.Message) ([]core.Message, error) {
	named := make([]core.Message, len(after))
	for i, m := range after {
		if m.ID == "" {
			m = core.Message{ID: fmt.Sprintf("new%d", i), Role: m.Role, Kind: m.Kind, Parts: m.Parts}
			if m.Kind == core.KindOriginal {
				m.Kind = core.KindSummary
			}
		}
		named[i] = m
	}
	messages, err := core.Diff(before, named).Apply(before)
	if err != nil {
		return nil, err
	}
	core.Measure(Counter{}, messages)
	return messages, nil
}
