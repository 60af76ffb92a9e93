package smart

import (
	"encoding/json"
	"slices"
)

// defaultPreset is used when the configuration names none.
const defaultPreset = "balanced"

// A preset is a list of passes with a name.
type preset struct {
	name, doc string
	land      float64 // see [Config.Land]
	passes    []PassConfig
}

// lossless are the passes that every preset of ours begins with.
var lossless = []PassConfig{
	{Pass: "layout", Always: true},
	{Pass: "environment", Always: true},
	{Pass: "superseded", Always: true},
	{Pass: "near_duplicates", Always: true},
	{Pass: "duplicates", Always: true}, // the last, so that no reference leads to a stub
}

// Lossless returns the passes of the preset lossless.
func Lossless() []PassConfig { return slices.Clone(lossless) }

func after(passes []PassConfig, more ...PassConfig) []PassConfig {
	return append(slices.Clip(passes), more...)
}

func with(name, settings string) PassConfig {
	return PassConfig{Pass: name, Settings: json.RawMessage(settings)}
}

// presets makes the documentation too: docs/smart.md is generated from it.
var presets = []preset{
	{name: "lossless", doc: "what is repeated, stale or empty goes; nothing that appears only once is touched", land: 1, passes: lossless},
	{
		name: "gentle", doc: "the lines with the lowest expected use, and no more than the target requires: for targets of 80 to 95 %, at which little but repeated lines has to go",
		land: 1, passes: []PassConfig{{Pass: "layout", Always: true}, with("value", `{}`)},
	},
	{
		name: "balanced", doc: "what lossless removes, then the lines with the lowest expected use, until the target is met",
		land: 1, passes: after(lossless, with("value", `{}`)),
	},
	{
		name: "aggressive", doc: "what lossless removes, what was read before it was written and run before it was run again, old reasoning, then the lines with the lowest expected use, down to half of the target, so that the next condensation is far away",
		land: 0.5, passes: []PassConfig{
			{Pass: "layout", Always: true},
			{Pass: "environment", Always: true},
			{Pass: "superseded", Always: true, Settings: json.RawMessage(`{"by_writes": true, "runs": true}`)},
			{Pass: "near_duplicates", Always: true},
			{Pass: "duplicates", Always: true},
			with("reasoning", `{}`),
			with("value", `{}`),
		},
	},
}

func presetNames() []string {
	names := make([]string, len(presets))
	for i := range presets {
		names[i] = presets[i].name
	}
	return names
}

func findPreset(name string) (*preset, bool) {
	for i := range presets {
		if presets[i].name == name {
			return &presets[i], true
		}
	}
	return nil, false
}

// removedPresets names the replacements of presets of former versions.
var removedPresets = map[string]string{
	"conservative":        `"balanced" keeps more of the text that is needed later, at every size`,
	"observation_masking": `use passes: [{pass: mask, keep: 10}], which is the same, or "balanced", which keeps more of the text that is needed later`,
	"clear_tool_uses":     `use passes: [{pass: mask, keep: 3}], which is the same, or "balanced", which keeps more of the text that is needed later`,
	"prune":               `use passes: [prune], which is the same, or "balanced", which keeps more of the text that is needed later`,
	"headtail":            `use passes: [{pass: headtail, fit: true, tokens: 40, keep: 0}], which is the same, or "balanced", which keeps more of the text that is needed later`,
	"score":               `use passes: [score], which is the same, or "balanced", which keeps more of the text that is needed later`,
}
