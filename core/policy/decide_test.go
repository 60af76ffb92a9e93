package policy_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

// The limit of the window of 200,000 is 171,808, 80 % of it are 160,000, 5 % (MinNewTokens) are
// 10,000, and 10 % (what must be added after attempts that did not help) are 20,000.
func TestDecide(t *testing.T) {
	const auto, manual, overflow = core.TriggerAutomatic, core.TriggerManual, core.TriggerOverflow
	var (
		base   = rule(200000)
		off    = rule(200000, func(r *policy.Rule) { r.Auto, r.MaxContextTokens = false, 50000 })
		capped = rule(200000, func(r *policy.Rule) { r.MaxContextTokens = 50000 })
		late   = rule(200000, func(r *policy.Rule) { r.Threshold = 100 })
		early  = rule(200000, func(r *policy.Rule) { r.Threshold = 20 })
		large  = rule(200000, func(r *policy.Rule) { r.MinSize = 165000 })
		larger = rule(200000, func(r *policy.Rule) { r.MinSize = 190000 })
		eager  = rule(200000, func(r *policy.Rule) { r.MinNewTokens = 0 })
		slow   = rule(200000, func(r *policy.Rule) { r.MinNewTokens = 40000 })
		narrow = rule(200000, func(r *policy.Rule) { r.MaxContextTokens = 5000 })
		unset  = rule(0)
	)
	size := func(used int) policy.Size { return policy.Size{Messages: used} }
	floor := func(overhead, protected, used int) policy.Size {
		return policy.Size{System: overhead, Protected: protected, Messages: used - overhead}
	}
	old := func(used int) policy.Size { return policy.Size{Messages: used, NothingNew: true} }
	done := func(size int) policy.State { return policy.State{Size: size, Limit: 171808} }
	failed := func(n, size int) policy.State { return policy.State{Size: size, Ineffective: n, Limit: 171808} }

	tests := []struct {
		name    string
		rule    policy.Rule
		size    policy.Size
		state   policy.State
		trigger core.Trigger
		want    policy.Reason
	}{
		{"empty", base, size(0), policy.State{}, auto, policy.ReasonBelow},
		{"one token below the threshold", base, size(159999), policy.State{}, auto, policy.ReasonBelow},
		{"at the threshold", base, size(160000), policy.State{}, auto, policy.ReasonThreshold},
		{"above it", base, size(171808), policy.State{}, auto, policy.ReasonThreshold},
		{"an unknown trigger counts as automatic", base, size(160000), policy.State{}, "whim", policy.ReasonThreshold},
		{"at the limit", late, size(171808), policy.State{}, auto, policy.ReasonBelow},
		{"one token over the limit", late, size(171809), policy.State{}, auto, policy.ReasonLimit},
		{"at max_context_tokens", capped, size(50000), policy.State{}, auto, policy.ReasonBelow},
		{"over max_context_tokens", capped, size(50001), policy.State{}, auto, policy.ReasonMaxContext},
		{"system and tools count", base, policy.Size{System: 50000, Tools: 50000, Messages: 60000}, policy.State{}, auto, policy.ReasonThreshold},
		{"as large as can be", base, size(math.MaxInt), policy.State{}, auto, policy.ReasonLimit},

		{"auto off, at the limit", off, size(171808), policy.State{}, auto, policy.ReasonOff},
		{"auto off, over the limit", off, size(171809), policy.State{}, auto, policy.ReasonLimit},
		{"auto off, manual", off, size(20000), policy.State{}, manual, policy.ReasonManual},
		{"auto off, overflow", off, size(20000), policy.State{}, overflow, policy.ReasonOverflow},

		{"one token below the minimum", large, size(164999), policy.State{}, auto, policy.ReasonSmall},
		{"at the minimum", large, size(165000), policy.State{}, auto, policy.ReasonThreshold},
		{"below the minimum, over the limit", larger, size(171809), policy.State{}, auto, policy.ReasonLimit},
		{"below the minimum, manual", large, size(20000), policy.State{}, manual, policy.ReasonManual},
		{"below the minimum and the threshold", large, size(100), policy.State{}, auto, policy.ReasonBelow},

		{"one token short of min_new_tokens", base, size(164999), done(155000), auto, policy.ReasonCooling},
		{"min_new_tokens added", base, size(165000), done(155000), auto, policy.ReasonThreshold},
		{"min_new_tokens not added, over the limit", base, size(171809), done(171000), auto, policy.ReasonLimit},
		{"min_new_tokens not added, over max_context_tokens", capped, size(50001), done(45000), auto, policy.ReasonCooling},
		{"min_new_tokens not added, manual", base, size(100000), done(99999), manual, policy.ReasonManual},
		{"min_new_tokens not added, overflow", base, size(100000), done(99999), overflow, policy.ReasonOverflow},
		{"min_new_tokens is 0", eager, size(160000), done(160000), auto, policy.ReasonThreshold},
		{"min_new_tokens not added since everything was removed", narrow, size(9999), policy.State{Limit: 171808}, auto, policy.ReasonCooling},
		{"min_new_tokens added since everything was removed", narrow, size(10000), policy.State{Limit: 171808}, auto, policy.ReasonMaxContext},
		{"shorter than after the last attempt", base, size(161000), done(170000), auto, policy.ReasonCooling},

		{"one failure, min_new_tokens added", base, size(170000), failed(1, 160000), auto, policy.ReasonThreshold},
		{"two failures, min_new_tokens added", base, size(170000), failed(2, 160000), auto, policy.ReasonCooling},
		{"two failures, one token short", base, size(169999), failed(2, 150000), auto, policy.ReasonCooling},
		{"two failures, 10 % added", base, size(170000), failed(2, 150000), auto, policy.ReasonThreshold},
		{"two failures count when min_new_tokens is 0", eager, size(169999), failed(2, 150000), auto, policy.ReasonCooling},
		{"two failures, min_new_tokens of 20 % not added", slow, size(169999), failed(2, 130000), auto, policy.ReasonCooling},
		{"two failures, min_new_tokens of 20 % added", slow, size(170000), failed(2, 130000), auto, policy.ReasonThreshold},
		{"two failures, over the limit", base, size(171809), failed(2, 160000), auto, policy.ReasonLimit},
		{"two failures over the limit, something added", base, size(180001), failed(2, 180000), auto, policy.ReasonLimit},
		{"one failure over the limit, nothing added", base, size(180000), failed(1, 180000), auto, policy.ReasonLimit},
		{"two failures over the limit, nothing added", base, size(180000), failed(2, 180000), auto, policy.ReasonStuck},
		{"two failures, then a smaller window", base, size(180000), policy.State{Size: 180000, Ineffective: 2, Limit: 171809}, auto, policy.ReasonLimit},
		{"stuck, manual", base, size(180000), failed(2, 180000), manual, policy.ReasonManual},
		{"two failures on overflow, nothing added", base, size(100000), policy.State{Size: 100000, Ineffective: 2, Limit: 75000}, overflow, policy.ReasonStuck},
		{"two failures on overflow, something added", base, size(100001), policy.State{Size: 100000, Ineffective: 2, Limit: 75000}, overflow, policy.ReasonOverflow},

		{"threshold at the floor", early, floor(30000, 10000, 60000), policy.State{}, auto, policy.ReasonNoGain},
		{"a quarter of the threshold above the floor", early, floor(20000, 10000, 60000), policy.State{}, auto, policy.ReasonThreshold},
		{"a token less", early, floor(20000, 10001, 60000), policy.State{}, auto, policy.ReasonNoGain},
		{"threshold below the floor, over the limit", early, floor(30000, 10000, 171809), policy.State{}, auto, policy.ReasonLimit},
		{"threshold below the floor is no reason to cool down", early, floor(30000, 10000, 60000), done(59000), auto, policy.ReasonNoGain},
		{"max_context_tokens at the floor", capped, floor(50000, 0, 90000), policy.State{}, auto, policy.ReasonNoGain},
		{"max_context_tokens at the floor, threshold above it", capped, floor(50000, 0, 160000), policy.State{}, auto, policy.ReasonThreshold},
		{"a quarter of max_context_tokens above the floor", capped, floor(37500, 0, 90000), policy.State{}, auto, policy.ReasonMaxContext},
		{"a token less of max_context_tokens", capped, floor(37501, 0, 90000), policy.State{}, auto, policy.ReasonNoGain},
		{"little can be removed, over the limit", base, floor(171000, 0, 172000), policy.State{}, auto, policy.ReasonLimit},
		{"little can be removed, manual", base, floor(9999, 0, 10000), policy.State{}, manual, policy.ReasonManual},
		{"nothing can be removed, manual", base, floor(10000, 0, 10000), policy.State{}, manual, policy.ReasonNoGain},
		{"nothing but summaries can be removed, manual", base, policy.Size{System: 9000, Messages: 1000, Summaries: 1000}, policy.State{}, manual, policy.ReasonNoGain},
		{"nothing but summaries can be removed, manual, over the limit", base, policy.Size{Messages: 172000, Summaries: 172000}, policy.State{}, manual, policy.ReasonManual},

		{"nothing new, manual", base, old(20000), policy.State{}, manual, policy.ReasonNothingNew},
		{"nothing new, manual, over the limit", base, old(171809), policy.State{}, manual, policy.ReasonManual},
		{"nothing new, below the threshold", base, old(20000), policy.State{}, auto, policy.ReasonBelow},
		{"nothing new, at the threshold", base, old(160000), policy.State{}, auto, policy.ReasonNothingNew},
		{"nothing new, over the limit", base, old(171809), policy.State{}, auto, policy.ReasonLimit},
		{"nothing new, overflow", base, old(20000), policy.State{}, overflow, policy.ReasonOverflow},
		{"nothing there, manual", base, size(0), policy.State{}, manual, policy.ReasonNoGain},
		{"min_gain cannot be saved, overflow", base, floor(9900, 0, 10000), policy.State{}, overflow, policy.ReasonOverflow},

		{"floor at the limit", base, floor(171808, 0, 171809), policy.State{}, auto, policy.ReasonLimit},
		{"floor over the limit", base, floor(171000, 809, 171809), policy.State{}, auto, policy.ReasonFloor},
		{"floor over the limit, manual", base, floor(171809, 0, 180000), policy.State{}, manual, policy.ReasonFloor},
		{"floor over the limit, auto off", off, floor(171809, 0, 180000), policy.State{}, auto, policy.ReasonFloor},
		{"nothing to remove on overflow", base, floor(10000, 0, 10000), policy.State{}, overflow, policy.ReasonFloor},

		{"no window, nothing there", unset, size(0), policy.State{}, auto, policy.ReasonBelow},
		{"no window", unset, size(1), policy.State{}, auto, policy.ReasonLimit},
		{"negative limit", rule(1000, func(r *policy.Rule) { r.MaxOutput = 2000 }), size(0), policy.State{}, auto, policy.ReasonFloor},
		{"tiny window, within", rule(10), size(7), policy.State{}, auto, policy.ReasonBelow},
		{"tiny window, over", rule(10), size(8), policy.State{}, auto, policy.ReasonLimit},
		{"small window does not act on every call", rule(8000), size(100), policy.State{}, auto, policy.ReasonBelow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.rule.Decide(tt.size, tt.state, tt.trigger)
			if d.Reason != tt.want {
				t.Fatalf("got %s, want %s\n%s", d.Reason, tt.want, d)
			}
			if d.Act != tt.want.Acts() {
				t.Errorf("got act %v for %s", d.Act, d.Reason)
			}
			if d.Grown < 0 {
				t.Errorf("got %d tokens added", d.Grown)
			}
			wantErr := tt.want == policy.ReasonFloor || tt.want == policy.ReasonStuck
			if err := d.Err(); (err != nil) != wantErr {
				t.Errorf("got error %v, want one: %v", err, wantErr)
			}
		})
	}
}

// What makes these differ from the same cases above is Roo-Code's rule alone.
func TestDecideByRoosRule(t *testing.T) {
	r := roo(200000, 0)
	r.Threshold, r.MinNewTokens, r.MinSize = 20, 5000, 165000
	tests := []struct {
		name  string
		size  policy.Size
		state policy.State
		want  policy.Reason
	}{
		{"it acts again at once", policy.Size{Messages: 40000}, policy.State{Size: 40000, Ineffective: 9}, policy.ReasonThreshold},
		{"and over the limit", policy.Size{Messages: 172000}, policy.State{Size: 172000, Ineffective: 9}, policy.ReasonLimit},
		{"and when nothing can be gained", policy.Size{System: 60000}, policy.State{}, policy.ReasonThreshold},
		{"and when it cannot fit", policy.Size{System: 180000}, policy.State{}, policy.ReasonLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := r.Decide(tt.size, tt.state, core.TriggerAutomatic)
			if d.Reason != tt.want || !d.Act || d.MinNewTokens != 0 {
				t.Errorf("got %s, act %v, min_new_tokens %d, want %s, true, 0", d.Reason, d.Act, d.MinNewTokens, tt.want)
			}
		})
	}
	// Even so the host learns that no provider can help.
	d := r.Decide(policy.Size{System: 180000}, policy.State{}, core.TriggerAutomatic)
	if !errors.Is(d.Err(), policy.ErrFloorExceedsWindow) {
		t.Errorf("got %v, want ErrFloorExceedsWindow", d.Err())
	}
}

func TestRoosRuleWithMaxContextTokens(t *testing.T) {
	r := roo(200000, 0)
	r.MaxContextTokens = 50000
	if d := r.Decide(policy.Size{Messages: 50001}, policy.State{}, core.TriggerAutomatic); d.Reason != policy.ReasonMaxContext {
		t.Errorf("got %s, want max_context", d.Reason)
	}
}

func TestDecisionNumbers(t *testing.T) {
	r := rule(200000, func(r *policy.Rule) {
		r.MaxOutput, r.MaxContextTokens, r.MinSize, r.Target = 20000, 190000, 1000, 79
	})
	size := policy.Size{System: 6000, Tools: 4000, Messages: 155000, Protected: 2000}
	d := r.Decide(size, policy.State{Size: 100000, Limit: 1}, core.TriggerAutomatic)
	want := policy.Decision{
		Act: true, Reason: policy.ReasonLimit, Trigger: core.TriggerAutomatic, Size: size,
		Used: 165000, Floor: 12000, Percent: 82.5, Threshold: 80,
		MaxContextTokens: 190000, MinSize: 1000,
		Budget:       core.Budget{Window: 200000, Reserve: 20000, Overhead: 10000, Limit: 160000, Target: 150000},
		TargetWanted: 158000, MinGain: 15300, Grown: 65000, MinNewTokens: 10000,
	}
	if d != want {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	const wantJSON = `{"act":true,"reason":"limit","trigger":"automatic",` +
		`"size":{"system":6000,"tools":4000,"messages":155000,"protected":2000},` +
		`"used":165000,"floor":12000,"percent":82.5,"threshold":80,"max_context_tokens":190000,"min_size":1000,` +
		`"budget":{"window":200000,"reserve":20000,"overhead":10000,"limit":160000,"target":150000},` +
		`"target_wanted":158000,"min_gain":15300,"grown":65000,"min_new_tokens":10000}`
	if string(data) != wantJSON {
		t.Errorf("got  %s\nwant %s", data, wantJSON)
	}
}

func TestDecisionWithoutWindowIsJSON(t *testing.T) {
	for _, used := range []int{0, 1} {
		d := rule(0).Decide(policy.Size{Messages: used}, policy.State{}, core.TriggerAutomatic)
		if _, err := json.Marshal(d); err != nil || d.Percent != 0 {
			t.Errorf("%d tokens: got percent %v, error %v, want 0 and none", used, d.Percent, err)
		}
	}
}

func TestWorth(t *testing.T) {
	tests := []struct {
		name    string
		used    int
		minGain float64
		tokens  int
		want    bool
	}{
		{"saves min_gain", 160000, 10, 144000, true},
		{"saves a token less", 160000, 10, 144001, false},
		{"saves nothing", 160000, 10, 160000, false},
		{"grows", 160000, 10, 160001, false},
		{"min_gain is rounded up", 15, 10, 14, false},
		{"min_gain is rounded up and met", 15, 10, 13, true},
		{"min_gain 0, saves one token", 160000, 0, 159999, true},
		{"min_gain 0, saves nothing", 160000, 0, 160000, false},
		{"gets to the limit", 172000, 10, 171808, true},
		{"does not get to the limit", 172000, 10, 171809, false},
		{"saves min_gain, does not get to the limit", 300000, 10, 270000, true},
		{"to nothing", 160000, 10, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := rule(200000, func(r *policy.Rule) { r.MinGain = tt.minGain })
			d := r.Decide(policy.Size{Messages: tt.used}, policy.State{}, core.TriggerAutomatic)
			if got := d.Worth(tt.tokens); got != tt.want {
				t.Errorf("from %d to %d: got %v, want %v", tt.used, tt.tokens, got, tt.want)
			}
		})
	}
}

// On overflow the limit that counts is the lowered one: what the model refused is within
// the other.
func TestWorthOnOverflow(t *testing.T) {
	r := rule(200000, func(r *policy.Rule) { r.MinGain = 80 })
	d := r.Decide(policy.Size{System: 92000, Messages: 8000}, policy.State{}, core.TriggerOverflow)
	if d.Budget.Limit != 94000 {
		t.Fatalf("got limit %d, want 94000", d.Budget.Limit)
	}
	if !d.Worth(94000) || d.Worth(94001) {
		t.Errorf("got %v at the limit and %v above it, want true, false", d.Worth(94000), d.Worth(94001))
	}
}
