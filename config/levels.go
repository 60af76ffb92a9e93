package config

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

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

// A line is a profile and everything that it inherits from, nearest first: its own levels, then those of rest. Profiles that extend
// the same one share its line with all that was looked up in it, so a chain of extends costs no more than as many single profiles.
type line struct {
	c           *Config
	own         []level
	rest        *line // nil at the end
	rule        policy.Exceptions
	knowsWindow bool // a level of a model has a window
	found       map[string]*found
}

// The lines of a configuration, made at the first use. All of them are guarded by mu.
type lines struct {
	mu  sync.Mutex
	end *line
	of  map[lineID]*line
}

type lineID struct {
	profile   string
	modelSeen bool // a nearer profile names a model, so the model of this one does not count
}

// line returns the line of a profile; nil if a name is unknown or the profiles form a cycle. c.lines.mu must be held.
func (c *Config) line(id lineID) *line {
	l, known := c.lines.of[id]
	p, ok := c.values.Profiles[id.profile]
	if known || !ok {
		return l
	}
	c.lines.of[id] = nil // until it is complete: a cycle comes back here
	if c.lines.end == nil {
		c.lines.end = c.newLine(nil, c.at(topLevel, nil), defaultLevel(&c.opts))
	}
	rest := c.lines.end
	if p.Extends != "" {
		if rest = c.line(lineID{p.Extends, id.modelSeen || p.Model != ""}); rest == nil {
			return nil
		}
	}
	levels := []level{c.at("profile "+id.profile, tree.Path{"profiles", id.profile})}
	if p.Model != "" && !id.modelSeen {
		if m, err := c.Model(p.Model); err == nil {
			levels = append(levels, c.modelLevel(m))
		}
	}
	preset, ok := presetNamed(p.Preset)
	if ok {
		levels = append(levels, level{label: "preset " + preset.name, values: preset.values, origin: Origin{Kind: FromPreset, Name: preset.name}})
	}
	l = c.newLine(rest, levels...)
	l.rule = cmp.Or(rest.rule, preset.rule)
	c.lines.of[id] = l
	return l
}

func (c *Config) newLine(rest *line, own ...level) *line {
	return &line{
		c: c, own: own, rest: rest, found: map[string]*found{},
		knowsWindow: rest != nil && rest.knowsWindow ||
			slices.ContainsFunc(own, func(l level) bool { return l.origin.Kind == FromModel && l.values["window"] != nil }),
	}
}

// at returns the level of the values at p.
func (c *Config) at(label string, p tree.Path) level {
	v, _ := lookup(c.raw, p)
	m, _ := v.(map[string]any)
	return level{label: label, path: p, values: m}
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

func defaultLevel(opts *Options) level {
	l := level{label: defaultLabel, values: map[string]any{}, origin: Origin{Kind: FromDefault}}
	for _, f := range fieldsAt(atTop) {
		if def := opts.def(f); def != nil {
			l.values[f.key] = def
		}
	}
	return l
}

// A found is the result of looking a key up. It never changes.
type found struct {
	value any       // nil if no level has one
	at    tree.Path // the key that has it
	used  *Step     // the level that has it
	steps []Step    // the levels of one line
	rest  *found    // in the next line
}

// all returns the steps of all levels.
func (f *found) all() (steps []Step) {
	for ; f != nil; f = f.rest {
		steps = append(steps, f.steps...)
	}
	return steps
}

// find looks a key up.
func (l *line) find(key string) *found {
	f, ok := l.found[key]
	if !ok {
		f = l.lookup(key)
		l.found[key] = f
	}
	return f
}

func (l *line) lookup(key string) *found {
	f := &found{}
	for _, of := range l.own {
		if of.label == topLevel {
			f.steps = append(f.steps, l.c.inherited(key)...)
		}
		v, has := of.values[key]
		step := Step{Level: of.label, Value: v, Origin: of.origin}
		if of.path != nil || of.label == topLevel {
			if o, ok := l.c.origins[of.path.With(key).ID()]; ok {
				step.Origin = o
			}
		}
		switch {
		case !has || v == nil:
			step.Note = "not set"
			step.Origin = Origin{}
		case isInherit(v):
			step.Note = "inherits"
		case step.Origin.Kind == FromDefault && of.label != defaultLabel && key != "window":
			continue // merged into the top level; the default level has it
		case key == "window" && step.Origin.Kind == FromDefault && l.knowsWindow:
			step.Note = "the model's window is known"
		case key == "threshold" && of.label != topLevel && of.label != defaultLabel && outsideThreshold(v):
			step.Note = "ignored by Roo's rule" // without it, this is an error
		default:
			step.Used = true
		}
		f.steps = append(f.steps, step)
		if step.Used {
			f.value, f.at, f.used = v, of.path.With(key), &step
			return f
		}
	}
	if l.rest != nil {
		f.rest = l.rest.find(key)
		f.value, f.at, f.used = f.rest.value, f.rest.at, f.rest.used
	}
	return f
}

// inherited returns where the top level of a file says -1, which counts as absent: the newest layer first.
func (c *Config) inherited(key string) (steps []Step) {
	for _, s := range slices.Backward(c.history[key]) {
		if !isInherit(s.Value) {
			break
		}
		steps = append(steps, Step{Level: topLevel, Value: s.Value, Origin: s.Origin, Note: "inherits"})
	}
	return steps
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

func (r *Resolved) percent(key string) float64 {
	n, _ := number(r.found[key].value)
	return n
}

func (r *Resolved) tokens(key string) int { return tokensOf(r.found[key].value, r.Window) }

func (r *Resolved) text(key string) string {
	s, _ := r.found[key].value.(string)
	return s
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
			"max_messages":       int64(0),
			"max_tool_results":   int64(0),
			"max_age":            "none",
			"max_results_share":  0.0,
			"chain":              []any{"roo_half"},
		},
		providers: map[string]map[string]any{"roo_half": {"strategy": "slidingwindow", "settings": map[string]any{"mode": "half"}}},
	}}
}

func presetNamed(name string) (preset, bool) {
	all := presets()
	i := slices.IndexFunc(all, func(p preset) bool { return p.name == name })
	if i < 0 {
		return preset{}, false
	}
	return all[i], true
}
