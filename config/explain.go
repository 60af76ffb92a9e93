package config

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
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
	"keep_first", "keep_users", "keep_calls", "keep_errors", "tokenizer", "chain", "prompt", "originals",
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
		"tokenizer": r.Tokenizer, "chain": r.chain(), "prompt": prompt, "originals": r.Originals,
	}
}

// chain lists the providers, with truncation in parentheses if it is only a fallback.
func (r *Resolved) chain() string {
	names := make([]string, 0, len(r.Chain)+1)
	for _, p := range r.Chain {
		names = append(names, p.Name)
	}
	if n := len(names); n == 0 || names[n-1] != Truncation {
		names = append(names, "("+Truncation+")")
	}
	return strings.Join(names, " → ")
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
