package lab

import (
	"context"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
)

// Recorded is the name of the strategy of [RecordedStrategy].
const Recorded = "recorded"

type summaryKey struct{}

// withSummary returns ctx for strategies that condense at a cut.
func (b *trial) withSummary(ctx context.Context) context.Context {
	if k := b.task.cut.Compaction; k >= 0 && k < len(b.session.Compactions) {
		return context.WithValue(ctx, summaryKey{}, &b.session.Compactions[k])
	}
	return ctx
}

// RecordedStrategy returns the agent's own compaction as a strategy: the view that a session records at the cut in question. At any
// other cut it is unavailable.
func RecordedStrategy(name string) Strategy {
	return Strategy{Name: name, Provider: compacted{}, Unchecked: true, About: "the agent's own compaction, as the session records it"}
}

type compacted struct{}

// Condense implements [core.CondensationProvider].
func (compacted) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	k, ok := ctx.Value(summaryKey{}).(*score.Compaction)
	if !ok || k.Summary == "" {
		return nil, fmt.Errorf("%w: no compaction by the agent is recorded at this cut", core.ErrUnavailable)
	}
	if k.View != nil {
		return &core.Result{Messages: k.View}, nil
	}
	summary := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(k.Summary)}}
	return &core.Result{Messages: append([]core.Message{summary}, req.Messages[min(k.KeptFrom, len(req.Messages)):]...)}, nil
}

// recorded reports whether s is the agent's own compaction.
func (s *Strategy) recorded() bool { _, is := s.Provider.(compacted); return is }

// choose returns the last cut. If the agent's own compaction is among the strategies, that is the last one of the session that the author
// can read, at the same share of the tokens.
func (v *interviews) choose(s *score.Session, b Budget, cuts []score.Cut, c core.Counter) (task, bool) {
	tasks := b.tasks(s, cuts, c)
	if b.Share > 0 && !b.Real && slices.ContainsFunc(v.run.strategies, func(s Strategy) bool { return s.recorded() }) {
		for _, t := range (Budget{Share: b.Share, Real: true}).tasks(s, cuts, c) {
			most := core.TotalTokens(s.Messages[:t.cut.End])
			if window := v.author.Info().Window; window == 0 || most+most/8+len(s.Messages)*4 < window {
				t.budget = b.String()
				tasks = append(tasks, t)
			}
		}
	}
	if len(tasks) == 0 {
		return task{}, false
	}
	return tasks[len(tasks)-1], true
}
