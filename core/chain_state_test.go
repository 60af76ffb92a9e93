package core_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// leaving returns a provider that hides the second half of what may be hidden down to n messages, and leaves a state. It notes the state
// that it was given.
func leaving(n int, state []byte, given *[]byte) core.ProviderFunc {
	return func(_ context.Context, req *core.Request) (*core.Result, error) {
		*given = bytes.Clone(req.State)
		if len(req.States) > 0 {
			return nil, fmt.Errorf("it sees the states of others: %v", req.States)
		}
		copy(req.State, "changed") // of its own copy
		kept := core.KeepGroups(req.Messages, func(i int) bool { return i == 0 || i >= len(req.Messages)-n })
		return &core.Result{Messages: kept, State: state}, nil
	}
}

// A provider gets its own state, byte for byte, and what it leaves is in the result only if its result is used.
func TestChainStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := rapid.SliceOfN(rapid.Byte(), 0, 40)
		req := coretest.HalfRequest(coretest.Session())
		req.Budget.Target, req.Budget.Limit = req.Tokens()/4, req.Tokens()
		req.Conversation = "c"
		req.States = map[string][]byte{"p1": state.Draw(t, "before of p1"), "p2": state.Draw(t, "before of p2")}
		was := map[string]string{"p1": string(req.States["p1"]), "p2": string(req.States["p2"])}
		left := [][]byte{state.Draw(t, "of p1"), state.Draw(t, "of p2")}
		keep := []int{rapid.IntRange(1, 30).Draw(t, "kept by p1"), rapid.IntRange(1, 30).Draw(t, "kept by p2")}
		var given [2][]byte
		var list []core.NamedProvider
		for i := range given {
			list = append(list, core.NamedProvider{Name: fmt.Sprint("p", i+1), Provider: leaving(keep[i], left[i], &given[i])})
		}
		chain, err := core.NewChain(list, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := chain.Run(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for i, a := range out.Attempts {
			if a.Outcome == core.OutcomeFailed || a.Outcome == core.OutcomeRejected {
				t.Fatalf("%s: %s", a.Provider, a.Reason)
			}
			if a.Outcome != core.OutcomeSkipped && string(given[i]) != was[a.Provider] {
				t.Errorf("%s was given %q, want %q", a.Provider, given[i], was[a.Provider])
			}
			if used := a.Outcome == core.OutcomeApplied || a.Outcome == core.OutcomeInsufficient; used && len(left[i]) > 0 {
				want[a.Provider] = string(left[i])
			}
		}
		if got := fmt.Sprintf("%q", out.States); got != fmt.Sprintf("%q", want) && len(want)+len(out.States) > 0 {
			t.Errorf("got states %s, want %q of %+v", got, want, out.Attempts)
		}
		if string(req.States["p1"]) != was["p1"] {
			t.Errorf("a provider changed the state of the host to %q", req.States["p1"])
		}
	})
}

// A state that is too large is a failure of the attempt, and one of the largest size is not.
func TestChainRefusesLargeStates(t *testing.T) {
	req := coretest.HalfRequest(coretest.Session())
	for size, want := range map[int]core.Outcome{core.MaxState: core.OutcomeApplied, core.MaxState + 1: core.OutcomeFailed} {
		var given []byte
		out, err := chainOf(t, nil, leaving(1, make([]byte, size), &given)).Run(t.Context(), req)
		if err != nil && want != core.OutcomeFailed {
			t.Fatal(err)
		}
		if a := attempts(out, err); a[0].Outcome != want || want == core.OutcomeFailed && !strings.Contains(a[0].Reason, "a state of 65,537 bytes, more than 65,536") {
			t.Errorf("%d bytes: got %s, %q; want %s", size, a[0].Outcome, a[0].Reason, want)
		}
	}
}

// attempts returns those of a chain, whether it succeeded or not.
func attempts(out *core.ChainResult, err error) []core.Attempt {
	if exhausted, ok := err.(*core.ExhaustedError); ok { //nolint:errorlint // of Run itself
		return exhausted.Attempts
	}
	return out.Attempts
}

// A chain in a chain keeps the states of all of its providers, also of those that it did not ask this time.
func TestNestedChainStates(t *testing.T) {
	var given [2][]byte
	inner := chainOf(t, nil, leaving(1, []byte("one"), &given[0]), leaving(1, []byte("two"), &given[1]))
	outer := chainOf(t, nil, inner)
	req := coretest.HalfRequest(coretest.Session())
	for i, want := range []string{"", "one"} {
		out, err := outer.Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if string(given[0]) != want {
			t.Errorf("call %d: got %q, want %q", i, given[0], want)
		}
		req.States = out.States
	}
	req.States = map[string][]byte{"p1": []byte(`{"p1":"","p2":"dHdv"}`)}
	out, err := outer.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out.States["p1"]); got != `{"p1":"b25l","p2":"dHdv"}` {
		t.Errorf("got %s: the state of the provider that was not asked is lost", got)
	}
}

// A provider that wants to wait ends the chain if the conversation may wait, and nothing is condensed, not even by those before it. If
// it may not, the next one is asked. Edits are never an answer to wait.
func TestChainLater(t *testing.T) {
	var given []byte
	waits := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		return &core.Result{Messages: req.Messages, Later: "a task\nis half done", State: []byte("x")}, nil
	})
	both := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		res, err := leaving(1, []byte("y"), &given)(ctx, req)
		res.Later = "and wait"
		return res, err
	})
	room := func(req *core.Request, limit int) {
		req.Budget.Limit, req.Budget.Target = limit, min(limit, req.Budget.Target)
	}
	for _, tt := range []struct {
		name      string
		may, over bool
		providers []core.CondensationProvider
		outcomes  string
		reason    string // of the last but one
		later     string
		state     string
	}{
		{"it may", true, false, []core.CondensationProvider{waits, leaving(1, nil, &given)}, "later skipped", "a task is half done", "a task is half done", "map[]"},
		{"after another", true, false, []core.CondensationProvider{leaving(9, []byte("1"), &given), waits}, "insufficient later", "", "a task is half done", "map[]"},
		{"it may not", false, false, []core.CondensationProvider{waits, leaving(1, []byte("2"), &given)}, "skipped applied", "it wants to wait, and the conversation cannot: a task is half done", "", `map["p2":"2"]`},
		{"above the limit, whatever the host says", true, true, []core.CondensationProvider{waits, leaving(1, nil, &given)}, "skipped applied", "it wants to wait, and the conversation cannot: a task is half done", "", "map[]"},
		{"with edits", true, false, []core.CondensationProvider{both, waits}, "applied skipped", "", "", `map["p1":"y"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := coretest.HalfRequest(coretest.Session())
			req.MayWait = tt.may
			if room(req, req.Tokens()); tt.over {
				room(req, req.Tokens()-1)
			}
			if tt.name == "after another" {
				req.Budget.Target = 1
			}
			chain := chainOf(t, nil, tt.providers...)
			out, err := chain.Run(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			var outcomes []string
			for _, a := range out.Attempts {
				outcomes = append(outcomes, string(a.Outcome))
			}
			if got := strings.Join(outcomes, " "); got != tt.outcomes || out.Later != tt.later || fmt.Sprintf("%q", out.States) != tt.state {
				t.Errorf("got %s, later %q, states %q; want %s, %q, %s", got, out.Later, out.States, tt.outcomes, tt.later, tt.state)
			}
			if tt.reason != "" && out.Attempts[0].Reason != tt.reason {
				t.Errorf("got the reason %q, want %q", out.Attempts[0].Reason, tt.reason)
			}
			if tt.later != "" && (!out.Edit.Empty() || out.TokensAfter != out.TokensBefore || out.Provider != "") {
				t.Errorf("it waits, and %s changed %+v", out.Provider, out.Edit)
			}
			checkCondensed(t, req, out)
			if res, err := chain.Condense(t.Context(), req); err != nil || res.Later != tt.later {
				t.Errorf("as a provider: later %q, %v; want %q", res.Later, err, tt.later)
			}
		})
	}
}

// The states of a nested chain's providers are limited one by one: together they may be more than one state.
func TestNestedStates(t *testing.T) {
	t.Parallel()
	var given [2][]byte
	inner, err := core.NewChain([]core.NamedProvider{
		{Name: "a", Provider: leaving(10, make([]byte, core.MaxState), &given[0])},
		{Name: "b", Provider: leaving(3, make([]byte, core.MaxState), &given[1])},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	outer, err := core.NewChain([]core.NamedProvider{{Name: "inner", Provider: inner}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := coretest.HalfRequest(coretest.Session())
	req.Budget.Target, req.Budget.Limit = req.Tokens()/8, req.Tokens()
	out, err := outer.Run(t.Context(), req)
	if err != nil || out.Attempts[0].Err != nil {
		t.Fatal(err, out.Attempts)
	}
	req.States = out.States
	if _, err = outer.Run(t.Context(), req); err != nil || len(given[0]) != core.MaxState || len(given[1]) != core.MaxState {
		t.Errorf("%v: %d and %d bytes came back", err, len(given[0]), len(given[1]))
	}
}

// TestChainCached: the second provider is told of the cached prefix only as much as the first has left of it, and none can change the labels.
func TestChainCached(t *testing.T) {
	var given []int
	hides := func(at int) core.ProviderFunc {
		return func(_ context.Context, req *core.Request) (*core.Result, error) {
			given = append(given, req.Cached.Messages)
			for i := range req.Messages {
				if l := req.Messages[i].Labels; l != nil {
					l["kept"] = "changed" // of its own copy
				}
			}
			return &core.Result{Messages: core.KeepGroups(req.Messages, func(i int) bool { return i != at })}, nil
		}
	}
	var messages []core.Message
	for i := range 8 {
		m := coretest.User(core.Text(strings.Repeat("some words ", 20)))
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		messages = append(messages, m)
	}
	req := coretest.HalfRequest(coretest.Conversation(messages...))
	req.Budget.Limit = req.Tokens()
	req.Cached.Messages, req.Messages[1].Labels = 6, map[string]string{"kept": "pin"}
	list := []core.NamedProvider{{Name: "p1", Provider: hides(5)}, {Name: "p2", Provider: hides(2)}, {Name: "p3", Provider: hides(3)}}
	chain, err := core.NewChain(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := chain.Run(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(given) != "[6 5 2]" {
		t.Errorf("the providers were told %v", given)
	}
	if got := out.Messages[1].Labels["kept"]; got != "pin" {
		t.Errorf("a label became %q", got)
	}
}
