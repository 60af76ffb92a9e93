package coretest

import (
	"context"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
)

// Keeps returns a provider that finds nothing to shorten, which is valid.
func Keeps() core.CondensationProvider {
	return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return &core.Result{Messages: req.Messages}, nil
	})
}

// Truncates returns a provider that hides the oldest groups until the rest meets the target, and inserts a marker with the number of
// their messages before the rest. It keeps system messages, protected messages, the last group and groups with pending calls. If the
// result is not shorter, it keeps everything.
func Truncates() core.CondensationProvider {
	return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(req.Messages) == 0 {
			return &core.Result{}, nil
		}
		tokens := req.Tokens()
		at := -1 // where the note goes
		var kept, hidden []core.Message
		groups := core.Groups(req.Messages)
		last := groups[max(0, len(groups)-1)].Start // everything from here on is kept
		if pending := core.Pending(req.Messages); len(pending) > 0 {
			last = min(last, pending[0])
		}
		if asked := req.Unanswered(); len(asked) > 0 {
			last = min(last, asked[0])
		}
		for _, g := range groups {
			group := req.Messages[g.Start:g.End]
			if tokens > req.Budget.Target && g.End <= last && !slices.ContainsFunc(group, mustStay) {
				for j := range group {
					tokens -= group[j].Tokens
				}
				hidden = append(hidden, group...)
				continue
			}
			if at < 0 && group[0].Role != core.RoleSystem {
				at = len(kept)
			}
			kept = append(kept, group...)
		}
		if len(hidden) == 0 {
			return &core.Result{Messages: req.Messages}, nil
		}
		if at < 0 {
			at = len(kept)
		}
		n := User(core.Text(fmt.Sprintf("[%d messages left out]", len(hidden))))
		n.Kind = core.KindMarker
		if tokens+core.MessageTokens(req.Counter, n) > req.Tokens() {
			return &core.Result{Messages: req.Messages}, nil
		}
		return &core.Result{Messages: slices.Insert(kept, at, n)}, nil
	})
}

func mustStay(m core.Message) bool { return m.Protected || m.Role == core.RoleSystem }
