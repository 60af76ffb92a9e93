package policy_test

import (
	"math"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

func TestLimitAndReserve(t *testing.T) {
	tests := []struct {
		name           string
		rule           policy.Rule
		reserve, limit int
	}{
		{"unknown output", rule(200000), 8192, 171808},
		{"known output", rule(200000, func(r *policy.Rule) { r.MaxOutput = 64000 }), 64000, 116000},
		{"unknown output, 20 % of the window are less", rule(32768), 6553, 22938},
		{"unknown output, 20 % are exactly 8192", rule(40960), 8192, 28672},
		{"unknown output, one token below that", rule(40955), 8191, 28668},
		{"rounded down", rule(100003, func(r *policy.Rule) { r.MaxOutput = 1 }), 1, 90001}, // 90001.7
		{"tiny window", rule(10), 2, 7},
		{"window 1", rule(1), 0, 0},
		{"no window", rule(0), 0, 0},
		{"negative window", rule(-100), 0, -90},
		{"no buffer", rule(1000, func(r *policy.Rule) { r.Buffer = 0 }), 200, 800},
		{"half buffer", rule(1000, func(r *policy.Rule) { r.Buffer = 50 }), 200, 300},
		{"output above the window", rule(1000, func(r *policy.Rule) { r.MaxOutput = 2000 }), 2000, -1100},
		{"roo, unknown output in a small window", roo(8000, 0), 8192, -992},
		{"roo, negative output", roo(100000, -5000), -5000, 95000},
		{"roo, negative limit is rounded down, not to zero", roo(8005, 0), 8192, -988}, // -987.5
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := tt.rule.Budget(policy.Size{System: 3, Tools: 4, Messages: 5}, core.TriggerAutomatic)
			if b.Reserve != tt.reserve || b.Limit != tt.limit {
				t.Errorf("got reserve %d, limit %d, want %d, %d", b.Reserve, b.Limit, tt.reserve, tt.limit)
			}
			if b.Window != tt.rule.Window || b.Overhead != 7 {
				t.Errorf("got window %d, overhead %d, want %d, 7", b.Window, b.Overhead, tt.rule.Window)
			}
		})
	}
}

func TestLimitDoesNotWrapAround(t *testing.T) {
	size := policy.Size{Messages: 1}
	large := rule(math.MaxInt, func(r *policy.Rule) { r.Buffer = 0 })
	if b := large.Budget(size, core.TriggerAutomatic); b.Limit < math.MaxInt-10000 {
		t.Errorf("largest window: got limit %d, want nearly the window", b.Limit)
	}
	small := rule(1000, func(r *policy.Rule) { r.MaxOutput = math.MaxInt })
	if b := small.Budget(size, core.TriggerAutomatic); b.Limit > -math.MaxInt+10000 {
		t.Errorf("largest output: got limit %d, want nearly the smallest int", b.Limit)
	}
	if b := roo(math.MaxInt, -math.MaxInt).Budget(size, core.TriggerAutomatic); b.Limit != math.MaxInt {
		t.Errorf("largest window, smallest output: got limit %d, want the largest int", b.Limit)
	}
	negative := rule(math.MinInt, func(r *policy.Rule) { r.MaxOutput = math.MaxInt })
	if b := negative.Budget(size, core.TriggerAutomatic); b.Limit != math.MinInt {
		t.Errorf("smallest window, largest output: got limit %d, want the smallest int", b.Limit)
	}
}

func roo(window, maxOutput int, change ...func(*policy.Rule)) policy.Rule {
	r := rooRule(window)
	r.MaxOutput = maxOutput
	for _, c := range change {
		c(&r)
	}
	return r
}

// The limit of the window of 200,000 is 171,808, 80 % of it are 160,000, and 5 % (MinNewTokens)
// are 10,000.
func TestTarget(t *testing.T) {
	size := func(overhead, protected, used int) policy.Size {
		return policy.Size{System: overhead, Protected: protected, Messages: used - overhead}
	}
	target := func(percent float64) func(*policy.Rule) {
		return func(r *policy.Rule) { r.Target = percent }
	}
	tests := []struct {
		name    string
		rule    policy.Rule
		size    policy.Size
		trigger core.Trigger
		want    int
	}{
		{"half way from nothing to the threshold", rule(200000), size(0, 0, 160000), core.TriggerAutomatic, 80000},
		{"half way from the floor to the threshold", rule(200000), size(10000, 2000, 160000), core.TriggerAutomatic, 86000},
		{
			"the limit, being lower than the threshold", rule(200000, func(r *policy.Rule) { r.Threshold = 100 }),
			size(0, 0, 180000), core.TriggerAutomatic, 85904,
		},
		{
			"max_context_tokens, being lowest", rule(200000, func(r *policy.Rule) { r.MaxContextTokens = 50000 }),
			size(10000, 0, 60000), core.TriggerAutomatic, 30000,
		},
		{
			"auto off: only the limit counts", rule(200000, func(r *policy.Rule) { r.Auto, r.MaxContextTokens = false, 50000 }),
			size(0, 0, 180000), core.TriggerAutomatic, 85904,
		},
		{
			"a threshold below the floor does not count", rule(200000, func(r *policy.Rule) { r.Threshold = 20 }),
			size(30000, 20000, 180000), core.TriggerAutomatic, 50000 + 121808/2,
		},
		{
			"max_context_tokens below the floor do not count", rule(200000, func(r *policy.Rule) { r.MaxContextTokens = 40000 }),
			size(50000, 0, 170000), core.TriggerAutomatic, 105000,
		},
		{"of a small conversation that is not due", rule(200000), size(0, 0, 100), core.TriggerAutomatic, 80000},
		{"manual: half of what is there", rule(200000), size(10000, 0, 50000), core.TriggerManual, 30000},
		{"manual, above the threshold", rule(200000), size(10000, 0, 170000), core.TriggerManual, 85000},

		{"set", rule(200000, target(40)), size(10000, 0, 160000), core.TriggerAutomatic, 80000},
		{"set too close to the threshold: min_new_tokens below it", rule(200000, target(79)), size(10000, 0, 170000), core.TriggerAutomatic, 150000},
		{
			"set above the limit: min_new_tokens below it", rule(200000, target(95), func(r *policy.Rule) { r.Threshold = 100 }),
			size(10000, 0, 180000), core.TriggerAutomatic, 161808,
		},
		{"set below the floor: min_new_tokens above it", rule(200000, target(10)), size(30000, 0, 160000), core.TriggerAutomatic, 40000},
		{"set too close above the floor: min_new_tokens above it", rule(200000, target(16)), size(30000, 0, 160000), core.TriggerAutomatic, 40000},
		{"no room for min_new_tokens on both sides: half way", rule(200000, target(10)), size(155000, 0, 175000), core.TriggerAutomatic, 163404},
		{"set, manual, below the target already", rule(200000, target(40)), size(10000, 0, 50000), core.TriggerManual, 40000},

		{"min_size above half way", rule(200000, func(r *policy.Rule) { r.MinSize = 90000 }), size(0, 0, 160000), core.TriggerAutomatic, 90000},
		{"min_size above the set target", rule(200000, target(30), func(r *policy.Rule) { r.MinSize = 70000 }), size(0, 0, 160000), core.TriggerAutomatic, 70000},
		{"min_size too close to the threshold", rule(200000, func(r *policy.Rule) { r.MinSize = 158000 }), size(0, 0, 170000), core.TriggerAutomatic, 150000},

		{
			"min_new_tokens of 0: at least one token below the threshold", rule(200000, func(r *policy.Rule) { r.MinSize, r.MinNewTokens = 170000, 0 }),
			size(0, 0, 172000), core.TriggerAutomatic, 159999,
		},
		{"one token of room", rule(200000, func(r *policy.Rule) { r.MinSize = 170000 }), size(171807, 0, 172000), core.TriggerAutomatic, 171807},

		{"a quarter of the threshold can be removed", rule(200000), size(120000, 0, 160000), core.TriggerAutomatic, 140000},
		{"less than that: the limit counts", rule(200000), size(120001, 0, 160000), core.TriggerAutomatic, 120001 + 51807/2},
		{"lowered to save min_gain of what can be removed", rule(200000, target(70), func(r *policy.Rule) { r.MinGain = 50 }), size(100000, 0, 160000), core.TriggerAutomatic, 130000},
		{"over the limit, getting below it is gain enough", rule(200000, target(70), func(r *policy.Rule) { r.MinGain = 50 }), size(100000, 0, 172000), core.TriggerAutomatic, 140000},
		{
			"manual: half of the originals, and all that was summarized", rule(200000),
			policy.Size{System: 10000, Messages: 40000, Summaries: 20000},
			core.TriggerManual, 40000,
		},
		{"manual, nothing but summaries", rule(200000), policy.Size{Messages: 40000, Summaries: 40000}, core.TriggerManual, 40000},
		{"automatic: summaries are no part of the floor", rule(200000), policy.Size{Messages: 160000, Summaries: 40000}, core.TriggerAutomatic, 80000},

		{"roo, over the limit: the limit", roo(200000, 0), size(10000, 0, 180000), core.TriggerAutomatic, 171808},
		{"roo, over the limit, a target that is set", roo(200000, 0, target(50)), size(10000, 0, 180000), core.TriggerAutomatic, 100000},
		{"roo, within the limit", roo(200000, 0), size(10000, 0, 160000), core.TriggerManual, 85000},

		{"floor at the limit", rule(200000), size(171808, 0, 180000), core.TriggerAutomatic, 171808},
		{"floor above the limit", rule(200000), size(175000, 0, 180000), core.TriggerAutomatic, 171808},
		{"nothing to remove", rule(200000), size(50000, 0, 50000), core.TriggerManual, 50000},
		{"negative limit", roo(8000, 0), size(0, 0, 100), core.TriggerAutomatic, -992},
		{"no window", rule(0), size(0, 0, 100), core.TriggerAutomatic, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := tt.rule.Budget(tt.size, tt.trigger)
			if b.Target != tt.want {
				t.Errorf("got %d, want %d (limit %d)", b.Target, tt.want, b.Limit)
			}
		})
	}
}

func TestOverflowLowersTheLimit(t *testing.T) {
	tests := []struct {
		name          string
		size          policy.Size
		limit, target int
	}{
		{"three quarters of what was refused", policy.Size{Messages: 100000}, 75000, 37500},
		{"rounded down", policy.Size{Messages: 103}, 77, 38},
		{"with a floor", policy.Size{System: 20000, Messages: 80000}, 75000, 47500},
		{"the limit itself, if that is lower", policy.Size{Messages: 400000}, 171808, 80000},
		{"at least a quarter of what can be removed stays", policy.Size{System: 80000, Messages: 20000}, 85000, 82500},
		{"nothing can be removed", policy.Size{System: 100000}, 99999, 99999},
		{"nothing was sent", policy.Size{}, -1, -1},
		{"one token", policy.Size{Messages: 1}, 0, 0},
		{"as large as can be", policy.Size{System: math.MaxInt, Messages: math.MaxInt}, 171808, 171808},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := rule(200000).Budget(tt.size, core.TriggerOverflow)
			if b.Limit != tt.limit || b.Target != tt.target {
				t.Errorf("got limit %d, target %d, want %d, %d", b.Limit, b.Target, tt.limit, tt.target)
			}
		})
	}
}
