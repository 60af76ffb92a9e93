package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/tree"
)

// A Setting is one value and its origin.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin Origin `json:"origin"`
}

// A KeyExplanation explains one key.
type KeyExplanation struct {
	Key     string `json:"key"`
	Doc     string `json:"doc"`
	Allowed string `json:"allowed"`
	Default any    `json:"default,omitempty"`
	// Layers are the values from files, variables and flags. The last one counts.
	Layers []Setting `json:"layers,omitempty"`
	// Steps are the levels of inheritance, for a key of a profile or a mode.
	Steps []Step `json:"steps,omitempty"`
	// Overrides are the values that profiles and modes set instead of this one: all layers of each, of which the last one counts. -1
	// inherits.
	Overrides []Setting `json:"overrides,omitempty"`
}

// ExplainKey explains a key as users write it: threshold, profiles.code.threshold,
// profiles."gpt-4.1". For a key of several values, such as profiles.code, it returns one
// explanation for each value that is set.
func (c *Config) ExplainKey(key string) ([]KeyExplanation, error) {
	found := dottedSpelling.matches(key, c.raw)
	if len(found) == 0 {
		if f := dottedSpelling.noMatch(key, c.raw); f != nil {
			return nil, &Error{Origin: Origin{Kind: FromArgument}, Key: key, Problem: f.problem, Allowed: f.allowed, Suggestion: f.suggestion}
		}
	}
	var out []KeyExplanation
	for _, m := range found {
		out = append(out, c.explainMatch(m)...)
	}
	return out, nil
}

// Keys returns every key that [Config.ExplainKey] explains, including the keys of the declared
// profiles, modes, providers and models.
func (c *Config) Keys() []string { return dottedSpelling.known(c.raw) }

// Changed returns the keys whose values differ between two configurations, sorted. The values may be secret.
func Changed(before, after *Config) (keys []string) {
	var compare func(was, is any, p tree.Path)
	compare = func(was, is any, p tree.Path) {
		a, isA := was.(map[string]any)
		b, isB := is.(map[string]any)
		if !isA && !isB {
			if !reflect.DeepEqual(was, is) {
				keys = append(keys, p.String())
			}
			return
		}
		for name, v := range a {
			compare(v, b[name], p.With(name))
		}
		for name, v := range b {
			if _, both := a[name]; !both {
				compare(nil, v, p.With(name))
			}
		}
	}
	compare(before.raw, after.raw, nil)
	slices.Sort(keys)
	return keys
}

func (c *Config) explainMatch(m keyMatch) []KeyExplanation {
	value, _ := lookup(c.raw, m.path)
	inner, isMap := value.(map[string]any)
	if m.field.kind == kindObject || m.field.kind == kindSection {
		var out []KeyExplanation
		for _, f := range fieldsOf(m.field.of, inner) {
			if _, set := inner[f.key]; set && m.field.kind == kindObject {
				out = append(out, c.explainMatch(keyMatch{m.path.With(f.key), f})...)
			}
		}
		if m.field.kind == kindSection {
			for _, name := range sortedKeys(inner) {
				out = append(out, c.explainMatch(keyMatch{m.path.With(name), field{kind: kindObject, of: m.field.of}})...)
			}
		}
		if len(out) == 0 {
			doc := cmp.Or(m.field.doc, "Sets nothing; everything is inherited.")
			out = []KeyExplanation{{Key: m.path.String(), Doc: doc, Allowed: m.field.allowed()}}
		}
		return out
	}
	if isMap {
		var out []KeyExplanation
		for _, name := range sortedKeys(inner) {
			out = append(out, c.explainMatch(keyMatch{m.path.With(name), field{kind: kindFree}})...)
		}
		return out
	}
	e := KeyExplanation{Key: m.path.String(), Doc: m.field.doc, Layers: slices.Clone(c.history[m.path.ID()])}
	if m.field.key != "" {
		e.Allowed, e.Default = m.field.allowed(), c.opts.def(m.field)
	} else {
		e.Doc, e.Allowed = "A setting of the provider's strategy.", "what the strategy takes"
	}
	e.Steps = c.keySteps(m.path)
	if len(m.path) == 1 {
		e.Overrides = c.overrides(m.path[0])
	}
	return []KeyExplanation{e}
}

// keySteps returns the inheritance of a key of a profile or a mode.
func (c *Config) keySteps(p tree.Path) []Step {
	if len(p) != 3 {
		return nil
	}
	profile, mode := "", ""
	switch p[0] {
	case "profiles":
		profile = p[1]
	case "modes":
		mode = p[1]
	default:
		return nil
	}
	r, err := c.Resolve(profile, mode)
	if err != nil {
		return nil
	}
	return r.Steps(p[2])
}

// overrides returns the values that profiles and modes set for a key of the top level, those that inherit and overridden ones included.
func (c *Config) overrides(key string) []Setting {
	var out []Setting
	for _, section := range []string{"profiles", "modes"} {
		names, _ := c.raw[section].(map[string]any)
		for _, name := range sortedKeys(names) {
			p := tree.Path{section, name, key}
			out = append(out, c.history[p.ID()]...)
		}
	}
	return out
}

// counting returns the index of the layer whose value counts, -1 if there is none. For a key of
// a profile or a mode, Steps show the value that -1 inherits.
func (e KeyExplanation) counting() int {
	for i, s := range slices.Backward(e.Layers) {
		outside := s.Origin.Kind == FromEnv || s.Origin.Kind == FromFlag
		if !isInherit(s.Value) || !outside && len(e.Steps) > 0 {
			return i
		}
	}
	return -1
}

// String returns the explanation as text for a terminal.
func (e KeyExplanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  %s\n  Must be %s.\n", e.Key, e.Doc, e.Allowed)
	if e.Default != nil {
		fmt.Fprintf(&b, "  Default: %s.\n", compact(e.Default))
	}
	counts := e.counting()
	for i, s := range e.Layers {
		note := "overridden"
		switch {
		case i == counts:
			note = "this counts"
		case i > counts && isInherit(s.Value):
			note = "inherits"
		}
		fmt.Fprintf(&b, "  %s  from %s, %s\n", compact(s.Value), s.Origin, note)
	}
	if len(e.Layers) == 0 {
		b.WriteString("  Not set anywhere.\n")
	}
	for _, s := range e.Steps {
		switch {
		case s.Used:
			fmt.Fprintf(&b, "  → %s: %s, from %s\n", s.Level, compact(s.Value), s.Origin)
		case s.Value == nil:
			fmt.Fprintf(&b, "    %s: %s\n", s.Level, s.Note)
		default:
			fmt.Fprintf(&b, "    %s: %s, %s\n", s.Level, compact(s.Value), s.Note)
		}
	}
	for i, s := range e.Overrides {
		note := ""
		switch {
		case i+1 < len(e.Overrides) && e.Overrides[i+1].Key == s.Key:
			note = ", overridden"
		case isInherit(s.Value):
			note = ", inherits"
		}
		fmt.Fprintf(&b, "  but %s: %s, from %s%s\n", s.Key, compact(s.Value), s.Origin, note)
	}
	return b.String()
}

// compact writes a value on one line, as JSON, which is also YAML.
func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
