package lab

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/core"
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
		return context.WithValue(ctx, summaryKey{}, b.session.Compactions[k].Summary)
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
	text, ok := ctx.Value(summaryKey{}).(string)
	if !ok || text == "" {
		return nil, fmt.Errorf("%w: no summary is recorded at this cut", core.ErrUnavailable)
	}
	return &model.Answer{Text: text}, nil
}
