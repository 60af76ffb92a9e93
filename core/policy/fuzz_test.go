package policy_test

import (
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

// FuzzDecide asks for nothing but that no number is too strange: no panic, a reason that
// fits the action, a target within the limit, and an answer in words.
func FuzzDecide(f *testing.F) {
	f.Add(200000, 0, 10.0, 80.0, 0, 0, 0.0, 10.0, 5, true, false, 1000, 2000, 160000, 5, 0, 0, 0, "automatic")
	f.Add(8000, -5, 10.0, 150.0, 0, 0, 0.0, 0.0, 0, false, true, 0, 0, 0, 0, 1, 2, 3, "overflow")
	f.Add(-1, 1<<31-1, -1e300, -1.0, -1, -1, 1e300, 1e300, 1<<31-1, true, false, -1, 1<<31-1, 1<<31-1, 1<<31-1, -1<<31, -1<<31, 1<<31-1, "manual")
	f.Add(200087, -33, 20.0, 80.0, 84, 0, 85.0, 10.0, -84, true, true, 1000, 2000, 160043, 5, 0, 0, 0, "automatic") // negative min_new_tokens
	f.Fuzz(func(t *testing.T, window, maxOutput int, buffer, threshold float64, maxContext, minContext int,
		target, minGain float64, minNew int, auto, isRoo bool, system, tools, messages, protected, stateSize, ineffective, stateLimit int, trigger string,
	) {
		r := policy.Rule{
			Window: window, MaxOutput: maxOutput, Buffer: buffer, Auto: auto, Threshold: threshold, MaxContextTokens: maxContext,
			MinSize: minContext, Target: target, MinGain: minGain, MinNewTokens: minNew,
		}
		if isRoo {
			r.Exceptions = rooExceptions
		}
		size := policy.Size{System: system, Tools: tools, Messages: messages, Protected: protected}
		s := policy.State{Size: stateSize, Ineffective: ineffective, Limit: stateLimit}
		d := r.Decide(size, s, core.Trigger(trigger))
		if d.Act != d.Reason.Acts() || d.String() == "" || d.Budget.Target > d.Budget.Limit {
			t.Errorf("%+v: got %+v, %q", r, d, d)
		}
		if valid := r.Validate() == nil && !isRoo; valid && d.Used > d.Budget.Limit && !d.Act && d.Err() == nil {
			t.Errorf("%+v: got %+v, want an attempt or an error", r, d)
		}
		if next := s.After(d, d.Used); d.Act && next.Ineffective < 1 {
			t.Errorf("%+v after a failure: got %+v", s, next)
		}
	})
}
