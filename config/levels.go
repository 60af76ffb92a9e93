package config

import (
	"encoding/json"
	"slices"

	"github.com/condensehq/condense/core/policy"

	"github.com/condensehq/condense/internal/tree"
)

// A level is one step of inheritance.
type level struct {
	label  string
	path   tree.Path      // in the configuration; nil for the top level and for presets
	values map[string]any // may be nil
	origin Origin         // of values that are not in the configuration
}

// lineage returns a profile and those it extends, nearest first, and the rule of their
// presets. It is empty if a name is unknown or the profiles form a cycle.
func (c *Config) lineage(profile string) (names []string, rule policy.Exceptions) {
	for name := profile; name != ""; {
		p, ok := c.values.Profiles[name]
		if !ok || slices.Contains(names, name) {
			return nil, policy.Exceptions{}
		}
		names = append(names, name)
		if preset, ok := presetNamed(p.Preset); ok && preset.rule != (policy.Exceptions{}) {
			rule = preset.rule
		}
		name = p.Extends
	}
	return names, rule
}

func (c *Config) levels(profiles []string, mode string) []level {
	at := func(label string, p tree.Path) level {
		v, _ := lookup(c.raw, p)
		m, _ := v.(map[string]any)
		return level{label: label, path: p, values: m}
	}
	var levels []level
	if _, ok := c.values.Modes[mode]; ok {
		levels = append(levels, at("mode "+mode, tree.Path{"modes", mode}))
	}
	modelSeen := false
	for _, name := range profiles {
		levels = append(levels, at("profile "+name, tree.Path{"profiles", name}))
		p := c.values.Profiles[name]
		if p.Model != "" && !modelSeen {
			modelSeen = true
			if m, err := c.Model(p.Model); err == nil {
				levels = append(levels, c.modelLevel(m))
			}
		}
		if preset, ok := presetNamed(p.Preset); ok {
			levels = append(levels, level{
				label: "preset " + preset.name, values: preset.values,
				origin: Origin{Kind: FromPreset, Name: preset.name},
			})
		}
	}
	return append(levels, at(topLevel, nil), c.defaultLevel())
}

// modelLevel returns the level of the known numbers of a model. It comes after the profile that
// names the model, and before the levels that this profile inherits from.
func (c *Config) modelLevel(m *Model) level {
	l := level{label: "model " + m.Name, values: map[string]any{}, origin: Origin{Kind: FromModel, Name: m.Name}}
	declared := c.values.Models[m.Name]
	if declared.Window > 0 || declared.MaxOutput > 0 {
		l.path = tree.Path{"models", m.Name}
	}
	if m.Window > 0 {
		l.values["window"] = int64(m.Window)
	}
	if m.MaxOutput > 0 {
		l.values["max_output"] = int64(m.MaxOutput)
	}
	return l
}

func (c *Config) defaultLevel() level {
	l := level{label: defaultLabel, values: map[string]any{}, origin: Origin{Kind: FromDefault}}
	for _, f := range fieldsAt(atTop) {
		if def := c.opts.def(f); def != nil {
			l.values[f.key] = def
		}
	}
	return l
}

// A finder looks values up along the levels and records the steps.
type finder struct {
	c         *Config
	levels    []level
	unchecked bool
	steps     map[string][]Step
	at        map[string][]string
}

// find returns the value of a field, nil if no level has one.
func (f *finder) find(key string) any {
	for _, l := range f.levels {
		if l.label == topLevel {
			f.inherited(key)
		}
		v, has := l.values[key]
		step := Step{Level: l.label, Value: v, Origin: l.origin}
		if l.path != nil || l.label == topLevel {
			if o, ok := f.c.origins[l.path.With(key).ID()]; ok {
				step.Origin = o
			}
		}
		switch {
		case !has || v == nil:
			step.Note = "not set"
			step.Origin = Origin{}
		case isInherit(v):
			step.Note = "inherits"
		case step.Origin.Kind == FromDefault && l.label != defaultLabel && key != "window":
			continue // merged into the top level; the default level has it
		case key == "window" && step.Origin.Kind == FromDefault && f.knowsWindow():
			step.Note = "the model's window is known"
		case key == "threshold" && f.unchecked && l.label != topLevel && l.label != defaultLabel && outsideThreshold(v):
			step.Note = "ignored by Roo's rule"
		default:
			step.Used = true
		}
		f.steps[key] = append(f.steps[key], step)
		if step.Used {
			f.at[key] = l.path.With(key)
			return v
		}
	}
	return nil
}

// inherited records where the top level of a file says -1, which counts as absent: the newest layer first.
func (f *finder) inherited(key string) {
	for _, s := range slices.Backward(f.c.history[key]) {
		if !isInherit(s.Value) {
			return
		}
		f.steps[key] = append(f.steps[key], Step{Level: topLevel, Value: s.Value, Origin: s.Origin, Note: "inherits"})
	}
}

// knowsWindow reports whether a level after the built-in window has a window.
func (f *finder) knowsWindow() bool {
	return slices.ContainsFunc(f.levels, func(l level) bool { return l.origin.Kind == FromModel && l.values["window"] != nil })
}

func isInherit(v any) bool {
	n, ok := number(v)
	return ok && n == inherit
}

func outsideThreshold(v any) bool {
	f, _ := fieldAt(atTop, "threshold")
	n, _ := number(v)
	return n < f.min || n > f.max
}

func (f *finder) percent(key string) float64 {
	n, _ := number(f.find(key))
	return n
}

func (f *finder) tokens(key string, window int) int {
	return tokensOf(f.find(key), window)
}

// tokensOf returns a number of tokens, or a share of a window in tokens.
func tokensOf(v any, window int) int {
	switch v := v.(type) {
	case string:
		var a Amount
		if text, err := json.Marshal(v); err == nil && a.UnmarshalJSON(text) == nil {
			return a.of(window)
		}
	case int64:
		return int(v)
	case float64:
		return int(v)
	}
	return 0
}

func (f *finder) text(key string) string {
	s, _ := f.find(key).(string)
	return s
}

// A preset is a set of values for profiles. It comes after the profile's own values and before
// those that the profile inherits.
type preset struct {
	name   string
	doc    string
	values map[string]any
	// rule is how the policy deviates from the default.
	rule policy.Exceptions
	// providers are declared with the preset. A user's provider of the same name overrides.
	providers map[string]map[string]any
}

// presets is a function so that callers do not share its maps.
func presets() []preset {
	return []preset{{
		name: "roo",
		doc:  "The rule of Roo Code, and its truncation of half the conversation.",
		rule: policy.Exceptions{UnknownReserve: unknownOutput, StopAtLimit: true, IgnoreFixed: true, Eager: true, Unchecked: true},
		values: map[string]any{
			"buffer":             10.0,
			"max_context_tokens": int64(0),
			"min_gain":           0.0,
			"min_new_tokens":     int64(0),
			"min_size":           int64(0),
			"chain":              []any{"roo_half"},
		},
		providers: map[string]map[string]any{
			"roo_half": {"strategy": "slidingwindow", "settings": map[string]any{"mode": "half"}},
		},
	}}
}

func presetNames() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return names
}

func presetNamed(name string) (preset, bool) {
	for _, p := range presets() {
		if p.name == name {
			return p, true
		}
	}
	return preset{}, false
}
