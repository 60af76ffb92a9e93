package coretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
)

// The names of the rules of the contract.
const (
	ruleReturn  = "return"
	ruleAnswer  = "answer-ordinary"
	ruleContext = "heed-context"
	ruleRequest = "leave-request"
	ruleUsage   = "plausible-usage"
)

var contract = []core.Rule{
	{Name: ruleReturn, Text: "A provider returns: it does not panic and does not end its goroutine."},
	{Name: ruleAnswer, Text: "An ordinary session with a budget that can be met is answered in time, not declined."},
	{Name: ruleContext, Text: "A provider returns promptly once its context is done, with an error wrapping ctx.Err()."},
	{Name: ruleRequest, Text: "A provider modifies nothing of a request, during the call or later: it does not keep it."},
	{Name: ruleUsage, Text: "Usage is what was spent on models: no number of it is negative, infinite or no number."},
}

// Contract returns the requirements for a provider in addition to [core.Rules].
func Contract() []core.Rule { return slices.Clone(contract) }

// rule returns the rule of that name.
func rule(name string) core.Rule {
	for _, r := range append(core.Rules(), contract...) {
		if r.Name == name {
			return r
		}
	}
	return core.Rule{Name: name}
}

// A FailureError says in which case a provider broke which rule.
type FailureError struct {
	Case string
	Rule core.Rule // of [core.Rules] or [Contract]
	Err  error     // how; a [*core.ViolationError] for a rule of core, the first of it
	More int       // how many more violations of that rule the answer has
}

// Error names the case, says how the rule was broken, and quotes it.
func (e *FailureError) Error() string {
	text := e.Err.Error()
	if !strings.HasPrefix(text, e.Rule.Name+": ") { // as a violation does
		text = e.Rule.Name + ": " + text
	}
	if e.More > 0 {
		text += fmt.Sprintf(" (and %d more like it)", e.More)
	}
	return e.Case + ": " + text + "\n\trule: " + e.Rule.Text
}

// Unwrap returns how the rule was broken.
func (e *FailureError) Unwrap() error { return e.Err }

// A testCase is a conversation and an operation on it.
type testCase struct {
	name    string
	about   string
	rule    string // the name of the rule that it is mainly about
	must    bool   // an error is a failure
	request func() *core.Request
	check   func(ctx context.Context, e *examiner, req *core.Request) // nil: ask once
}

func (c *testCase) run(ctx context.Context, p core.CondensationProvider) Verdict {
	start := time.Now()
	e := examiner{provider: p, name: c.name, must: c.must}
	if c.check == nil {
		e.ask(ctx, c.request())
	} else {
		c.check(ctx, &e, c.request())
	}
	return Verdict{
		Case: c.name, About: c.about, Rule: c.rule, Must: c.must,
		Declined: e.declined, Acted: e.acted, Err: errors.Join(e.failures...), Duration: time.Since(start),
		hung: e.hung,
	}
}

// cases is the conformance suite: conversations first, conduct after them.
var cases = append(conversations, conduct...)

// conduct has the cases that test behavior, not results.
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

// interrupted makes a call whose context is done or will be soon. A result instead of an
// error is accepted only if the provider may have finished first.
func (e *examiner) interrupted(ctx context.Context, req *core.Request, mayAnswer bool) {
	before := req.Clone()
	res, err := call(ctx, e.provider, req)
	if err == nil && !mayAnswer {
		e.fail(ruleContext, errors.New("it answered although its context was done"))
	}
	e.judge(ctx, before, req, res, err)
	if errors.Is(e.declined, ctx.Err()) {
		e.declined = nil // the error is required
	}
	e.acted = false // whether it is done before the caller gives up depends on the machine
}

// concurrently makes all calls at the same time, and checks the results after the last has
// returned: a provider may not modify a request after returning, and the examiner may not
// read it before.
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

// adopt returns after as a host passes it on: kept messages are the host's own, new ones
// have an ID, and all are measured.
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
