package coretest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/condensehq/condense/core"
)

// An examiner asks a provider for one case and notes what is wrong with the answers.
type examiner struct {
	provider core.CondensationProvider
	name     string // of the case
	must     bool
	failures []error
	declined error
	hung     bool // a call did not end in time; it may still be running
}

func (e *examiner) fail(name string, err error) {
	e.failures = append(e.failures, &FailureError{Case: e.name, Rule: rule(name), Err: err})
}

// ask makes a call with the usual deadline and checks all that can be checked about any
// call. The result is nil if there is none that is lawful.
func (e *examiner) ask(ctx context.Context, req *core.Request) *core.Result {
	parent := ctx
	ctx, cancel := context.WithTimeout(parent, CallTimeout)
	defer cancel()
	before := req.Clone()
	res, err := call(ctx, e.provider, req)
	e.late(parent, ctx, err)
	return e.judge(ctx, before, req, res, err)
}

// late notes that a call failed because it ran into the usual deadline, that of ctx and
// not of parent.
func (e *examiner) late(parent, ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil && parent.Err() == nil {
		e.hung = true
		e.fail(ruleAnswer, fmt.Errorf("no answer within %s: %w", CallTimeout, err))
	}
}

// judge checks the answer to req, which was before when it was handed over.
func (e *examiner) judge(ctx context.Context, before, req *core.Request, res *core.Result, err error) *core.Result {
	if errors.Is(err, errStuck) {
		e.hung = true
		e.fail(ruleContext, err)
		return nil // req may be in use still
	}
	if err := sameRequest(before, req); err != nil {
		e.fail(ruleRequest, err)
	}
	switch {
	case isLost(err):
		e.fail(ruleReturn, err)
	case err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		e.fail(ruleContext, fmt.Errorf("its error wraps something else than %q: %w", ctx.Err().Error(), err))
	case err != nil && e.must:
		e.fail(ruleAnswer, fmt.Errorf("declined: %w", err))
	case err != nil:
		e.declined = err
	default:
		return e.lawful(before, res)
	}
	return nil
}

func (e *examiner) lawful(req *core.Request, res *core.Result) *core.Result {
	if res != nil {
		if err := plausible(res.Usage); err != nil {
			e.fail(ruleUsage, err)
		}
	}
	violations := violations(core.Verify(req, res))
	if len(violations) == 0 {
		return res
	}
	// A provider that does something wrong with every message need not be told so for
	// each.
	first := map[string]*FailureError{}
	for _, v := range violations {
		if f, ok := first[v.Rule]; ok {
			f.More++
			continue
		}
		f := &FailureError{Case: e.name, Rule: rule(v.Rule), Err: v}
		first[v.Rule] = f
		e.failures = append(e.failures, f)
	}
	return nil
}

// violations lists what [core.Verify] found.
func violations(err error) []*core.ViolationError {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var all []*core.ViolationError
	for _, err := range joined.Unwrap() {
		if v, ok := errors.AsType[*core.ViolationError](err); ok {
			all = append(all, v)
		}
	}
	return all
}

func plausible(u core.Usage) error {
	if u.Calls < 0 || u.InputTokens < 0 || u.OutputTokens < 0 || u.CachedTokens < 0 || u.USD < 0 ||
		math.IsNaN(u.USD) || math.IsInf(u.USD, 0) {
		return fmt.Errorf("usage is %+v", u)
	}
	return nil
}

// sameRequest says how is differs from was.
func sameRequest(was, is *core.Request) error {
	if err := sameMessages(was.Messages, is.Messages); err != nil {
		return err
	}
	for i := range was.Messages {
		if a, b := &was.Messages[i], &is.Messages[i]; a.Tokens != b.Tokens || a.Protected != b.Protected || !a.Time.Equal(b.Time) {
			return fmt.Errorf("message %s: its tokens, time or protection were changed", a.ID)
		}
	}
	switch {
	case was.Budget != is.Budget:
		return fmt.Errorf("the budget was %+v, is %+v", was.Budget, is.Budget)
	case !slices.Equal(was.FilesRead, is.FilesRead):
		return fmt.Errorf("the files read were %q, are %q", was.FilesRead, is.FilesRead)
	case was.Trigger != is.Trigger, was.Profile != is.Profile, was.Mode != is.Mode, was.System != is.System,
		was.Environment != is.Environment, was.Instructions != is.Instructions, was.Counter != is.Counter:
		return errors.New("one of its settings was changed")
	}
	return nil
}

// sameMessages says how is differs from was.
func sameMessages(was, is []core.Message) error {
	if len(was) != len(is) {
		return fmt.Errorf("%d messages became %d", len(was), len(is))
	}
	for i := range was {
		if !was[i].Equal(is[i]) {
			return fmt.Errorf("message %d, %q, was changed", i, was[i].ID)
		}
	}
	return nil
}

func cloneMessages(messages []core.Message) []core.Message {
	c := make([]core.Message, len(messages))
	for i := range messages {
		c[i] = messages[i].Clone()
	}
	return c
}
