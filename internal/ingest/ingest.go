// Package ingest shortens tool results before a model sees them for the first time. It is the one list of
// passes for that, for the gateway and for the hooks of agents.
package ingest

import (
	"context"
	"encoding/json"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/providers/smart"
)

// Options say how results are shortened.
type Options struct {
	Lossless bool // where nothing is lost
	// MaxResult is the most tokens that a result may have. Longer ones are cut to it by their type, with a handle.
	// 0 means no limit.
	MaxResult int
	Tokenizer string // empty means the default one
}

// Open returns a host that shortens results. It reads no configuration.
func Open(ctx context.Context, o Options) (*condense.Host, error) {
	var passes []smart.PassConfig
	if o.Lossless {
		passes = smart.Lossless()
	}
	if o.MaxResult > 0 {
		cut, err := json.Marshal(map[string]int{"start": o.MaxResult, "tokens": o.MaxResult, "keep": 0})
		if err != nil {
			return nil, err
		}
		passes = append(passes, smart.PassConfig{Pass: "cut", Settings: cut})
	}
	settings, err := json.Marshal(map[string]any{"passes": passes})
	if err != nil {
		return nil, err
	}
	const name = "ingest"
	none := 0.0
	values := config.Values{Providers: map[string]config.ProviderValues{name: {Strategy: "smart", Settings: settings}}}
	values.Chain, values.MinGain = []string{name}, &none
	if o.Tokenizer != "" {
		values.Tokenizer = &o.Tokenizer
	}
	return condense.Open(ctx, &condense.Options{Values: &values})
}

// Turn returns the turn with which such a host shortens every result. The last message of a conversation
// is never changed: an answer of the model has to follow the results.
func Turn() condense.Turn {
	return condense.Turn{Trigger: core.TriggerManual, Window: 10_000_000, Target: 1}
}
