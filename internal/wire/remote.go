package wire

import (
	"iter"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/model"
)

// less returns u without v.
func less(u, v core.Usage) core.Usage {
	return core.Usage{
		Calls: max(u.Calls-v.Calls, 0), InputTokens: max(u.InputTokens-v.InputTokens, 0),
		OutputTokens: max(u.OutputTokens-v.OutputTokens, 0), CachedTokens: max(u.CachedTokens-v.CachedTokens, 0),
		USD: cents(u.USD - v.USD), Unpriced: max(u.Unpriced-v.Unpriced, 0),
	}
}

// cents returns an amount without the rounding errors of floating-point arithmetic.
func cents(usd float64) float64 {
	const least = 1e-9
	if usd < least {
		return 0
	}
	return usd
}

func toModels(models iter.Seq2[string, model.Info]) []*condensepb.LentModel {
	var out []*condensepb.LentModel
	for name, m := range models {
		out = append(out, &condensepb.LentModel{
			Name: valid(name), Window: int64(m.Window), MaxOutput: int64(m.MaxOutput), Images: m.Images, Price: toPrice(m.Price),
		})
	}
	return out
}
