package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// A fallback candidate costs a conversation within its limit nothing, whatever became of
// the candidates before it.
func TestFallbackLeavesAConversationWithinItsLimitAlone(t *testing.T) {
	t.Parallel()
	const within = "not needed: the conversation is within its limit"
	for _, c := range []struct {
		name   string
		first  core.CondensationProvider
		limit  int
		want   []core.Outcome
		tokens int
	}{
		{"failed, within the limit", fails(errors.New("401")), 1000, []core.Outcome{core.OutcomeFailed, core.OutcomeSkipped}, 1000},
		{"failed, above the limit", fails(errors.New("401")), 999, []core.Outcome{core.OutcomeFailed, core.OutcomeApplied}, 206},
		{"not enough, but within the limit", saves(3), 706, []core.Outcome{core.OutcomeInsufficient, core.OutcomeSkipped}, 706},
		{"not enough for the limit either", saves(3), 705, []core.Outcome{core.OutcomeInsufficient, core.OutcomeApplied}, 206},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			last := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				return saves(len(req.Messages)-2).Condense(ctx, req)
			})
			chain, err := core.NewChain([]core.NamedProvider{{Name: "first", Provider: framed(c.first)}, {Name: "last", Provider: framed(last), Fallback: true}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			req := coretest.Request(talk(10), 500)
			req.Budget.Limit = c.limit
			out, err := chain.Run(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			checkCondensed(t, req, out)
			var got []core.Outcome
			for _, a := range out.Attempts {
				got = append(got, a.Outcome)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || out.TokensAfter != c.tokens {
				t.Errorf("got %d tokens, want %d; outcomes (-want +got):\n%s", out.TokensAfter, c.tokens, diff)
			}
			if at := out.Attempts[1]; at.Outcome == core.OutcomeSkipped && at.Reason != within {
				t.Errorf("the fallback was skipped because it was %q, want %q", at.Reason, within)
			}
		})
	}
}

// A provider whose answer keeps the rules but saves little must not turn a conversation
// that the last provider could have shortened alone into an error.
func TestWeakProviderCannotExhaustTheChain(t *testing.T) {
	t.Parallel()
	// The last provider can work only on messages as they came, as truncation can on some
	// that hold what another provider wrote.
	var asked int
	last := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		asked++
		if slices.ContainsFunc(req.Messages, func(m core.Message) bool { return m.Kind == core.KindSummary }) {
			return &core.Result{Messages: req.Messages}, nil
		}
		return saves(8).Condense(ctx, req)
	})
	req := coretest.Request(talk(10), 300)
	was := req.Clone()
	out, err := chainOf(t, nil, saves(3), last).Run(t.Context(), req)
	if err != nil {
		t.Fatalf("got %v; the last candidate alone gets to 206 tokens", err)
	}
	untouched(t, was, req)
	checkCondensed(t, req, out)
	if out.TokensAfter != 206 || out.Provider != "p2" || asked != 2 || len(out.Attempts) != 3 {
		t.Errorf("got %d tokens of %s, asked %d times, %d attempts; want 206 of p2, 2, 3", out.TokensAfter, out.Provider, asked, len(out.Attempts))
	}
	if at := out.Attempts[2]; at.Outcome != core.OutcomeApplied || at.TokensBefore != 1000 || at.TokensAfter != 206 {
		t.Errorf("the last attempt is reported as %s, %d to %d tokens", at.Outcome, at.TokensBefore, at.TokensAfter)
	}
	// What was spent both times is reported, and what was saved first is kept if it is more.
	if out.Usage.Calls != 2 {
		t.Errorf("%d calls are reported, want 2", out.Usage.Calls)
	}
	req.Budget.Limit, req.Budget.Target = 200, 200
	_, err = chainOf(t, nil, saves(3), coretest.Keeps()).Run(t.Context(), req)
	if exhausted, ok := errors.AsType[*core.ExhaustedError](err); !ok || exhausted.Tokens != 706 {
		t.Errorf("got %v, want an ExhaustedError with the 706 tokens of the first", err)
	}
}
