package coretest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
)

// A Verdict is what came of one case.
type Verdict struct {
	Case     string
	About    string // what the conversation holds or what is done
	Rule     string // the name of the rule that the case is mainly about
	Must     bool   // it may not be declined
	Declined error  // the provider's error, if it declined
	Err      error  // its failures, joined; each is a [*FailureError]
	Duration time.Duration

	hung bool // a call did not end in time
}

// A Report is what came of an examination.
type Report struct {
	Verdicts []Verdict
	// Deterministic is set if the provider, asked the same twice, answered the same.
	// Nothing demands it, but tests of whoever uses the provider are easier if it is.
	Deterministic bool
	// Stopped says why cases were left out; nil if none was.
	Stopped error
}

// Err returns all failures, joined, and why cases were left out; nil if the provider
// passed every case.
func (r *Report) Err() error {
	var errs []error
	for i := range r.Verdicts {
		errs = append(errs, r.Verdicts[i].Err)
	}
	return errors.Join(append(errs, r.Stopped)...)
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
	r.Deterministic = deterministic(ctx, p)
	return r
}

// TestProvider runs every case against p and returns all failures, joined; nil if p
// passed. Each failure is a [*FailureError] and quotes the rule that was broken.
func TestProvider(ctx context.Context, p core.CondensationProvider) error {
	return Examine(ctx, p).Err()
}

// Run runs every case as a subtest of t, each with a provider that open returns. What
// open has to release it releases with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) core.CondensationProvider) {
	t.Helper()
	for i := range cases {
		hung := false
		t.Run(cases[i].name, func(t *testing.T) {
			v := cases[i].run(t.Context(), open(t))
			hung = v.hung
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
}

// deterministic asks p the same twice and compares.
func deterministic(ctx context.Context, p core.CondensationProvider) bool {
	e := examiner{provider: p}
	req := HalfRequest(Session())
	a, b := e.ask(ctx, req.Clone()), e.ask(ctx, req.Clone())
	return a != nil && b != nil && sameMessages(a.Messages, b.Messages) == nil
}
