package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
	"github.com/condensehq/condense/registry"
)

// misbehaver is a strategy that misbehaves as its settings say.
func misbehaver(release <-chan struct{}) registry.Strategy {
	type settings struct {
		Fault int `json:"fault"`
	}
	all := misbehaving.All(release)
	return registry.Define("misbehaver", "Misbehaves.", func() settings { return settings{} },
		func(_ context.Context, s settings, _ registry.Env) (core.CondensationProvider, error) {
			return all[s.Fault%len(all)].Provider, nil
		})
}

// TestPromises plays random conversations turn by turn with random chains, some with
// providers that misbehave. After every turn the view is within the limit, or the error says
// that it cannot be, and it breaks no rule that the conversation did not break before; undoing
// everything restores the conversation.
func TestPromises(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	strategies := []registry.Strategy{misbehaver(release)}
	quick := quickFaults(release)
	rapid.Check(t, func(rt *rapid.T) {
		modes := []string{"budget", "half", "recent", "middle_out"}
		var chain []config.Provider
		for i := range rapid.IntRange(0, 3).Draw(rt, "providers") {
			p := config.Provider{Name: fmt.Sprint("p", i), Strategy: "slidingwindow"}
			if rapid.Bool().Draw(rt, "misbehaves") {
				p.Strategy = "misbehaver"
				p.Settings = fmt.Appendf(nil, `{"fault":%d}`, rapid.SampledFrom(quick).Draw(rt, "fault"))
			} else {
				p.Settings = fmt.Appendf(nil, `{"mode":%q}`, rapid.SampledFrom(modes).Draw(rt, "mode"))
			}
			chain = append(chain, p)
		}
		window := rapid.IntRange(300, 20000).Draw(rt, "window")
		c, err := config.New(config.Values{}, config.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		c = c.Override(config.Override{Window: window, Tokenizer: "chars4", Chain: chain})
		h, err := condense.Open(t.Context(), &condense.Options{Config: c, Strategies: strategies})
		if err != nil {
			rt.Fatal(err)
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		messages := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
		for i := range messages {
			messages[i].Tokens = 0 // measured by another counter
		}
		conv := condense.NewConversation()
		for len(messages) > 0 {
			n := min(len(messages), rapid.IntRange(1, 8).Draw(rt, "new messages"))
			if err := conv.Append(messages[:n]...); err != nil {
				rt.Fatal(err)
			}
			messages = messages[n:]
			trigger := rapid.SampledFrom([]core.Trigger{"", core.TriggerManual, core.TriggerOverflow}).Draw(rt, "trigger")
			before := conv.View()
			r, err := h.Manage(t.Context(), conv, condense.Turn{Trigger: trigger})
			checkTurn(rt, conv, before, r, err)
		}
		originals := conv.Journal().Messages()
		undoAll := func() {
			for all := conv.Journal().Condensations(); len(all) > 0; all = conv.Journal().Condensations() {
				if err := conv.Undo(all[rapid.IntRange(0, len(all)-1).Draw(rt, "undo")].ID); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if len(originals) > 0 && rapid.Bool().Draw(rt, "rewind") {
			if err := conv.Rewind(rapid.SampledFrom(originals).Draw(rt, "message").ID); err != nil {
				rt.Fatal(err)
			}
			for range 2 { // before the rewind is undone, and after
				before := conv.View()
				r, err := h.Manage(t.Context(), conv, condense.Turn{Trigger: core.TriggerManual})
				checkTurn(rt, conv, before, r, err)
				undoAll()
				if _, err := conv.UndoRewind(); err != nil && !errors.Is(err, history.ErrNoRewind) {
					rt.Fatal(err)
				}
			}
		}
		undoAll()
		view := conv.View()
		if len(view) != len(originals) {
			rt.Fatalf("%d messages are back, want %d", len(view), len(originals))
		}
		for i := range view {
			if !view[i].Equal(originals[i]) {
				rt.Fatalf("message %s came back changed", view[i].ID)
			}
		}
	})
}

func checkTurn(rt *rapid.T, conv *condense.Conversation, before []core.Message, r *condense.Report, err error) {
	rt.Helper()
	switch {
	case errors.Is(err, policy.ErrFloorExceedsWindow):
		if len(r.Attempts) > 0 {
			rt.Fatal("a provider was asked although nothing could help")
		}
	case err != nil:
		if r.Tokens.Before > r.Budget.Limit && r.Budget.Floor <= r.Budget.Limit && r.Decision != policy.ReasonStuck {
			rt.Fatalf("no way below the limit of %d (floor %d): %v", r.Budget.Limit, r.Budget.Floor, err)
		}
	default:
		if r.Tokens.After > r.Budget.Limit {
			rt.Fatalf("%d tokens are above the limit of %d: %s", r.Tokens.After, r.Budget.Limit, r.Reason)
		}
	}
	if r.Acted && r.Tokens.After >= r.Tokens.Before {
		rt.Fatalf("%d tokens became %d", r.Tokens.Before, r.Tokens.After)
	}
	if !r.Acted && len(conv.View()) != len(before) {
		rt.Fatal("the view changed although the report says that nothing was done")
	}
	verify(rt, before, conv.View())
}

// verify checks a view by the rules, with the view before as the request.
func verify(rt *rapid.T, before, after []core.Message) {
	rt.Helper()
	known := map[string]bool{}
	for _, m := range before {
		known[m.ID] = true
	}
	result := append([]core.Message(nil), after...)
	for i := range result {
		if !known[result[i].ID] {
			result[i].ID = ""
		}
	}
	if len(before) == 0 {
		return
	}
	if err := core.Verify(&core.Request{Messages: before, Typed: dialog.Typed}, &core.Result{Messages: result}); err != nil {
		rt.Fatal(err)
	}
}

// quickFaults returns the misbehaving providers that do not hang.
func quickFaults(release <-chan struct{}) []int {
	var quick []int
	for i, s := range misbehaving.All(release) {
		switch s.Name {
		case "Hangs", "HangsForever", "AnswersLate", "Drips", "IgnoresContext":
		default:
			quick = append(quick, i)
		}
	}
	return quick
}
