package caller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
)

// TestMisbehavingProvider: what a chain makes of a provider that does something wrong does not depend on
// which side of the protocol it is on. What no edit can express, the plugin's own end
// finds; the chain then has an error that names the rule.
func TestMisbehavingProvider(t *testing.T) {
	notInEdits := map[string]bool{"answer": true, "valid-parts": true, "known-ids": true, "unique-ids": true, "keep-order": true, "keep-role": true}
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for _, m := range misbehaving.All(release) {
		t.Run(m.Name, func(t *testing.T) {
			if m.Name == "AnswersLate" {
				return // sleeps for longer than a test may: HangsForever is the same here
			}
			t.Parallel()
			want, named := m.Outcome, ""
			switch {
			case notInEdits[m.Rule]:
				want, named = core.OutcomeFailed, m.Rule+": "
			case m.Name == "LiesAboutUsage":
				want, named = core.OutcomeFailed, "usage is"
			}
			srv := wire.NewServer(provided(m.Provider).Only(core.AbilitiesOf(m.Provider)), nil)
			c := caller.NewClient(connect(t, srv.Register), nil)
			if _, err := c.Describe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.Configure(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			chain, err := core.NewChain([]core.NamedProvider{{Name: "plugin", Provider: c, Timeout: 300 * time.Millisecond}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var attempt core.Attempt
			req := coretest.HalfRequest(m.Session())
			if m.Outcome != core.OutcomeFailed { // others should not fail because the machine is busy
				chain, err = core.NewChain([]core.NamedProvider{{Name: "plugin", Provider: c}}, nil)
				if err != nil {
					t.Fatal(err)
				}
			}
			out, err := chain.Run(t.Context(), req)
			if exhausted, ok := errors.AsType[*core.ExhaustedError](err); ok {
				attempt = exhausted.Attempts[0]
			} else if err != nil {
				t.Fatal(err)
			} else {
				attempt = out.Attempts[0]
			}
			if attempt.Outcome != want || !strings.Contains(attempt.Reason, named) {
				t.Errorf("got %s: %s; want %s: %s", attempt.Outcome, attempt.Reason, want, named)
			}
		})
	}
}

// TestHangs: a call returns within moments of its end, whatever the plugin does, and the
// plugin goes on to answer others.
func TestHangs(t *testing.T) {
	release := make(chan struct{})
	for name, p := range map[string]core.CondensationProvider{
		"heeds its context": misbehaving.Named("Hangs"),
		"does not":          misbehaving.HangsForever(release),
	} {
		t.Run(name, func(t *testing.T) {
			c := caller.NewClient(connect(t, wire.NewServer(provided(p), nil).Register), nil)
			if err := c.Configure(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			for _, how := range []string{"deadline", "cancel"} {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				want := context.DeadlineExceeded
				if how == "cancel" {
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(50*time.Millisecond, cancel)
					want = context.Canceled
				}
				_, err := c.Condense(ctx, coretest.HalfRequest(coretest.Session()))
				if !errors.Is(err, want) {
					t.Errorf("%s: got error %v; want %v", how, err, want)
				}
				cancel()
			}
			if _, err := c.Describe(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
}
