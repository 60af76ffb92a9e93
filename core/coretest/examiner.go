package coretest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// An examiner makes the calls of one case and records faults of the results.
type examiner struct {
	provider core.CondensationProvider
	name     string // of the case
	must     bool
	failures []error
	declined error
	acted    bool // an answer differs from its request
	hung     bool // a call did not end in time; it may still be running
}

func (e *examiner) fail(name string, err error) {
	e.failures = append(e.failures, &FailureError{Case: e.name, Rule: rule(name), Err: err})
}

// ask makes a call with the usual deadline and makes the checks that apply to every call.
// The result is nil if there is no valid one.
func (e *examiner) ask(ctx context.Context, req *core.Request) *core.Result {
	parent := ctx
	ctx, cancel := context.WithTimeout(parent, CallTimeout)
	defer cancel()
	before := req.Clone()
	res, err := call(ctx, e.provider, req)
	e.late(parent, ctx, err)
	return e.judge(ctx, before, req, res, err)
}

// late records that a call exceeded the usual deadline, the one of ctx and not of parent.
func (e *examiner) late(parent, ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil && parent.Err() == nil {
		e.hung = true
		e.fail(ruleAnswer, fmt.Errorf("no answer within %s: %w", CallTimeout, err))
	}
}

// judge checks the result for req. Before is a copy of req from before the call.
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
		before.Abilities = core.AbilitiesOf(e.provider) // those of a plugin are known by now
		e.acted = e.acted || res != nil && sameMessages(before.Messages, res.Messages) != nil
		return e.valid(before, res)
	}
	return nil
}

func (e *examiner) valid(req *core.Request, res *core.Result) *core.Result {
	if res != nil {
		if err := plausible(res.Usage); err != nil {
			e.fail(ruleUsage, err)
		}
	}
	violations := violations(core.Verify(req, res))
	if len(violations) == 0 {
		return res
	}
	// A violation of the same rule in many messages is reported once.
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

// violations lists the violations in an error of [core.Verify].
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

// sameRequest describes how is differs from was.
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

// sameMessages describes how is differs from was.
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
	return plain.Each(messages, func(x core.Message) core.Message { return x.Clone() })
}

const (
	// CallTimeout is the deadline of every call of an examination. Calls to a language
	// model take seconds, at times tens of them.
	CallTimeout = time.Minute
	// Promptness is how long a provider may take to return once its context is done.
	Promptness = time.Second
)

// errStuck means that a call did not return after its context was done.
var errStuck = fmt.Errorf("still running %s after its context was done", Promptness)

// A lostError says that a call ended without returning.
type lostError struct{ how string }

func (e *lostError) Error() string { return e.how }

// call calls p in its own goroutine, so that a panic there is a failure of the case and
// does not end the examination.
func call(ctx context.Context, p core.CondensationProvider, req *core.Request) (*core.Result, error) {
	type answer struct {
		res *core.Result
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: &lostError{"it ended its goroutine"}}
		defer func() {
			if v := recover(); v != nil {
				a = answer{err: &lostError{fmt.Sprintf("it panicked: %v\n%s", v, debug.Stack())}}
			}
			answers <- a
		}()
		res, err := p.Condense(ctx, req)
		if err != nil {
			_ = err.Error() // a nil pointer in an error panics here or in its reader
		}
		a = answer{res, err}
	}()
	select {
	case a := <-answers:
		return a.res, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(Promptness)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.res, a.err
	case <-timer.C:
		return nil, errStuck
	}
}

// isLost reports whether err says that the call did not return: here, or in a plugin.
func isLost(err error) bool {
	var lost *lostError
	var fault interface{ Fault() bool }
	return errors.As(err, &lost) || errors.As(err, &fault) && fault.Fault()
}

// A Verdict is the result of one case.
type Verdict struct {
	Case     string
	About    string // the content of the conversation, or the operation
	Rule     string // the name of the rule that the case is mainly about
	Must     bool   // it may not be declined
	Declined error  // the provider's error, if it declined
	Acted    bool   // it changed a conversation; a case in which it changes none says little about it
	Err      error  // its failures, joined; each is a [*FailureError]
	Duration time.Duration

	hung bool // a call did not end in time
}

// A Report is the result of an examination.
type Report struct {
	Verdicts []Verdict
	// Deterministic is set if the provider gave the same result for the same request twice.
	// That is not required, but makes tests of its callers easier. Unmeasured is set if it gave none at all.
	Deterministic, Unmeasured bool
	// Stopped says why cases were left out; nil if none was.
	Stopped error
}

// Err returns all failures, joined, and why cases were left out; nil if the provider
// passed every case.
func (r *Report) Err() error {
	errs := plain.Each(r.Verdicts, func(x Verdict) error { return x.Err })
	return errors.Join(append(errs, r.Stopped)...)
}

// Acted returns in how many cases the provider changed a conversation.
func (r *Report) Acted() int {
	n := 0
	for i := range r.Verdicts {
		if r.Verdicts[i].Acted {
			n++
		}
	}
	return n
}

// Examine runs every case against p. It ends early if ctx does or if a call did not end in
// time.
func Examine(ctx context.Context, p core.CondensationProvider) *Report {
	r := &Report{}
	for i := range cases {
		if ctx.Err() != nil {
			r.Stopped = fmt.Errorf("%d of %d cases left out: %w", len(cases)-i, len(cases), context.Cause(ctx))
			return r
		}
		v := cases[i].run(ctx, p)
		r.Verdicts = append(r.Verdicts, v)
		if v.hung && i+1 < len(cases) {
			r.Stopped = fmt.Errorf("%d of %d cases left out: a call did not end in time", len(cases)-i-1, len(cases))
			return r
		}
	}
	r.Deterministic, r.Unmeasured = deterministic(ctx, p)
	return r
}

// TestProvider runs every case against p and returns all failures, joined; nil if p
// passed. Each failure is a [*FailureError] and quotes the rule that was broken.
func TestProvider(ctx context.Context, p core.CondensationProvider) error {
	return Examine(ctx, p).Err()
}

// Run runs every case as a subtest of t, each with a provider that open returns. Open
// releases its resources with t.Cleanup. It logs in how many cases the provider changed a conversation.
func Run(t *testing.T, open func(t *testing.T) core.CondensationProvider) {
	t.Helper()
	acted := 0
	for i := range cases {
		hung := false
		t.Run(cases[i].name, func(t *testing.T) {
			v := cases[i].run(t.Context(), open(t))
			hung = v.hung
			if v.Acted {
				acted++
			}
			switch {
			case v.Err != nil:
				t.Error(v.Err)
			case v.Declined != nil:
				t.Logf("declined: %v", v.Declined)
			}
		})
		if hung {
			t.Fatalf("%d of %d cases left out: a call did not end in time", len(cases)-i-1, len(cases))
		}
	}
	t.Logf("acted in %d of %d cases", acted, len(cases))
}

// deterministic sends p the same request twice and compares the results. Unmeasured reports that there is none.
func deterministic(ctx context.Context, p core.CondensationProvider) (same, unmeasured bool) {
	e := examiner{provider: p}
	req := HalfRequest(Session())
	a, b := e.ask(ctx, req.Clone()), e.ask(ctx, req.Clone())
	return a != nil && b != nil && sameMessages(a.Messages, b.Messages) == nil, a == nil && b == nil
}
