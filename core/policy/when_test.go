package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/core/policy"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// Count counts the messages that are given, without the system's.
func TestCount(t *testing.T) {
	messages := coretest.Conversation(coretest.System(core.Text("Rules.")), coretest.User(core.Text("Go.")), coretest.Assistant(coretest.Call("a"), coretest.Call("b")),
		coretest.User(coretest.Result("a", "12345678"), coretest.Result("b", "1234")))
	messages[1].Time, messages[2].Time, messages[3].Time = time.Time{}, now.Add(-3*time.Hour), now.Add(-time.Hour)
	c := coretest.Counter{}
	want := policy.Since{Messages: 3, ToolResults: 2, ResultTokens: c.Count(messages[3].Parts...), Age: 3 * time.Hour}
	if got := policy.Count(messages, c, now); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Each reason is one at its number and not below, has a target below the conversation, and says its key.
func TestWhen(t *testing.T) {
	for _, tt := range []struct {
		name        string
		when        policy.When
		since, less policy.Since
		text        string
	}{
		{"messages", policy.When{MaxMessages: 60}, policy.Since{Messages: 61}, policy.Since{Messages: 60}, "due: 61 messages since the last condensation, max_messages 60; target 15,000"},
		{"results", policy.When{MaxToolResults: 30}, policy.Since{ToolResults: 31}, policy.Since{ToolResults: 30}, "due: 31 tool results since the last condensation, max_tool_results 30; target 15,000"},
		{"age", policy.When{MaxAge: time.Hour}, policy.Since{Age: time.Hour + time.Second}, policy.Since{Age: time.Hour}, "due: what is not condensed began 1h0m1s ago, max_age 1h0m0s; target 15,000"},
		{
			"share",
			policy.When{MaxResultsShare: 60},
			policy.Since{ResultTokens: 18_001},
			policy.Since{ResultTokens: 18_000},
			"due: new tool results are 18,001 of 30,000 tokens of messages, max_results_share 60 %; target 15,000",
		},
	} {
		r := rule(200_000, func(r *policy.Rule) { r.When = tt.when })
		d := r.Decide(policy.Size{Messages: 30_000, Since: tt.since}, policy.State{}, core.TriggerAutomatic)
		if !d.Act || d.String() != tt.text {
			t.Errorf("%s: got %s, want %s", tt.name, d, tt.text)
		}
		for name, not := range map[string]policy.Decision{
			"less":            r.Decide(policy.Size{Messages: 30_000, Since: tt.less}, policy.State{}, core.TriggerAutomatic),
			"auto is off":     rule(200_000, func(r *policy.Rule) { r.When, r.Auto = tt.when, false }).Decide(policy.Size{Messages: 30_000, Since: tt.since}, policy.State{}, core.TriggerAutomatic),
			"nothing is left": r.Decide(policy.Size{Messages: 30_000, Protected: 29_000, Since: tt.since}, policy.State{}, core.TriggerAutomatic),
			"it waits":        r.Decide(policy.Size{Messages: 30_000, Since: tt.since}, policy.State{}.Later(d), core.TriggerAutomatic),
			"it failed":       r.Decide(policy.Size{Messages: 30_000, Since: tt.since}, policy.State{}.After(d, d.Used), core.TriggerAutomatic),
		} {
			if not.Act {
				t.Errorf("%s, %s: got %s", tt.name, name, not)
			}
		}
		// After a success it is due by its own count, however little was added.
		if again := r.Decide(policy.Size{Messages: 30_000, Since: tt.since}, policy.State{}.After(d, 25_000), core.TriggerAutomatic); again.Reason != d.Reason {
			t.Errorf("%s, again: got %s", tt.name, again)
		}
	}
	small := rule(200_000, func(r *policy.Rule) { r.When.MaxResultsShare = 60 })
	if d := small.Decide(policy.Size{Messages: 19_999, Since: policy.Since{ResultTokens: 19_000}}, policy.State{}, core.TriggerAutomatic); d.Act {
		t.Errorf("below a tenth of the window: %s", d)
	}
	for _, w := range []policy.When{{MaxMessages: -1}, {MaxToolResults: -1}, {MaxAge: -1}, {MaxResultsShare: 101}} {
		if err := rule(200_000, func(r *policy.Rule) { r.When = w }).Validate(); err == nil {
			t.Errorf("%+v is valid", w)
		}
	}
}

// Whatever the numbers, a conversation that was just condensed is not due for a reason of When, and one that is due has a target that saves
// enough and is below its size.
func TestWhenEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.IntRange(0, 100)
		w := policy.When{
			MaxMessages: some.Draw(t, "messages"), MaxToolResults: some.Draw(t, "results"), MaxAge: time.Duration(some.Draw(t, "hours")) * time.Hour,
			MaxResultsShare: float64(some.Draw(t, "share")),
		}
		r := rule(200_000, func(r *policy.Rule) {
			r.When, r.Target, r.MinGain = w, float64(rapid.IntRange(0, 79).Draw(t, "target")), float64(rapid.IntRange(0, 90).Draw(t, "gain"))
		})
		size := policy.Size{System: rapid.IntRange(0, 20_000).Draw(t, "system"), Messages: rapid.IntRange(0, 130_000).Draw(t, "size")}
		size.Protected = rapid.IntRange(0, size.Messages).Draw(t, "protected")
		size.Since = policy.Since{
			Messages: some.Draw(t, "n"), ToolResults: some.Draw(t, "r"), ResultTokens: rapid.IntRange(0, size.Messages).Draw(t, "tokens"),
			Age: time.Duration(some.Draw(t, "age")) * time.Hour,
		}
		d := r.Decide(size, policy.State{}, core.TriggerAutomatic)
		if !d.Act {
			return
		}
		if b := d.Budget; b.Target >= d.Used || b.Target < d.Floor || !d.Worth(b.Target) {
			t.Fatalf("%s: target %d of %d, floor %d", d, b.Target, d.Used, d.Floor)
		}
		size.Messages, size.Since = d.Budget.Target-size.System, policy.Since{}
		if again := r.Decide(size, policy.State{}.After(d, d.Budget.Target), core.TriggerAutomatic); again.Act {
			t.Fatalf("%s, then %s", d, again)
		}
	})
}
