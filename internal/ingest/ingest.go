// Package ingest shortens tool results before a model sees them for the first time. Its passes are the same for the
// gateway and for the hooks of agents.
package ingest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/providers/smart"
)

// Options say how results are shortened.
type Options struct {
	Lossless bool // only passes without loss
	// MaxResult is the size in tokens above which a result is shortened to its lines with the highest expected use:
	// two thirds of its tokens, and that size at most; lines about names in the goal are kept, up to twice the size.
	// It gets a handle. 0 means no limit.
	MaxResult int
	// Fit cuts results, if need be, until the target of the turn is met.
	Fit       bool
	Tokenizer string // empty means the default one
}

// Settings returns the settings of the strategy smart that shortens results.
func Settings(o Options) (json.RawMessage, error) {
	var passes []smart.PassConfig
	if o.Lossless {
		passes = smart.Lossless()
	}
	const least = 40 // of cut
	if o.Fit {
		passes = append(passes, smart.PassConfig{Pass: "cut", Settings: fmt.Appendf(nil, `{"tokens": %d, "keep": 0}`, least)})
	}
	if o.MaxResult > 0 {
		const share = 0.65 // the share of long results that agents used in their next five turns: bench/results/appendix-measurements.md
		most := max(2*o.MaxResult, least)
		passes = append(passes,
			smart.PassConfig{Pass: "results", Settings: fmt.Appendf(nil, `{"most": %d, "over": %[1]d, "share": %v}`, o.MaxResult, share)},
			smart.PassConfig{Pass: "cut", Settings: fmt.Appendf(nil, `{"keep": 0, "start": %d, "tokens": %[1]d}`, most)}, // results without lines
		)
	}
	return json.Marshal(map[string]any{"passes": passes})
}

// Open returns a host that shortens results. It reads no configuration.
func Open(ctx context.Context, o Options) (*condense.Host, error) {
	settings, err := Settings(o)
	if err != nil {
		return nil, err
	}
	return Smart(ctx, "ingest", settings, o.Tokenizer)
}

// Smart returns a host with one provider, of the strategy smart, which may save as little as it can. It reads no configuration. An
// empty tokenizer means the default one.
func Smart(ctx context.Context, name string, settings json.RawMessage, tokenizer string) (*condense.Host, error) {
	none := 0.0
	values := config.Values{Providers: map[string]config.ProviderValues{name: {Strategy: "smart", Settings: settings}}}
	values.Chain, values.Ingest, values.MinGain = []string{name}, []string{name}, &none
	if tokenizer != "" {
		values.Tokenizer = &tokenizer
	}
	return condense.Open(ctx, &condense.Options{Values: &values})
}

// Turn returns the turn with which a host shortens every result. The last message of a conversation is never
// changed, so an answer of the model has to follow the results.
func Turn() condense.Turn {
	return condense.Turn{Trigger: core.TriggerIngest, Window: 10_000_000}
}
