package policy_test

import (
	"errors"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

func TestDecisionText(t *testing.T) {
	const auto = core.TriggerAutomatic
	base := rule(200000)
	tests := []struct {
		name    string
		rule    policy.Rule
		size    policy.Size
		state   policy.State
		trigger core.Trigger
		want    string
	}{
		{
			"threshold", base,
			policy.Size{Messages: 165000},
			policy.State{},
			auto,
			"due: 165,000 of 200,000 tokens (82.5 %), threshold 80 %; target 80,000",
		},
		{
			"moved target", rule(200000, func(r *policy.Rule) { r.Target = 10 }),
			policy.Size{System: 30000, Messages: 135000},
			policy.State{},
			auto,
			"due: 165,000 of 200,000 tokens (82.5 %), threshold 80 %; target 40,000 instead of 20,000, " +
				"because 30,000 tokens cannot be removed and a result must be worth it",
		},
		{
			"max_context", rule(200000, func(r *policy.Rule) { r.MaxContextTokens = 9000 }),
			policy.Size{Messages: 9001},
			policy.State{},
			auto,
			"due: 9,001 tokens exceed max_context_tokens, 9,000; target 4,500",
		},
		{
			"limit", base,
			policy.Size{Messages: 175000},
			policy.State{},
			auto,
			"due: 175,000 tokens exceed the limit of 171,808 (window 200,000, reserve 8,192); target 80,000",
		},
		{
			"manual", base,
			policy.Size{Messages: 1000},
			policy.State{},
			core.TriggerManual,
			"requested: 1,000 of 200,000 tokens (0.5 %); target 500",
		},
		{
			"overflow", base,
			policy.Size{Messages: 150000},
			policy.State{},
			core.TriggerOverflow,
			"due: the model refused 150,000 tokens as too many; target 56,250",
		},
		{
			"below; what is below never looks as if it were not", base,
			policy.Size{Messages: 159999},
			policy.State{},
			auto,
			"not due: 159,999 of 200,000 tokens (79.99 %), threshold 80 %",
		},
		{
			"off", rule(200000, func(r *policy.Rule) { r.Auto = false }),
			policy.Size{Messages: 165000},
			policy.State{},
			auto,
			"not due: automatic condensing is off, and 165,000 tokens are within the limit of 171,808",
		},
		{
			"small", rule(200000, func(r *policy.Rule) { r.MinSize = 170000 }),
			policy.Size{Messages: 165000},
			policy.State{},
			auto,
			"not due: 165,000 of 200,000 tokens (82.5 %), fewer than min_size, 170,000",
		},
		{
			"cooling", base,
			policy.Size{Messages: 165000},
			policy.State{Size: 164000},
			auto,
			"not due: 165,000 of 200,000 tokens (82.5 %), but only 1,000 were added since the last attempt; 10,000 must be",
		},
		{
			"no gain", rule(200000, func(r *policy.Rule) { r.Threshold = 20 }),
			policy.Size{Tools: 40000, Messages: 20000},
			policy.State{},
			auto,
			"nothing to do: 60,000 of 200,000 tokens (30 %), but 40,000 of them cannot be removed (system prompt, tools, protected messages): " +
				"below the threshold of 20 % too little of the conversation could be kept, so nothing is condensed below the limit of 171,808",
		},
		{
			"nothing to remove", base,
			policy.Size{Tools: 40000},
			policy.State{},
			core.TriggerManual,
			"nothing to do: nothing of the 40,000 tokens can be removed (system prompt, tools, protected messages)",
		},
		{
			"nothing new", base,
			policy.Size{Messages: 40000, NothingNew: true},
			policy.State{},
			core.TriggerManual,
			"nothing to do: nothing was said since the last condensation, and 40,000 tokens are within the limit of 171,808",
		},
		{
			"stuck", base,
			policy.Size{Messages: 180000},
			policy.State{Size: 180000, Ineffective: 2, Limit: 171808},
			auto,
			"not possible: 180,000 tokens exceed the limit of 171,808, and the last 2 attempts to condense have not helped: " +
				"change the chain, protect fewer messages, or use a model with a larger window",
		},
		{
			"floor", rule(32768),
			policy.Size{System: 9000, Tools: 6000, Messages: 25000, Protected: 20000},
			policy.State{},
			auto,
			"not possible: what cannot be removed exceeds the window: system prompt 9,000 + tools 6,000 + protected messages and unanswered calls 20,000 = 35,000 tokens; " +
				"at most 22,938 may be sent (window 32,768, reserve 6,553): use a model with a larger window, offer fewer tools, protect fewer messages, or leave fewer calls unanswered",
		},
		{
			"floor on overflow", base,
			policy.Size{System: 9000, Messages: 1000, Protected: 1000},
			policy.State{},
			core.TriggerOverflow,
			"not possible: what cannot be removed exceeds the window: system prompt 9,000 + tools 0 + protected messages and unanswered calls 1,000 = 10,000 tokens; " +
				"the model refused 10,000: use a model with a larger window, offer fewer tools, protect fewer messages, or leave fewer calls unanswered",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.rule.Decide(tt.size, tt.state, tt.trigger).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestFloorError(t *testing.T) {
	size := policy.Size{System: 9000, Tools: 6000, Messages: 25000, Protected: 20000}
	err := rule(32768).Decide(size, policy.State{}, core.TriggerAutomatic).Err()
	if !errors.Is(err, policy.ErrFloorExceedsWindow) {
		t.Fatalf("got %v, want ErrFloorExceedsWindow", err)
	}
	var floor *policy.FloorError
	if !errors.As(err, &floor) || floor.Size != size || floor.Budget.Limit != 22938 || floor.Refused != 0 {
		t.Errorf("got %+v, want the numbers", floor)
	}
}

// The floor can be held against the window before there is any conversation.
func TestFloorErrorWithoutMessages(t *testing.T) {
	d := rule(32768).Decide(policy.Size{System: 9000, Tools: 20000}, policy.State{}, core.TriggerAutomatic)
	if !errors.Is(d.Err(), policy.ErrFloorExceedsWindow) {
		t.Errorf("got %v, want ErrFloorExceedsWindow", d.Err())
	}
}
