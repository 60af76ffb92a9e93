package policy_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

func TestStateAfter(t *testing.T) {
	r := rule(200000)
	due := r.Decide(policy.Size{Messages: 160000}, policy.State{}, core.TriggerAutomatic)
	over := r.Decide(policy.Size{Messages: 175000}, policy.State{}, core.TriggerAutomatic)
	idle := r.Decide(policy.Size{Messages: 1000}, policy.State{}, core.TriggerAutomatic)
	before := policy.State{Size: 150000, Ineffective: 1, Limit: 9}
	tests := []struct {
		name   string
		state  policy.State
		d      policy.Decision
		tokens int
		want   policy.State
	}{
		{"success", policy.State{}, due, 80000, policy.State{Size: 80000, Limit: 171808}},
		{"success ends a row of failures", before, due, 80000, policy.State{Size: 80000, Limit: 171808}},
		{"failure", policy.State{}, due, 160000, policy.State{Size: 160000, Ineffective: 1, Limit: 171808}},
		{"a second failure", before, due, 160000, policy.State{Size: 160000, Ineffective: 2, Limit: 171808}},
		{"too small a gain", before, due, 150000, policy.State{Size: 150000, Ineffective: 2, Limit: 171808}},
		{"a small gain that gets within the limit", before, over, 171000, policy.State{Size: 171000, Limit: 171808}},
		{"no attempt", before, idle, 1000, before},
		{"the count does not wrap around", policy.State{Ineffective: math.MaxInt}, due, 160000, policy.State{Size: 160000, Ineffective: math.MaxInt, Limit: 171808}},
		{"a count from a damaged file", policy.State{Ineffective: -7}, due, 160000, policy.State{Size: 160000, Ineffective: 1, Limit: 171808}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.state.After(tt.d, tt.tokens); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestStateIsJSON(t *testing.T) {
	for _, tt := range []struct {
		state policy.State
		want  string
	}{
		{policy.State{}, `{}`},
		{policy.State{Size: 3, Ineffective: 2, Limit: 1}, `{"size":3,"ineffective":2,"limit":1}`},
		{policy.State{Size: 3, Waits: true}, `{"size":3,"waits":true}`},
	} {
		data, err := json.Marshal(tt.state)
		if err != nil || string(data) != tt.want {
			t.Errorf("got %s, %v, want %s", data, err, tt.want)
		}
		var back policy.State
		if err := json.Unmarshal(data, &back); err != nil || back != tt.state {
			t.Errorf("got %+v, %v, want %+v", back, err, tt.state)
		}
	}
}

// An API that goes on refusing is given less every time, until nothing can be removed;
// that is an error, not a loop.
func TestRepeatedOverflowEnds(t *testing.T) {
	r := rule(200000)
	size := policy.Size{System: 5000, Messages: 150000, Protected: 1000}
	var s policy.State
	var sent []int
	for range 100 {
		sent = append(sent, size.Used())
		d := r.Decide(size, s, core.TriggerOverflow)
		if d.Err() != nil {
			break
		}
		if !d.Act {
			t.Fatalf("after %v: got %s, want an attempt", sent, d)
		}
		if d.Budget.Limit >= d.Used {
			t.Errorf("after %v: got limit %d, want less than was refused", sent, d.Budget.Limit)
		}
		size.Messages = d.Budget.Target - size.System
		s = s.After(d, d.Budget.Target)
	}
	if len(sent) > 20 || sent[len(sent)-1] != 6000 {
		t.Errorf("got %v, want an end at 6000 after at most 20 attempts", sent)
	}
}

// After a provider chose to wait, the conversation is due again once it has grown by 2 % of the window, or is over its limit; a rule that
// knows no pause waits, too.
func TestStateLater(t *testing.T) {
	for _, eager := range []bool{false, true} {
		r := rule(200000, func(r *policy.Rule) { r.Eager = eager })
		due := r.Decide(policy.Size{Messages: 161000}, policy.State{Ineffective: 1}, core.TriggerAutomatic)
		s := policy.State{Ineffective: 1}.Later(due)
		if want := (policy.State{Size: 161000, Ineffective: 1, Limit: 171808, Waits: true}); s != want {
			t.Errorf("got %+v, want %+v", s, want)
		}
		for tokens, want := range map[int]policy.Reason{161000: policy.ReasonCooling, 164999: policy.ReasonCooling, 165000: policy.ReasonThreshold, 171809: policy.ReasonLimit} {
			if d := r.Decide(policy.Size{Messages: tokens}, s, core.TriggerAutomatic); d.Reason != want {
				t.Errorf("eager %t, %d tokens: %s, want %s", eager, tokens, d, want)
			}
		}
		if after := s.After(due, 80000); after.Waits || after.Ineffective != 0 {
			t.Errorf("after a success: %+v", after)
		}
	}
}
