package core_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
)

// The report says how a provider failed, in words that help to find the fault.
func TestChainReasonsOfFailures(t *testing.T) {
	refusal := errors.New(strings.Repeat("é", 1000))
	tests := []struct {
		name     string
		provider core.CondensationProvider
		want     string // with * for a line number
	}{
		{"error", misbehaving.Named("Fails"), "out of order"},
		{"long error", fails(refusal), strings.Repeat("é", 250) + "…"},
		{"panic", misbehaving.Named("Panics"), "panic: a provider's bug at misbehaving.go:*"},
		{"panic of the runtime", misbehaving.Named("WritesToNilMap"), "panic: assignment to entry in nil map at misbehaving.go:*"},
		{"nil pointer", core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
			req.Counter = nil
			return &core.Result{Usage: core.Usage{InputTokens: req.Counter.Count()}}, nil
		}), "panic: runtime error: invalid memory address or nil pointer dereference at chain_time_test.go:*"},
		{"error that cannot be read", misbehaving.Named("ReturnsNilError"), "panic: runtime error: invalid memory address or nil pointer dereference at misbehaving.go:*"},
		{"goroutine", misbehaving.Named("ExitsGoroutine"), "the provider ended its goroutine without an answer"},
		{"deadline", misbehaving.Named("Hangs"), "no answer within 30s: context deadline exceeded"},
		{"deadline, in words of its own", core.ProviderFunc(func(ctx context.Context, _ *core.Request) (*core.Result, error) {
			<-ctx.Done()
			return nil, errors.New("interrupted")
		}), "no answer within 30s: interrupted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				req := coretest.Request(talk(4), 100)
				req.Budget.Limit = 400
				out, err := chainOf(t, nil, tt.provider).Run(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				got := out.Attempts[0]
				prefix, _, lines := strings.Cut(tt.want, "*")
				if got.Outcome != core.OutcomeFailed || !strings.HasPrefix(got.Reason, prefix) || !lines && got.Reason != tt.want {
					t.Errorf("got %s, %q; want %s, %q", got.Outcome, got.Reason, core.OutcomeFailed, tt.want)
				}
				if late := strings.HasPrefix(tt.want, "no answer"); late != errors.Is(got.Err, context.DeadlineExceeded) {
					t.Errorf("got %v; is it a missed deadline? want %t", got.Err, late)
				}
			})
		})
	}
}

func TestChainDeadlines(t *testing.T) {
	tests := []struct {
		name     string
		timeout  time.Duration
		grace    time.Duration
		provider func(release <-chan struct{}) core.CondensationProvider
		took     time.Duration
		outcome  core.Outcome
		reason   string
	}{
		{"in time", time.Minute, 0, answersAfter(59 * time.Second), 59 * time.Second, core.OutcomeApplied, ""},
		{"default timeout", 0, 0, func(<-chan struct{}) core.CondensationProvider { return misbehaving.Named("Hangs") }, core.DefaultTimeout, core.OutcomeFailed, "no answer within 2m0s: context deadline exceeded"},
		{"late, but within the grace", time.Second, 0, answersAfter(time.Second + core.DefaultGrace - 1), time.Second + core.DefaultGrace - 1, core.OutcomeApplied, ""},
		{"too late", time.Second, 0, answersAfter(2 * time.Second), time.Second + core.DefaultGrace, core.OutcomeFailed, "no answer within 1s and it did not stop when canceled"},
		{"more grace", time.Second, time.Minute, answersAfter(30 * time.Second), 30 * time.Second, core.OutcomeApplied, ""},
		{"never", time.Second, time.Minute, misbehaving.HangsForever, 61 * time.Second, core.OutcomeFailed, "no answer within 1s and it did not stop when canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer func() {
					close(release)
					time.Sleep(time.Hour)
				}()
				chain, err := core.NewChain([]core.NamedProvider{{Name: "p1", Provider: tt.provider(release), Timeout: tt.timeout}}, &core.ChainOptions{Grace: tt.grace})
				if err != nil {
					t.Fatal(err)
				}
				req := coretest.Request(talk(10), 500)
				req.Budget.Limit = 1000
				start := time.Now()
				out, err := chain.Run(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if got := out.Attempts[0]; got.Outcome != tt.outcome || got.Reason != tt.reason || got.Duration != tt.took {
					t.Errorf("got %s, %q, after %s; want %s, %q, after %s", got.Outcome, got.Reason, got.Duration, tt.outcome, tt.reason, tt.took)
				}
			})
		})
	}
}

// answersAfter makes a provider that needs d and does not look at its context.
func answersAfter(d time.Duration) func(<-chan struct{}) core.CondensationProvider {
	return func(<-chan struct{}) core.CondensationProvider {
		return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
			time.Sleep(d)
			return saves(7).Condense(ctx, req)
		})
	}
}

func TestChainHeedsItsContext(t *testing.T) {
	errUser := errors.New("the user has left")
	tests := []struct {
		name   string
		cancel func(context.Context) context.Context // runs in a bubble
		want   []error
		asked  []string
		text   string
	}{
		{"cancelled before", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		}, []error{context.Canceled}, nil, "condense: context canceled"},
		{"cancelled during", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx
		}, []error{context.Canceled}, []string{"p1"}, "condense with p1: context canceled"},
		{"cancelled for a reason", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(errUser) })
			return ctx
		}, []error{context.Canceled, errUser}, []string{"p1"}, "condense with p1: context canceled: the user has left"},
		{"deadline of the caller", func(ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			context.AfterFunc(ctx, cancel)
			return ctx
		}, []error{context.DeadlineExceeded}, []string{"p1"}, "condense with p1: context deadline exceeded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				chain := chainOf(t, &core.ChainOptions{Asking: func(name string) { asked = append(asked, name) }}, misbehaving.Named("Hangs"), coretest.Truncates())
				start := time.Now()
				out, err := chain.Run(tt.cancel(t.Context()), coretest.Request(talk(10), 500))
				if out != nil {
					t.Errorf("got an answer, %+v", out)
				}
				for _, want := range tt.want {
					if !errors.Is(err, want) {
						t.Errorf("got %v, want it to wrap %v", err, want)
					}
				}
				if err == nil || err.Error() != tt.text {
					t.Errorf("got %v, want %s", err, tt.text)
				}
				if !slices.Equal(asked, tt.asked) {
					t.Errorf("got %v asked, want %v", asked, tt.asked)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// A provider in another process has a timer of its own for the deadline, which may be the
// first to end. The report is the same for either order.
func TestChainDeadlineKnownToProviderFirst(t *testing.T) {
	provider := core.ProviderFunc(func(ctx context.Context, _ *core.Request) (*core.Result, error) {
		end, _ := ctx.Deadline()
		for time.Now().Before(end) {
			runtime.Gosched()
		}
		return nil, errors.New("my time is over")
	})
	chain, err := core.NewChain([]core.NamedProvider{{Name: "p1", Provider: provider, Timeout: 2 * time.Millisecond}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := coretest.Request(talk(10), 500)
	req.Budget.Limit = 1000
	for range 50 {
		out, err := chain.Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		got := out.Attempts[0]
		if want := "no answer within 2ms: my time is over"; got.Outcome != core.OutcomeFailed || got.Reason != want {
			t.Fatalf("got %s, %q; want %s, %q", got.Outcome, got.Reason, core.OutcomeFailed, want)
		}
	}
}
