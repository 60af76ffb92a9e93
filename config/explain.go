package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/tree"
)

// An Explanation has the values for a profile in a mode, the origin of each, and the
// result of the numbers.
type Explanation struct {
	Resolved *Resolved   `json:"resolved"`
	Values   []Explained `json:"values"`  // those that decide others first
	Formula  []Term      `json:"formula"` // how the numbers work together
}

// An Explained is one value with the levels at which it was looked up.
type Explained struct {
	Key    string `json:"key"`
	Value  string `json:"value"` // for people
	Origin Origin `json:"origin"`
	Steps  []Step `json:"steps"`
}

// A Term is one line of the arithmetic.
type Term struct {
	Name    string  `json:"name"`
	Formula string  `json:"formula"`
	Tokens  float64 `json:"tokens"`
	Note    string  `json:"note,omitempty"`
}

// Explain explains the result of [Config.Resolve]. A window of more than 0 tokens replaces the
// profile's, to see its effect.
func (c *Config) Explain(profile, mode string, window int) (*Explanation, error) {
	r, err := c.resolveWindow(profile, mode, window)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Resolved: r, Formula: r.formula()}
	values := r.shown()
	for _, key := range shownKeys {
		steps := r.Steps(key)
		if len(steps) == 0 || key == "model" && r.Model.Name == "" {
			continue
		}
		e.Values = append(e.Values, Explained{Key: key, Value: values[key], Origin: r.Origin(key), Steps: steps})
	}
	return e, nil
}

// shownKeys are the keys to explain, those that decide others first.
var shownKeys = []string{
	"profile", "model", "window", "max_output", "auto", "threshold", "buffer", "max_context_tokens",
	"target", "min_gain", "min_new_tokens", "min_size", "max_messages", "max_tool_results", "max_age", "max_results_share",
	"keep_first", "keep_users", "keep_calls", "keep_errors", "tokenizer", "chain", "ingest", "prompt", "originals",
}

// shown returns the values of r as people read them.
func (r *Resolved) shown() map[string]string {
	tokens := func(n int, zero string) string {
		if n == 0 {
			return zero
		}
		return group(float64(n))
	}
	prompt := "the provider's own"
	if r.Prompt != "" {
		prompt = strconv.Quote(plain.Abbreviate(r.Prompt))
	}
	share := "none"
	if r.When.MaxResultsShare > 0 {
		share = percent(r.When.MaxResultsShare)
	}
	target := "chosen"
	if r.Target > 0 {
		target = percent(r.Target)
	}
	return map[string]string{
		"profile": r.Profile, "model": r.Model.Name, "window": group(float64(r.Window)),
		"max_output": tokens(r.MaxOutput, "unknown"), "auto": strconv.FormatBool(r.Auto),
		"threshold": percent(r.Threshold), "buffer": percent(r.Buffer), "target": target,
		"max_context_tokens": tokens(r.MaxContextTokens, "none"), "min_gain": percent(r.MinGain),
		"min_new_tokens": tokens(r.MinNewTokens, "none"), "min_size": tokens(r.MinSize, "none"),
		"max_messages": tokens(r.When.MaxMessages, "none"), "max_tool_results": tokens(r.When.MaxToolResults, "none"),
		"max_age": r.text("max_age"), "max_results_share": share,
		"keep_first": tokens(r.KeepFirst, "none"), "keep_users": tokens(r.KeepUsers, "none"),
		"keep_calls": strconv.FormatBool(r.KeepCalls), "keep_errors": strconv.FormatBool(r.KeepErrors),
		"tokenizer": r.Tokenizer, "chain": r.chain(), "ingest": cmp.Or(names(r.Ingest), "none"), "prompt": prompt, "originals": r.Originals,
	}
}

// chain lists the providers, with truncation in parentheses if it is only a fallback.
func (r *Resolved) chain() string {
	if n := len(r.Chain); n == 0 || r.Chain[n-1].Name != Truncation {
		return names(append(slices.Clone(r.Chain), Provider{Name: "(" + Truncation + ")"}))
	}
	return names(r.Chain)
}

func names(chain []Provider) string {
	return strings.Join(plain.Each(chain, func(p Provider) string { return p.Name }), " → ")
}

// formula is the arithmetic of r, in tokens.
func (r *Resolved) formula() []Term {
	window := float64(r.Window)
	reserve := group(float64(r.Reserve)) + " for the answer"
	if r.MaxOutput == 0 {
		reserve += " (max_output is unknown)"
	}
	terms := []Term{
		{Name: "used", Formula: "system prompt + tools + messages"},
		{
			Name: "threshold", Formula: percent(r.Threshold) + " of " + group(window), Tokens: r.Threshold * window / 100,
			Note: "condense when used reaches it",
		},
		{
			Name: "limit", Formula: group(window) + " × (1 − " + percent(r.Buffer) + ") − " + reserve, Tokens: r.limit(),
			Note: "condense when used is above it",
		},
	}
	if r.MaxContextTokens > 0 {
		terms = append(terms, Term{
			Name: "cap", Formula: "max_context_tokens", Tokens: float64(r.MaxContextTokens),
			Note: "condense when used is above it",
		})
	}
	if !r.Auto {
		for i := range terms {
			if terms[i].Name == "threshold" || terms[i].Name == "cap" {
				terms[i].Note = "ignored, because auto is false"
			}
		}
	}
	trigger, by := r.trigger()
	if !r.Auto {
		trigger, by = r.limit(), "limit"
	}
	target := Term{
		Name: "target", Formula: percent(r.Target) + " of " + group(window), Tokens: r.Target * window / 100,
		Note: "a condensation should not exceed it",
	}
	if r.Target == 0 {
		target.Formula, target.Tokens = "half of the trigger", max(trigger/2, 0)
		target.Note = "plus half of the fixed tokens"
	}
	return append(terms, Term{Name: "trigger", Formula: "the " + by + " comes first", Tokens: trigger}, target)
}

// String returns the explanation as text for a terminal.
func (e *Explanation) String() string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if e.Resolved.Mode != "" {
		fmt.Fprintf(w, "mode\t%s\n", plain.Line(e.Resolved.Mode))
	}
	for _, v := range e.Values {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Key, plain.Line(v.Value), plain.Line(v.Origin.String()))
		for _, s := range v.Steps {
			// Levels that set no value are listed in one line below.
			if s.Used || s.Note == "not set" {
				continue
			}
			fmt.Fprintf(w, "\t\t  %s: %v, %s (%s)\n", plain.Line(s.Level), plain.Line(fmt.Sprint(s.Value)), s.Note, plain.Line(s.Origin.String()))
		}
		if via := e.passed(v); via != "" {
			fmt.Fprintf(w, "\t\t  inherited by %s\n", plain.Line(via))
		}
	}
	fmt.Fprintln(w)
	for _, t := range e.Formula {
		if t.Name == "used" {
			fmt.Fprintf(w, "%s\t= %s\n", t.Name, t.Formula)
			continue
		}
		fmt.Fprintf(w, "%s\t= %s\t= %s\t%s\n", t.Name, t.Formula, group(t.Tokens), t.Note)
	}
	_ = w.Flush() // a buffer cannot fail
	return endsOfLines().ReplaceAllString(b.String(), "")
}

var endsOfLines = plain.Pattern(`(?m) +$`)

// passed lists the levels through which a value was inherited, nearest first.
func (e *Explanation) passed(v Explained) string {
	var through []string
	for _, s := range v.Steps {
		if s.Used {
			break
		}
		if s.Note == "not set" && !strings.HasPrefix(s.Level, "preset ") && !strings.HasPrefix(s.Level, "model ") && s.Level != topLevel {
			through = append(through, s.Level)
		}
	}
	if o := v.Origin.Kind; o == FromDefault || o == FromComputed {
		return "" // no level sets it; all of them would be listed
	}
	return strings.Join(through, ", ")
}

func percent(p float64) string { return strconv.FormatFloat(p, 'f', -1, 64) + " %" }

// group writes a number of tokens with thousands separators and at most one decimal.
func group(v float64) string {
	v = math.Round(v*10) / 10
	whole := size.Group(int(math.Abs(math.Trunc(v))))
	if v < 0 {
		whole = "−" + whole
	}
	if f := math.Abs(v - math.Trunc(v)); f > 0.01 {
		whole += strconv.FormatFloat(f, 'f', 1, 64)[1:]
	}
	return whole
}

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
	out := slices.Concat(plain.Each(found, c.explainMatch)...)
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
		return slices.Concat(plain.Each(sortedKeys(inner),
			func(name string) []KeyExplanation {
				return c.explainMatch(keyMatch{m.path.With(name), field{kind: kindFree}})
			})...)
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
