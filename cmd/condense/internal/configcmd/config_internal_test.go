package configcmd

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core/policy"
)

// The forecast of explain is correct: nothing smaller is condensed, and everything larger is.
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
		}
		if rapid.Bool().Draw(t, "roo") {
			r.Exceptions = policy.Exceptions{UnknownReserve: 8192, StopAtLimit: true, IgnoreFixed: true, Eager: true, Unchecked: true}
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
