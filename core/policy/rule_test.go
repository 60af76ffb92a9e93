package policy_test

import (
	"math"
	"strings"
	"testing"

	"github.com/condensehq/condense/core/policy"
)

// rule returns the recommended rule for a window, changed by edit.
func rule(window int, edit ...func(*policy.Rule)) policy.Rule {
	r := policy.Default(window)
	for _, e := range edit {
		e(&r)
	}
	return r
}

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		name string
		edit func(*policy.Rule)
		want []string // the fields that are named, in order
	}{
		{"default", func(*policy.Rule) {}, nil},
		{"all set", func(r *policy.Rule) {
			r.MaxOutput, r.MaxContextTokens, r.MinSize, r.Target = 64000, 120000, 20000, 40
		}, nil},
		{"bounds, low", func(r *policy.Rule) { r.Buffer, r.Threshold, r.MinGain, r.MinNewTokens, r.Target = 0, 5, 0, 0, 1 }, nil},
		{"bounds, high", func(r *policy.Rule) {
			r.Buffer, r.Threshold, r.MinGain, r.MinNewTokens, r.Target = 90, 100, 90, 1<<30, 99
		}, nil},
		{"min equals max", func(r *policy.Rule) { r.MinSize, r.MaxContextTokens = 9, 9 }, nil},
		{"window 0", func(r *policy.Rule) { r.Window = 0 }, []string{"window"}},
		{"window negative", func(r *policy.Rule) { r.Window = -1 }, []string{"window"}},
		{"max_output negative", func(r *policy.Rule) { r.MaxOutput = -1 }, []string{"max_output"}},
		{"max_output as large as the window", func(r *policy.Rule) { r.MaxOutput = 200000 }, []string{"max_output"}},
		{"limit of exactly 0", func(r *policy.Rule) { r.MaxOutput = 180000 }, []string{"max_output"}},
		{"unknown output and a large buffer", func(r *policy.Rule) { r.Buffer = 90 }, nil},
		{"unknown output and a large buffer in a small window", func(r *policy.Rule) { r.Window, r.Buffer = 1000, 90 }, []string{"max_output"}},
		{"limit of 1", func(r *policy.Rule) { r.MaxOutput = 179999 }, nil},
		{"buffer", func(r *policy.Rule) { r.Buffer = 90.5 }, []string{"buffer"}},
		{"buffer NaN", func(r *policy.Rule) { r.Buffer = nan }, []string{"buffer"}},
		{"threshold low", func(r *policy.Rule) { r.Threshold = 4.99 }, []string{"threshold"}},
		{"threshold high", func(r *policy.Rule) { r.Threshold = 100.01 }, []string{"threshold"}},
		{"threshold inherits", func(r *policy.Rule) { r.Threshold = -1 }, []string{"threshold"}},
		{"threshold NaN", func(r *policy.Rule) { r.Threshold = nan }, []string{"threshold"}},
		{"max_context_tokens negative", func(r *policy.Rule) { r.MaxContextTokens = -5 }, []string{"max_context_tokens"}},
		{"min_size negative", func(r *policy.Rule) { r.MinSize = -5 }, []string{"min_size"}},
		{"min above max", func(r *policy.Rule) { r.MinSize, r.MaxContextTokens = 10, 9 }, []string{"min_size"}},
		{"target low", func(r *policy.Rule) { r.Target = 0.5 }, []string{"target"}},
		{"target high", func(r *policy.Rule) { r.Target = 100 }, []string{"target"}},
		{"target NaN", func(r *policy.Rule) { r.Target = nan }, []string{"target"}},
		{"target at the threshold", func(r *policy.Rule) { r.Target = 80 }, []string{"target"}},
		{"min_gain", func(r *policy.Rule) { r.MinGain = 91 }, []string{"min_gain"}},
		{"min_gain infinite", func(r *policy.Rule) { r.MinGain = inf }, []string{"min_gain"}},
		{"min_new_tokens", func(r *policy.Rule) { r.MinNewTokens = -1 }, []string{"min_new_tokens"}},
		{
			"everything", func(r *policy.Rule) {
				*r = policy.Rule{
					Window: -1, MaxOutput: -1, Buffer: -1, Threshold: 1, MaxContextTokens: -1, MinSize: -1,
					Target: -1, MinGain: -1, MinNewTokens: -1,
				}
			},
			[]string{
				"window", "max_output", "buffer", "threshold", "max_context_tokens", "min_size",
				"target", "min_gain", "min_new_tokens",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := rule(200000, tt.edit).Validate()
			var got []string
			if err != nil {
				for line := range strings.SplitSeq(err.Error(), "\n") {
					field, _, _ := strings.Cut(line, ":")
					got = append(got, field)
				}
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("got faults in %v (%v), want %v", got, err, tt.want)
			}
		})
	}
}

func TestValidateSaysWhatIsAllowed(t *testing.T) {
	r := rule(32768, func(r *policy.Rule) { r.Threshold, r.MaxOutput = 3, 64000 })
	err := r.Validate()
	if want := "threshold: 3 is outside 5..100 percent of the window"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	r.Threshold = 80
	err = r.Validate()
	want := "max_output: 64,000 tokens for the answer and a buffer of 10 % leave no room in the window of 32,768; lower them or set a larger window"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRooRuleIsAlwaysValid(t *testing.T) {
	r := rooRule(8000)
	r.MaxOutput, r.Threshold = -5, 150
	if err := r.Validate(); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

func TestSize(t *testing.T) {
	const most = math.MaxInt
	tests := []struct {
		size                  policy.Size
		overhead, used, floor int
	}{
		{policy.Size{}, 0, 0, 0},
		{policy.Size{System: 1, Tools: 20, Messages: 300, Protected: 40}, 21, 321, 61},
		{policy.Size{Messages: 5, Protected: 9}, 0, 5, 5}, // no more is protected than is there
		{policy.Size{System: -1, Tools: 20, Messages: -3, Protected: -7}, 20, 20, 20},
		{policy.Size{System: most, Tools: most, Messages: most, Protected: most}, most, most, most},
		{policy.Size{System: most - 1, Messages: 5, Protected: 1}, most - 1, most, most},
	}
	for _, tt := range tests {
		if o, u, f := tt.size.Overhead(), tt.size.Used(), tt.size.Floor(); o != tt.overhead || u != tt.used || f != tt.floor {
			t.Errorf("%+v: got overhead %d, used %d, floor %d, want %d, %d, %d", tt.size, o, u, f, tt.overhead, tt.used, tt.floor)
		}
	}
}
