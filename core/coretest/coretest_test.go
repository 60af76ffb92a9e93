package coretest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
)

var good = map[string]func() core.CondensationProvider{
	"Keeps":     coretest.Keeps,
	"Truncates": coretest.Truncates,
}

func TestGoodProvidersPass(t *testing.T) {
	for name, open := range good {
		t.Run(name, func(t *testing.T) {
			report := coretest.Examine(t.Context(), open())
			if err := report.Err(); err != nil {
				t.Fatal(err)
			}
			if !report.Deterministic {
				t.Error("got a report that it is not deterministic; it is")
			}
			if acted := report.Acted(); (acted == 0) != (name == "Keeps") {
				t.Errorf("it acted in %d of %d cases", acted, len(report.Verdicts))
			}
			for _, v := range report.Verdicts {
				if v.Declined != nil {
					t.Errorf("%s: got declined, %v", v.Case, v.Declined)
				}
			}
		})
	}
}

func TestRun(t *testing.T) {
	coretest.Run(t, func(*testing.T) core.CondensationProvider { return coretest.Truncates() })
}

// TestMisbehavingProvidersFail runs in a bubble of fake time: some hang for minutes.
func TestMisbehavingProvidersFail(t *testing.T) {
	for i, m := range misbehaving.All(nil) {
		t.Run(m.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer func() {
					close(release)
					time.Sleep(time.Hour) // for one that dawdles
				}()
				report := coretest.Examine(t.Context(), misbehaving.All(release)[i].Provider)
				err := report.Err()
				if m.Rule == "" {
					if err != nil {
						t.Errorf("got %v, want it to pass: it breaks no rule", err)
					}
					return
				}
				if rules := failedRules(err); !rules[m.Rule] {
					t.Errorf("got the rules %v broken, want %s among them:\n%v", rules, m.Rule, err)
				}
				if len(err.Error()) > 100_000 {
					t.Errorf("got a report of %d bytes, want one that can be read", len(err.Error()))
				}
			})
		})
	}
}

// failedRules returns the names of the rules of all failures in err.
func failedRules(err error) map[string]bool {
	rules := map[string]bool{}
	var walk func(error)
	walk = func(err error) {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range many.Unwrap() {
				walk(err)
			}
		} else if f, ok := errors.AsType[*coretest.FailureError](err); ok {
			rules[f.Rule.Name] = true
		}
	}
	walk(err)
	return rules
}

func TestEveryRuleIsBrokenByAProvider(t *testing.T) {
	broken := map[string]bool{"only-results": true} // by TestIngest
	names := map[string]bool{}
	for _, m := range misbehaving.All(nil) {
		if names[m.Name] {
			t.Errorf("%s is registered twice", m.Name)
		}
		names[m.Name], broken[m.Rule] = true, true
	}
	for _, r := range append(core.Rules(), coretest.Contract()...) {
		if !broken[r.Name] {
			t.Errorf("no provider breaks %s", r.Name)
		}
		delete(broken, r.Name)
	}
	delete(broken, "")
	if len(broken) > 0 {
		t.Errorf("got violations of the unknown rules %v", broken)
	}
}

func TestFailureQuotesTheRule(t *testing.T) {
	err := coretest.TestProvider(t.Context(), misbehaving.Named("DropsResult"))
	want := "session with tools as text"
	if err == nil || strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want no failure of %q, which has no calls", err, want)
	}
	want = "parallel calls: keep-pairs: message m2: call a stays without its result, which message m3 had\n" +
		"\trule: A tool call and its result are kept or removed together and stay matched. Calls already unanswered, and results already orphaned, may remain."
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want\n%s\namong it", err, want)
	}
	if _, ok := errors.AsType[*core.ViolationError](err); !ok {
		t.Errorf("got %v, want it to unwrap to a violation", err)
	}
}

// A provider may decline what it cannot work on, but not an ordinary session.
func TestDeclining(t *testing.T) {
	errHard := errors.New("too hard")
	tests := []struct {
		name     string
		declines func(*core.Request) bool
		want     string // rule
	}{
		{"pictures", func(r *core.Request) bool { return holdsImage(r.Messages) }, ""},
		{"short histories", func(r *core.Request) bool { return len(r.Messages) < 3 }, ""},
		{"everything", func(*core.Request) bool { return true }, "answer-ordinary"},
		{"tool messages", func(r *core.Request) bool { return r.Messages[2].Role == core.RoleTool }, "answer-ordinary"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				if ctx.Err() == nil && len(req.Messages) > 0 && (len(req.Messages) > 2 || tt.want == "") && tt.declines(req) {
					return nil, errHard
				}
				return coretest.Truncates().Condense(ctx, req)
			})
			report := coretest.Examine(t.Context(), p)
			rules := failedRules(report.Err())
			if tt.want == "" && len(rules) > 0 || tt.want != "" && !rules[tt.want] {
				t.Errorf("got the rules %v broken, want %q", rules, tt.want)
			}
			declined := 0
			for _, v := range report.Verdicts {
				if errors.Is(v.Declined, errHard) {
					declined++
				}
			}
			if tt.want == "" && declined == 0 {
				t.Error("got no case declined, want some")
			}
		})
	}
}

func holdsImage(messages []core.Message) bool {
	for _, m := range messages {
		for _, p := range m.Parts {
			if _, ok := p.(core.Image); ok {
				return true
			}
		}
	}
	return false
}

func TestExamineStops(t *testing.T) {
	t.Run("when a call hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			report := coretest.Examine(t.Context(), misbehaving.Named("Hangs"))
			if len(report.Verdicts) != 1 || report.Stopped == nil {
				t.Errorf("got %d verdicts, stopped by %v; want one, and why the rest was left out", len(report.Verdicts), report.Stopped)
			}
		})
	})
	t.Run("when its context is done", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		report := coretest.Examine(ctx, coretest.Keeps())
		if len(report.Verdicts) != 0 || !errors.Is(report.Err(), context.Canceled) {
			t.Errorf("got %d verdicts and %v, want none and %v", len(report.Verdicts), report.Err(), context.Canceled)
		}
	})
}

func TestDeterminismIsReported(t *testing.T) {
	var calls atomic.Int64
	fickle := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		if calls.Add(1)%2 == 0 {
			return coretest.Truncates().Condense(ctx, req)
		}
		return coretest.Keeps().Condense(ctx, req)
	})
	report := coretest.Examine(t.Context(), fickle)
	if err := report.Err(); err != nil {
		t.Fatalf("got %v, want no failure: nothing demands determinism", err)
	}
	if report.Deterministic {
		t.Error("got a report that it is deterministic; it is not")
	}
}
