package judge

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/tokens"
)

// longest is the least number of messages of the conversation that grows. It is condensed when it has these shares of them.
const longest = 500

var rounds = [...]float64{.5, .7, .9}

// grow lets the plugin alone condense a long conversation in rounds as it grows, each with the state of the last one; and again without it,
// as after an undo. If it leaves a state, what is kept is compared with a single condensation of all of it to the same target.
func (w *Watch) grow(ctx context.Context, items []lab.Item, alone []core.NamedProvider) error {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return err
	}
	chain, err := core.NewChain(alone, nil)
	if err != nil {
		return err
	}
	counter := tokens.NewCounter(encoding)
	s := lab.Joined(items, longest, counter)
	var view []core.Message
	var states map[string][]byte
	from := 0
	for n, share := range rounds {
		to := int(share * float64(len(s.Messages)))
		for to < len(s.Messages) && s.Messages[to].Role != core.RoleAssistant {
			to++
		}
		cut, ok := score.CutAt(s, "round", to)
		if !ok {
			return ctx.Err()
		}
		view, from = append(view, s.Messages[from:to]...), to
		target := core.TotalTokens(view) / 4
		ask := func(messages []core.Message, states map[string][]byte, when string) ([]core.Message, map[string][]byte) {
			limit := core.TotalTokens(messages)
			w.when = when
			got, err := chain.Run(ctx, &core.Request{
				Messages: messages, Trigger: core.TriggerAutomatic, Typed: dialog.Typed, Counter: counter, Conversation: "grows",
				States: states, Budget: core.Budget{Window: limit, Limit: limit, Target: target},
			})
			if w.when = ""; err != nil { // it is among the calls
				return messages, nil
			}
			w.own = max(w.own, 1-float64(got.TokensAfter)/float64(limit))
			return got.Messages, got.States
		}
		round := fmt.Sprintf("in round %d of a conversation that grows", n+1)
		after, left := ask(view, states, ", "+round)
		if n > 0 && len(states) > 0 {
			scorer := score.NewScorer(cut, score.Common())
			kept := scorer.Score(after)
			once, _ := ask(cut.Prefix(), nil, "")
			w.compare(round, "of all of it at once", kept, scorer.Score(once), .1)
			lost, _ := ask(view, nil, ", after its state was lost")
			w.compare("after its state was lost, as by an undo", "with it", scorer.Score(lost), kept, 2./3)
		}
		if view = after; len(left) > 0 {
			states = left
		}
	}
	return ctx.Err()
}

// compare notes if less than a share of the user's words is kept, next to another way. Asked at once it may leave much more.
func (w *Watch) compare(when, other string, is, than score.Score, least float64) {
	a, _ := is.UIR.Value()
	if b, ok := than.UIR.Value(); ok && a < b*least && w.forgot == "" {
		w.forgot = fmt.Sprintf("%s, %.2f of the user's words are kept; %s, %.2f", when, a, other, b)
	}
}
