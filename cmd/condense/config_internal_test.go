package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/registry"
)

// What explain foretells is what happens: nothing smaller is condensed, and everything
// larger is.
func TestForecastIsWhatHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &config.Resolved{
			Window:           rapid.IntRange(1000, 2_000_000).Draw(t, "window"),
			MaxOutput:        rapid.SampledFrom([]int{0, 1, 500, 8192, 64_000}).Draw(t, "max_output"),
			Auto:             rapid.Bool().Draw(t, "auto"),
			Threshold:        rapid.Float64Range(5, 100).Draw(t, "threshold"),
			Buffer:           rapid.Float64Range(0, 90).Draw(t, "buffer"),
			Target:           rapid.SampledFrom([]float64{0, 1, 4.9}).Draw(t, "target"),
			MaxContextTokens: rapid.SampledFrom([]int{0, 900, 50_000, 5_000_000}).Draw(t, "max_context_tokens"),
			MinSize:          rapid.SampledFrom([]int{0, 800}).Draw(t, "min_size"),
			MinGain:          rapid.Float64Range(0, 90).Draw(t, "min_gain"),
			MinNewTokens:     rapid.SampledFrom([]int{0, 1000, 100_000}).Draw(t, "min_new_tokens"),
			RooRule:          rapid.Bool().Draw(t, "roo"),
		}
		f := newForecast(r)
		if err := f.rule.Validate(); err != nil {
			t.Skip("no such configuration loads")
		}
		decide := func(n int) policy.Decision { return f.decide(n, policy.State{}) }
		first := f.trigger.Used
		if !decide(first).Act {
			t.Fatalf("%d is said to be condensed and is not: %v", first, decide(first))
		}
		smaller := rapid.IntRange(0, max(0, first-1)).Draw(t, "smaller")
		if smaller < first && decide(smaller).Act {
			t.Fatalf("%d is condensed, though %d is said to be the smallest: %v", smaller, first, decide(smaller))
		}
		if larger := first + rapid.IntRange(0, 10_000_000).Draw(t, "more"); !decide(larger).Act {
			t.Fatalf("%d is not condensed, though %d is: %v", larger, first, decide(larger))
		}
		if f.due > 0 && decide(f.due-1).Percent >= r.Threshold || decide(f.due).Percent < r.Threshold {
			t.Fatalf("%d is said to be the smallest that reaches %v %%", f.due, r.Threshold)
		}
		if triggers[f.trigger.Reason] == "" {
			t.Fatalf("no word for the reason %q", f.trigger.Reason)
		}
	})
}

type window struct {
	Keep  int      `json:"keep"`
	Share float64  `json:"share"`
	Mode  string   `json:"mode"`
	Names []string `json:"names"`
}

func (w *window) Validate() error {
	var errs []error
	if w.Keep < 0 {
		errs = append(errs, fmt.Errorf("keep: %d is negative", w.Keep))
	}
	if w.Mode == "both" && w.Share == 0 {
		errs = append(errs, errors.New("mode both needs a share"))
	}
	if slices.Contains(w.Names, "") {
		errs = append(errs, errors.New("names[0]: is empty"))
	}
	return errors.Join(errs...)
}

// Each fault is found in one go and blamed on the setting that has it.
func TestSettingFaults(t *testing.T) {
	s := registry.Define("window", "A strategy.", func() window { return window{} },
		func(_ context.Context, w window, _ registry.Env) (core.CondensationProvider, error) {
			if w.Keep == 13 {
				return nil, errors.New("bad luck")
			}
			return core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) { return nil, nil }), nil //nolint:nilnil // never asked
		})
	for settings, want := range map[string][]string{
		`{}`:                        nil,
		`{"keep": 1, "names": []}`:  nil,
		`{"keep": null}`:            nil,
		`{"keep": -1}`:              {"keep: -1 is negative"},
		`{"kepe": 1, "share": "x"}`: {`kepe: unknown setting of window (keep)`, "share: got a JSON string; want number"},
		// The decoder reports one wrong type, and judges no values when there is one.
		`{"keep": "x", "share": "x", "names": [""]}`: {"keep: got a JSON string; want integer", "names: at [0]: is empty", "share: got a JSON string; want number"},
		// What no setting is blamed for is blamed on all, but not what follows from taking others out.
		`{"mode": "both"}`:                {": mode both needs a share"},
		`{"mode": "both", "share": "x"}`:  {"share: got a JSON string; want number"},
		`{"keep": 13}`:                    {": bad luck"},
		`{"Keep": 1}`:                     {"Keep: unknown setting of window (keep)"},
		`{"whatever": {"a": 1}}`:          {"whatever: unknown setting of window there are keep, share, mode, names"},
		`{"keep": {"a": 1}, "mode": [1]}`: {"keep: got a JSON object; want integer", "mode: got a JSON array; want string"},
	} {
		var got []string
		for _, f := range settingFaults(s, []byte(settings), registry.Env{}) {
			name := ""
			if len(f.Key) > 1 {
				name = f.Key[1]
			}
			text := name + ": " + f.Problem
			if f.Suggestion != "" {
				text += " (" + f.Suggestion + ")"
			}
			if f.Allowed != "" {
				text += " " + f.Allowed
			}
			got = append(got, text)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", settings, diff)
		}
	}
}
