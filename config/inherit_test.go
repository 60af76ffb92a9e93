package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/testkit"
)

// inheritable lists every field of several levels, with different values that are valid
// together, and how to read the result.
var inheritable = []struct {
	key                        string
	top, base, profile, mode   string // as written
	wTop, wBase, wProf, wMode  any    // as resolved
	def                        any
	minusOne, atTop, atProfile bool // whether -1 inherits; the levels of the field
	read                       func(r *config.Resolved) any
}{
	{
		"auto", "false", "true", "false", "true", false, true, false, true,
		true, false, true, true, func(r *config.Resolved) any { return r.Auto },
	},
	{
		"threshold", "71", "72%", "73.5", "74", 71.0, 72.0, 73.5, 74.0,
		80.0, true, true, true, func(r *config.Resolved) any { return r.Threshold },
	},
	{
		"target", "21", "22", "23", "24%", 21.0, 22.0, 23.0, 24.0,
		0.0, true, true, true, func(r *config.Resolved) any { return r.Target },
	},
	{
		"buffer", "11", "0.12", "13%", "0", 11.0, 12.0, 13.0, 0.0,
		10.0, true, true, true, func(r *config.Resolved) any { return r.Buffer },
	},
	{
		"max_context_tokens", "81000", "82k", "83%", "0.084M", 81_000, 82_000, 83_000, 84_000,
		0, true, true, true, func(r *config.Resolved) any { return r.MaxContextTokens },
	},
	{
		"min_gain", "1", "2", "3", "0", 1.0, 2.0, 3.0, 0.0,
		10.0, true, true, true, func(r *config.Resolved) any { return r.MinGain },
	},
	{
		"min_new_tokens", "1000", "2%", "3Ki", "0", 1000, 2000, 3072, 0,
		5000, true, true, true, func(r *config.Resolved) any { return r.MinNewTokens },
	},
	{
		"min_size", "1000", "2%", "3k", "4000", 1000, 2000, 3000, 4000,
		0, true, true, true, func(r *config.Resolved) any { return r.MinSize },
	},
	{
		"max_output", "1000", "2000", "3k", "4000", 1000, 2000, 3000, 4000,
		0, true, true, true, func(r *config.Resolved) any { return r.MaxOutput },
	},
	{
		"tokenizer", "cl100k_base", "p50k_base", "r50k_base", "o200k_base", "cl100k_base", "p50k_base", "r50k_base", "o200k_base",
		"o200k_base", false, true, true, func(r *config.Resolved) any { return r.Tokenizer },
	},
	{
		"chain", "[native]", "[smart]", "[]", "[smart, native]", "native", "smart", "", "smart,native",
		"smart", false, true, true, func(r *config.Resolved) any { return chainNames(r) },
	},
	{
		"prompt", "top", "base", `""`, "|\n      mode", "top", "base", "", "mode\n",
		"", false, true, true, func(r *config.Resolved) any { return r.Prompt },
	},
	{
		"window", "", "100001", "100002", "", nil, 100_001, 100_002, nil,
		nil, true, false, true, func(r *config.Resolved) any { return r.Window },
	},
	{
		"model", "", "gpt-4o", "gpt-4.1", "", nil, "gpt-4o", "gpt-4.1", nil,
		nil, false, false, true, func(r *config.Resolved) any { return r.Model.Name },
	},
}

func chainNames(r *config.Resolved) string {
	var names []string
	for _, p := range r.Chain {
		names = append(names, p.Name)
	}
	return strings.Join(names, ",")
}

// Each field is resolved with every combination of set, absent and -1 at the four levels;
// the nearest level with a value must win.
func TestInheritance(t *testing.T) {
	testkit.Slow(t)
	for _, f := range inheritable {
		t.Run(f.key, func(t *testing.T) {
			file := write(t, "condense.yaml", "")
			states := []string{"absent", "set"}
			if f.minusOne {
				states = append(states, "-1")
			}
			for _, top := range states {
				if !f.atTop && top != "absent" {
					continue
				}
				for _, base := range states {
					for _, profile := range states {
						for _, mode := range states {
							if !f.atTop && mode != "absent" {
								continue
							}
							checkInherited(t, file, f.key, f.read, [4]string{top, base, profile, mode},
								[4]string{f.top, f.base, f.profile, f.mode},
								[4]any{f.wTop, f.wBase, f.wProf, f.wMode}, f.def)
						}
					}
				}
			}
		})
	}
}

func checkInherited(t *testing.T, file, key string, read func(*config.Resolved) any, states, written [4]string, values [4]any, def any) {
	t.Helper()
	line := func(i int, indent string) string {
		switch states[i] {
		case "set":
			return indent + key + ": " + written[i] + "\n"
		case "-1":
			return indent + key + ": -1\n"
		}
		return ""
	}
	window := "window: 100000"
	if key == "window" {
		window = "model: anthropic/claude-sonnet-4-5"
	}
	text := line(0, "") + "default_profile: other\nprofiles:\n" +
		"  other: {window: 100000}\n" +
		"  base:\n    " + window + "\n" + line(1, "    ") +
		"  code:\n    extends: base\n" + line(2, "    ") +
		"modes:\n  m:\n    profile: code\n" + line(3, "    ")
	if key == "window" && states[1] == "absent" {
		def = 200_000 // the model's
	}
	if key == "window" && states[1] == "-1" {
		def = 200_000
	}
	if key == "model" {
		def = ""
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := resolve(t, loadFrom(t, file), "", "m")
	want, level := def, ""
	for i := range 4 {
		if states[i] == "set" {
			want, level = values[i], [4]string{"top level", "profile base", "profile code", "mode m"}[i]
		}
	}
	if got := read(r); !cmp.Equal(got, want) {
		t.Errorf("%v: got %v, want %v\n%s", states, got, want, text)
	}
	steps := r.Steps(key)
	if len(steps) == 0 {
		if level != "" {
			t.Errorf("%v: no steps", states)
		}
		return
	}
	last := steps[len(steps)-1]
	if level != "" && (last.Level != level || !last.Used) {
		t.Errorf("%v: the last step is %+v, want %s\n%s", states, last, level, text)
	}
	for i, s := range steps {
		if s.Used != (i == len(steps)-1) && want != nil && want != "" {
			t.Errorf("%v: step %d: %+v", states, i, s)
		}
	}
}

// The reserve for the answer if max_output is not set.
func TestReserve(t *testing.T) {
	tests := []struct {
		profile string
		want    int
	}{
		{"{window: 200000}", 8192},
		{"{window: 40960}", 8192},
		{"{window: 32768}", 6553},
		{"{window: 8000}", 1600},
		{"{window: 8000, preset: roo}", 8192},
		{"{window: 8000, max_output: 3000}", 3000},
	}
	for _, tt := range tests {
		if got := resolve(t, load(t, "profiles:\n  p: "+tt.profile+"\n"), "", "").Reserve; got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.profile, got, tt.want)
		}
	}
}

// Valid numbers without an effect give a warning.
func TestWarnings(t *testing.T) {
	tests := []struct{ text, want string }{
		{"max_context_tokens: 300k\n", "this cap never applies"},
		{"max_context_tokens: 50k\ntarget: 40\n", "80,000 tokens are not below the 50,000 at which the max_context_tokens"},
		{"min_size: 170k\n", "it will not condense before them"},
		{"profiles:\n  p: {model: openai/gpt-5, max_output: 200000}\n", "answers with 128,000 tokens at most"},
		{"providers:\n  tidy: {strategy: smart}\n", "no chain names this provider"},
		{"default_profile: a\nprofiles:\n  a: {window: 100000, extends: b}\n  b: {window: 100000}\n  unused: {window: 100000}\n", "profiles.unused: no mode, profile or rule names this profile"},
	}
	for _, tt := range tests {
		w := load(t, tt.text).Warnings()
		if len(w) != 1 || !strings.Contains(w[0].Error(), tt.want) || w[0].Origin.Line == 0 {
			t.Errorf("%s: got %v, want one with %q and its place", tt.text, w, tt.want)
		}
	}
	if w := load(t, example).Warnings(); len(w) != 1 { // ours is in no chain
		t.Errorf("the example: got %v", w)
	}
}

// A window comes from the nearest of: the profile, its model, what it extends.
func TestWindow(t *testing.T) {
	tests := []struct {
		name, profile string
		want          int
		origin        config.OriginKind
	}{
		{"of the profile", "{model: gpt-4o, window: 90000}", 90_000, config.FromFile},
		{"of the table", "{model: openai/gpt-4o}", 128_000, config.FromModel},
		{"of the section models", "{model: mine}", 77_777, config.FromFile},
		{"extended", "{extends: base}", 32_768, config.FromFile},
		{"own model before extended window", "{extends: base, model: gpt-4o}", 128_000, config.FromModel},
		{"extended window before unknown model", "{extends: base, model: somebodys}", 32_768, config.FromFile},
		{"extended model", "{extends: cloud}", 128_000, config.FromModel},
		{"own window before extended model", "{extends: cloud, window: 64000}", 64_000, config.FromFile},
		{"-1", "{extends: base, window: -1}", 32_768, config.FromFile},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := load(t, fmt.Sprintf("default_profile: p\nprofiles:\n  base: {window: 32768}\n  cloud: {model: gpt-4o}\n  p: %s\n"+
				"models:\n  mine: {api: openai, window: 77777}\n", tt.profile))
			r := resolve(t, c, "", "")
			if got := r.Window; got != tt.want {
				t.Errorf("got %d, want %d: %+v", got, tt.want, r.Steps("window"))
			}
			if got := r.Origin("window").Kind; got != tt.origin {
				t.Errorf("got %s, want %s", got, tt.origin)
			}
		})
	}
	// The built-in profile has a window of its own, which must not hide that of a model.
	r := resolve(t, load(t, "profiles:\n  default: {model: openai/gpt-4o}\n"), "", "")
	if r.Window != 128_000 {
		t.Errorf("default profile with a model: got %d, want 128000: %+v", r.Window, r.Steps("window"))
	}
}

func TestMaxOutputOfTheModel(t *testing.T) {
	const text = "max_output: 1000\ndefault_profile: a\nprofiles:\n  a: {model: mine}\n  b: {model: mine, max_output: 3000}\n  c: {extends: b, model: gpt-4o}\n" +
		"models:\n  mine: {api: openai, window: 100000, max_output: 2000}\n"
	c := load(t, text)
	for profile, want := range map[string]int{"a": 2000, "b": 3000, "c": 3000} {
		r := resolve(t, c, profile, "")
		if r.MaxOutput != want || r.Reserve != want {
			t.Errorf("%s: got %d, reserve %d, want %d: %+v", profile, r.MaxOutput, r.Reserve, want, r.Steps("max_output"))
		}
	}
}

// Names of profiles differ by case and may contain any character.
func TestNames(t *testing.T) {
	c := load(t, `
default_profile: Code
profiles:
  code: {window: 10000, max_output: 100}
  Code: {window: 20000}
  gpt-4.1: {window: 30000}
  architect/mode: {window: 40000}
  "on": {window: 50000}
  "ünïcode 🙂": {window: 60000}
  1: {window: 70000}
modes:
  a.b: gpt-4.1
  a: {profile: architect/mode}
  on: "on"
  x/y: "ünïcode 🙂"
`)
	for mode, want := range map[string]int{"a.b": 30_000, "a": 40_000, "on": 50_000, "x/y": 60_000, "A": 20_000} {
		if got := resolve(t, c, "", mode).Window; got != want {
			t.Errorf("mode %s: got %d, want %d", mode, got, want)
		}
	}
	for profile, want := range map[string]int{"code": 10_000, "Code": 20_000, "1": 70_000} {
		if got := resolve(t, c, profile, "").Window; got != want {
			t.Errorf("profile %s: got %d, want %d", profile, got, want)
		}
	}
	if _, err := c.Resolve("CODE", ""); err == nil {
		t.Error("profile CODE was found, but there are only code and Code")
	}
}

func TestDefaultProfile(t *testing.T) {
	tests := []struct{ text, want, origin string }{
		{"", "default", "default"},
		{"profiles:\n  only: {window: 50000}\n", "only", "computed: the only profile"},
		{"profiles:\n  default: {window: 50000}\n  b: {window: 60000}\n", "default", "default"},
		{"default_profile: default\nprofiles:\n  b: {window: 60000}\n", "default", "condense.yaml:1:18"},
	}
	for _, tt := range tests {
		c := load(t, tt.text)
		r := resolve(t, c, "", "")
		if r.Profile != tt.want || !strings.HasSuffix(r.Origin("profile").String(), tt.origin) {
			t.Errorf("%q: got %s from %s, want %s from %s", tt.text, r.Profile, r.Origin("profile"), tt.want, tt.origin)
		}
	}
}

// TestThousandsOfUnusedNamesAreAFewLines: the first names that nothing uses are listed, of the rest the number.
func TestThousandsOfUnusedNamesAreAFewLines(t *testing.T) {
	var b strings.Builder
	b.WriteString("default_profile: p0\nprofiles:\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "  p%d: {window: 100000}\n", i)
	}
	b.WriteString("providers:\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "  v%d: {strategy: native}\n", i)
	}
	all := load(t, b.String()).Warnings()
	text := all.Error()
	if n := len(all); n != 20 || !strings.Contains(text, "profiles.p1:") || !strings.Contains(text, "use it (and 2,989 more)") || !strings.Contains(text, "no chain names this provider (and 2,990 more)") {
		t.Errorf("%d warnings: %s", n, text)
	}
}
