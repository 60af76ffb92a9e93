package policy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

// anyRule draws a valid rule.
func anyRule(t *rapid.T) policy.Rule {
	r := policy.Default(rapid.IntRange(100, 1_000_000).Draw(t, "window"))
	r.MaxOutput = rapid.IntRange(0, r.Window/4).Draw(t, "max output")
	r.Auto = rapid.Bool().Draw(t, "auto")
	r.Threshold = rapid.Float64Range(5, 100).Draw(t, "threshold")
	r.MinGain = rapid.Float64Range(0, 50).Draw(t, "min gain")
	r.MinNewTokens = rapid.IntRange(0, r.Window/5).Draw(t, "min new")
	if rapid.Bool().Draw(t, "has target") {
		r.Target = rapid.Float64Range(1, max(1, min(99, r.Threshold-0.5))).Draw(t, "target")
	}
	if rapid.Bool().Draw(t, "has max") {
		r.MaxContextTokens = rapid.IntRange(1, r.Window).Draw(t, "max context")
		r.MinSize = rapid.IntRange(0, r.MaxContextTokens).Draw(t, "min context")
	}
	if err := r.Validate(); err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return r
}

// A conversation that grows as it likes, condensed by providers that do as they like.
// Only truncation, which ends every chain, is sure to reach the limit.
type conversation struct {
	rule  policy.Rule
	size  policy.Size
	state policy.State
}

func (c *conversation) grow(t *rapid.T) {
	most := c.rule.Window / rapid.SampledFrom([]int{2, 10, 50, 1000}).Draw(t, "growth")
	n := rapid.IntRange(0, most).Draw(t, "new")
	c.size.Messages += n
	if rapid.IntRange(0, 9).Draw(t, "protect") == 0 {
		c.size.Protected += n
	}
}

// attempt condenses as d says and returns what the conversation had before.
func (c *conversation) attempt(t *rapid.T, d policy.Decision) {
	overhead := c.size.Overhead()
	result := d.Used
	switch rapid.SampledFrom([]string{"fails", "saves something", "on target", "grows"}).Draw(t, "provider") {
	case "saves something":
		result = rapid.IntRange(d.Floor, d.Used).Draw(t, "result")
	case "on target":
		result = d.Budget.Target
	case "grows":
		result = d.Used + 1
	}
	if result > d.Used {
		result = d.Used // rejected
	}
	if d.Used > d.Budget.Limit && result > d.Budget.Limit {
		result = rapid.IntRange(d.Floor, d.Budget.Limit).Draw(t, "truncated")
	}
	if !d.Worth(result) {
		result = d.Used // dropped
	}
	c.size.Messages = result - overhead
	c.state = c.state.After(d, result)
}

// lazy is the size by which a conversation must grow between attempts within its limit.
func (c *conversation) lazy() int {
	if c.state.Ineffective >= 2 {
		return max(1, c.rule.Window/10, c.rule.MinNewTokens)
	}
	return c.rule.MinNewTokens
}

func TestSimulatedConversations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := conversation{rule: anyRule(t)}
		c.size.System = rapid.IntRange(0, c.rule.Window/8).Draw(t, "system")
		c.size.Tools = rapid.IntRange(0, c.rule.Window/8).Draw(t, "tools")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c.grow(t)
			trigger := rapid.SampledFrom([]core.Trigger{
				core.TriggerAutomatic, core.TriggerAutomatic, core.TriggerAutomatic, core.TriggerManual, core.TriggerOverflow,
			}).Draw(t, "trigger")
			d := c.rule.Decide(c.size, c.state, trigger)
			checkDecision(t, &c, d)
			if d.Reason == policy.ReasonFloor {
				return // said so, and nothing was spent
			}
			if !d.Act {
				continue
			}
			state := c.state
			c.attempt(t, d)
			if used := c.size.Used(); used > d.Budget.Limit {
				t.Fatalf("got %d tokens after an attempt, want at most %d: %v", used, d.Budget.Limit, d)
			}
			if within := d.Reason == policy.ReasonThreshold || d.Reason == policy.ReasonMaxContext; within && state != (policy.State{}) {
				before := conversation{rule: c.rule, state: state}
				if grown := d.Used - state.Size; grown < before.lazy() {
					t.Fatalf("got an attempt after %d new tokens, want %d: %v", grown, before.lazy(), d)
				}
			}
		}
	})
}

// checkDecision holds what must be true of every decision.
func checkDecision(t *rapid.T, c *conversation, d policy.Decision) {
	b := d.Budget
	over := d.Used > b.Limit
	switch {
	case over && !d.Act && d.Err() == nil:
		t.Fatalf("over the limit of %d, got neither an attempt nor an error: %+v", b.Limit, d)
	case d.Act && d.Err() != nil:
		t.Fatalf("got an attempt and an error: %v: %+v", d.Err(), d)
	case b.Target > b.Limit:
		t.Fatalf("got target %d above the limit of %d", b.Target, b.Limit)
	}
	if !d.Act {
		return
	}
	if b.Target >= d.Used || b.Target < d.Floor {
		t.Fatalf("got target %d, want it below %d and not below the floor of %d: %+v", b.Target, d.Used, d.Floor, d)
	}
	if !d.Worth(b.Target) {
		t.Fatalf("a result on target is no success: %+v", d)
	}
	if d.Trigger != core.TriggerAutomatic {
		return
	}
	// On target it is not due again, and growing by less than min_new_tokens does not make it so,
	// but for the limit.
	next := conversation{rule: c.rule, size: c.size, state: c.state.After(d, b.Target)}
	next.size.Messages = b.Target - c.size.Overhead()
	if again := next.rule.Decide(next.size, next.state, core.TriggerAutomatic); again.Act {
		t.Fatalf("due again on target: %v, then %v", d, again)
	}
	next.size.Messages += max(0, next.lazy()-1)
	if again := next.rule.Decide(next.size, next.state, core.TriggerAutomatic); again.Act && again.Reason != policy.ReasonLimit {
		t.Fatalf("due again before min_new_tokens: %v, then %v", d, again)
	}
}

// A host that asks again at once after every attempt, with a chain in which nothing
// works, stops by itself.
func TestEagerHostEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := conversation{rule: anyRule(t)}
		trigger := rapid.SampledFrom([]core.Trigger{core.TriggerAutomatic, core.TriggerOverflow}).Draw(t, "trigger")
		for range 20 {
			c.grow(t)
			for attempts := 0; ; attempts++ {
				d := c.rule.Decide(c.size, c.state, trigger)
				if !d.Act {
					break
				}
				if attempts == 2 {
					t.Fatalf("got a third attempt at the same conversation: %v", d)
				}
				c.state = c.state.After(d, d.Used)
			}
		}
	})
}

// However long a conversation within its limit goes on, useless attempts cost at most one
// per tenth of the window that is added, once two have failed.
func TestUselessAttemptsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := conversation{rule: anyRule(t)}
		attempts, added := 0, 0
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			n := rapid.IntRange(0, max(1, c.rule.Window/100)).Draw(t, "new")
			c.size.Messages += n
			added += n
			d := c.rule.Decide(c.size, c.state, core.TriggerAutomatic)
			if d.Used > d.Budget.Limit {
				break
			}
			if d.Act {
				attempts++
				c.state = c.state.After(d, d.Used)
			}
		}
		if most := 2 + added/max(1, c.rule.Window/10); attempts > most {
			t.Fatalf("got %d attempts for %d new tokens in a window of %d, want at most %d", attempts, added, c.rule.Window, most)
		}
	})
}
