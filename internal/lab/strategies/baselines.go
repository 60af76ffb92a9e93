package strategies

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// A baseline is a list of passes of the strategy smart that others are compared with. It can be
// named like a preset of smart, which it is not: every one of them keeps less of the content that is needed
// later than the presets do.
type baseline struct {
	name string
	list string // in JSON
}

// baselines are the methods of other programs, and simple ones.
var baselines = []baseline{
	// OpenHands' observation_masking and SWE-agent's LastNObservations, with the newest 10
	{name: "observation_masking", list: `[{"pass":"mask","keep":10}]`},
	// Anthropic's context editing, clear_tool_uses_20250919: keep 3, inputs stay
	{name: "clear_tool_uses", list: `[{"pass":"mask","keep":3}]`},
	// opencode's prune: the last two turns and the newest 40,000 tokens of results stay
	{name: "prune", list: `["prune"]`},
	// of all results longer than one size the beginning and the end stay
	{name: "headtail", list: `[{"pass":"headtail","fit":true,"tokens":40,"keep":0}]`},
	// Roo-Code's documented smart truncation, with its order mended
	{name: "score", list: `["score"]`},
}

// A variant is a form of a strategy that NAME/VARIANT names.
type variant struct {
	name    string
	setting string // that makes it
	value   json.RawMessage
}

// variantsOf returns the presets of a strategy, and the baselines of smart.
func variantsOf(s registry.Strategy) []variant {
	var out []variant
	presets := presetsOf(s)
	for _, name := range presets.Enum {
		text, _ := json.Marshal(name) //nolint:errchkjson // a string
		out = append(out, variant{name, presets.Name, text})
	}
	if s.Name == smart.Name {
		out = append(out, plain.Each(baselines, func(b baseline) variant { return variant{b.name, "passes", json.RawMessage(b.list)} })...)
	}
	return out
}

func findVariant(s registry.Strategy, name string) (variant, error) {
	var names []string
	for _, v := range variantsOf(s) {
		if v.name == name {
			return v, nil
		}
		names = append(names, v.name)
	}
	return variant{}, fmt.Errorf("no preset %q%s; there are %s", name, suggest.DidYouMean(name, names), strings.Join(names, ", "))
}
