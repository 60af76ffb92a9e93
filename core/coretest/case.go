package coretest

import (
	"context"
	"errors"
	"time"

	"github.com/condensehq/condense/core"
)

// A testCase is a conversation and what is done with it.
type testCase struct {
	name    string
	about   string
	rule    string // the name of the rule that it is mainly about
	must    bool   // an error will not do
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
		Declined: e.declined, Err: errors.Join(e.failures...), Duration: time.Since(start),
		hung: e.hung,
	}
}

// cases is the conformance suite: conversations first, conduct after them.
var cases = append(conversations, conduct...)
