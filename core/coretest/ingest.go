package coretest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
)

// Ingest returns a provider that asks p to shorten each round of results in a conversation, as a gateway does before it first sends them
// ([core.TriggerIngest]): for [Run] and comparisons.
func Ingest(p core.CondensationProvider) core.CondensationProvider { return ingester{p} }

type ingester struct{ core.CondensationProvider }

// Abilities implements [core.Declarer].
func (g ingester) Abilities() core.Abilities { return core.AbilitiesOf(g.CondensationProvider) }

// Condense implements [core.CondensationProvider].
func (g ingester) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	all := req.Clone()
	res := &core.Result{Messages: all.Messages}
	var goal []core.Message
	for _, group := range core.Groups(req.Messages) {
		round := req.Messages[group.Start:group.End]
		if m := round[0]; len(round) == 1 {
			if m.Role == core.RoleUser {
				goal = round
			}
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("ingest: %w", err)
		}
		one, closing := *req, core.Message{ID: "closing", Role: core.RoleAssistant, Parts: []core.Part{core.Text(".")}, Tokens: 1}
		one.Messages = slices.Concat(goal, round, []core.Message{closing})
		one.Trigger, one.Budget = core.TriggerIngest, core.Budget{Window: req.Budget.Window, Limit: req.Tokens() + 1, Target: 1}
		got, err := g.CondensationProvider.Condense(ctx, one.Clone())
		if errors.Is(err, core.ErrUnavailable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		one.Abilities = g.Abilities()
		if err := core.Verify(&one, got); err != nil {
			return nil, err
		}
		res.Usage = res.Usage.Add(got.Usage)
		for i := range round {
			all.Messages[group.Start+i].Parts = got.Messages[len(goal)+i].Parts
		}
	}
	return res, nil
}
