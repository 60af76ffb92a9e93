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

// Open returns a host that shortens results: where nothing is lost, and, if maxResult is not 0, those that have
// more tokens than that, which are cut to it by their type, with a handle. It reads no configuration.
func Open(ctx context.Context, lossless bool, maxResult int) (*condense.Host, error) {
	var passes []smart.PassConfig
	if lossless {
		passes = smart.Lossless()
	}
	if maxResult > 0 {
		cut, err := json.Marshal(map[string]int{"start": maxResult, "tokens": maxResult, "keep": 0})
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
	return condense.Open(ctx, &condense.Options{Values: &values})
}

// Turn returns the turn with which such a host shortens every result. The last message of a conversation
// is never changed: an answer of the model has to follow the results.
func Turn() condense.Turn {
	return condense.Turn{Trigger: core.TriggerManual, Window: 10_000_000, Target: 1}
}
