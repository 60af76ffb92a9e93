package smart

import (
	"encoding/json"
	"slices"
)

// defaultPreset is used when the configuration names none.
const defaultPreset = "balanced"

// A preset is a list of passes with a name.
type preset struct {
	name, doc, source string
	land              float64 // see [Config.Land]
	passes            []PassConfig
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
	{
		name: "lossless", doc: "what is repeated, stale or empty goes; nothing that appears only once is touched",
		land: 1, passes: lossless,
	},
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
	{
		name:   "observation_masking",
		doc:    "the results of all but the newest tool calls go",
		source: "OpenHands observation_masking and SWE-agent LastNObservations, with the newest 10", land: 1,
		passes: []PassConfig{with("mask", `{"keep": 10}`)},
	},
	{
		name: "clear_tool_uses", doc: "the results of all but the three newest tool calls go",
		source: "Anthropic context editing, clear_tool_uses_20250919: keep 3, inputs stay; when (there: at 100,000 tokens) is the threshold of the profile", land: 1,
		passes: []PassConfig{with("mask", `{"keep": 3}`)},
	},
	{
		name: "prune", doc: "old results go, if there are many: the last two turns and the newest 40,000 tokens of results stay",
		source: "opencode prune: protect 40,000, minimum 20,000, skip 2 turns, never the tool skill", land: 1,
		passes: []PassConfig{with("prune", `{}`)},
	},
	{
		name: "headtail", doc: "of all results longer than one size the beginning and the end stay: the largest size with which the target is met",
		land: 1, passes: []PassConfig{with("headtail", `{"fit": true, "tokens": 40, "keep": 0}`)},
	},
	{
		name: "score", doc: "whole messages go, those with the fewest points first",
		source: "Roo-Code's documented smart truncation, with its order mended", land: 1,
		passes: []PassConfig{with("score", `{}`)},
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
