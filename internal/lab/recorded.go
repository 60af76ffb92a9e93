package lab

import (
	"context"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/model"
)

// RecordedModel is the name of the model of [Recorded].
const RecordedModel = "recorded"

// Recorded returns a model that answers with the summary that a session records at the cut in question. No model is
// asked. At a cut without a summary it is unavailable.
func Recorded() model.Generator { return recorded{} }

type recorded struct{}

type summaryKey struct{}

// withSummary returns ctx for strategies that condense at a cut.
func (b *trial) withSummary(ctx context.Context) context.Context {
	if k := b.task.cut.Compaction; k >= 0 && k < len(b.session.Compactions) {
		return context.WithValue(ctx, summaryKey{}, &b.session.Compactions[k])
	}
	return ctx
}

// Info says that the model is free and reads conversations of any length.
func (recorded) Info() model.Info {
	return model.Info{Name: RecordedModel, Window: 1 << 40, Free: true}
}

// Generate implements [model.Generator].
func (recorded) Generate(ctx context.Context, _ *model.Prompt) (*model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k, err := recordedIn(ctx)
	if err != nil {
		return nil, err
	}
	return &model.Answer{Text: k.Summary}, nil
}

func recordedIn(ctx context.Context) (*score.Compaction, error) {
	if k, ok := ctx.Value(summaryKey{}).(*score.Compaction); ok && k.Summary != "" {
		return k, nil
	}
	return nil, fmt.Errorf("%w: no compaction by the agent is recorded at this cut", core.ErrUnavailable)
}

// RecordedStrategy returns the agent's own compaction as a strategy: the view that a session records at the cut in question. At any
// other cut it is unavailable.
func RecordedStrategy(name string) Strategy {
	return Strategy{Name: name, Provider: compacted{}, Unchecked: true, About: "the agent's own compaction, as the session records it"}
}

type compacted struct{}

// Condense implements [core.CondensationProvider].
func (compacted) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	k, err := recordedIn(ctx)
	if err != nil {
		return nil, err
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
			most := 0
			for i := range t.cut.End {
				most += s.Messages[i].Tokens
			}
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
