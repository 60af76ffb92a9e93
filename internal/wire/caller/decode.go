package caller

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
)

func toStart(req *core.Request) *condensepb.Start {
	b := req.Budget
	s := &condensepb.Start{
		MessageCount: int64(len(req.Messages)),
		Budget: &condensepb.Budget{
			Window: int64(b.Window), Reserve: int64(b.Reserve), Overhead: int64(b.Overhead),
			Limit: int64(b.Limit), Target: int64(b.Target),
		},
		Trigger: byhand.Name(string(req.Trigger)), Profile: byhand.Name(req.Profile), Mode: byhand.Name(req.Mode), Api: byhand.Name(req.API),
		System: byhand.Bytes(req.System), Environment: byhand.Bytes(req.Environment), Instructions: byhand.Bytes(req.Instructions),
		Dir: byhand.Bytes(req.Dir), Tools: byhand.Bytes(req.Tools), Originals: byhand.Bytes(req.Originals), NoRecall: req.NoRecall,
		Model: byhand.Name(req.Model), Price: toPrice(req.Price),
		Conversation: byhand.Name(req.Conversation), State: req.State, MayWait: req.MayWait,
	}
	if q := req.Quota; q != (core.Quota{}) {
		s.Quota = &condensepb.Quota{ModelCalls: int64(q.ModelCalls), Usd: q.USD}
	}
	if c := req.Cached; c.Messages > 0 {
		s.Cached = &condensepb.Cached{Messages: int64(c.Messages), UntilMs: max(0, c.Until.UnixMilli())} // below 0: unknown
	}
	s.FilesRead = append(s.FilesRead, plain.Each(req.FilesRead, byhand.Bytes)...)
	return s
}

func toPrice(p core.Price) *condensepb.Price {
	if p == (core.Price{}) {
		return nil
	}
	return &condensepb.Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
}

func fromUsage(u *condensepb.Usage) core.Usage {
	return core.Usage{
		Calls: int(u.GetCalls()), InputTokens: int(u.GetInputTokens()), OutputTokens: int(u.GetOutputTokens()),
		CachedTokens: int(u.GetCachedTokens()), USD: u.GetUsd(), Unpriced: int(u.GetUnpriced()),
	}
}

// Limits for the steps of an answer, which users read; the rest is dropped.
const (
	maxStepKinds = 32      // kinds of content of a step
	maxStepName  = 100     // bytes of a name or a kind
	maxStepNote  = 1 << 10 // bytes
	maxStepMS    = 1e3 * 3600 * 24 * 365
)

// fromSteps returns the steps that a plugin reports, safe to print. An impossible time counts
// as none.
func fromSteps(steps []*condensepb.Step) []core.Step {
	var out []core.Step
	for _, p := range steps[:min(len(steps), wire.MaxSteps)] {
		s := core.Step{
			Name: line(p.GetName(), maxStepName), Looked: int(p.GetLooked()), Changed: int(p.GetChanged()),
			TokensBefore: int(p.GetTokensBefore()), TokensAfter: int(p.GetTokensAfter()), Note: line(string(p.GetNote()), maxStepNote),
		}
		if ms := p.GetMs(); ms > 0 && ms <= maxStepMS {
			s.Duration = time.Duration(math.Round(ms * float64(time.Millisecond)))
		}
		kinds := slices.Sorted(maps.Keys(p.GetSaved()))
		for _, kind := range kinds[:min(len(kinds), maxStepKinds)] {
			if s.Saved == nil {
				s.Saved = map[string]int{}
			}
			s.Saved[line(kind, maxStepName)] += int(p.GetSaved()[kind])
		}
		out = append(out, s)
	}
	return out
}

// fromParts returns received parts.
func fromParts(parts []*condensepb.Part) ([]core.Part, error) {
	for i, p := range parts {
		if p.GetKind() == nil {
			return nil, fmt.Errorf("part %d is of a kind that this host does not know", i)
		}
	}
	data, err := proto.Marshal(&condensepb.Content{Parts: parts})
	if err != nil {
		return nil, err
	}
	return byhand.DecodeParts(data)
}

func toModels(models iter.Seq2[string, model.Info]) []*condensepb.LentModel {
	var out []*condensepb.LentModel
	for name, m := range models {
		out = append(out, &condensepb.LentModel{
			Name: byhand.Valid(name), Window: int64(m.Window), MaxOutput: int64(m.MaxOutput), Images: m.Images, Price: toPrice(m.Price),
		})
	}
	return out
}
