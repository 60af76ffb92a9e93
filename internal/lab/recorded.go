package lab

import (
	"context"
	"fmt"

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
