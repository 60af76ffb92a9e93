package agents_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestRecallTool runs agents and loops on the vendors' SDKs that have no MCP, with condense wrap --recall tool. The scripted model recalls
// a needle of the first tool result before and after the epochs, in the middle of its work and together with a command, and finds it
// byte for byte. The agents know of none of that.
func TestRecallTool(t *testing.T) {
	t.Parallel()
	const needle = "the quokka lives at 7731"
	recall := upstream.Call{Tool: "condense_recall", Input: map[string]any{"grep": "quokka lives"}}
	script := func() []upstream.Step {
		loop := upstream.Loop(longCalls, size, map[int]string{1: needle})
		middle := loop[longCalls/2]
		middle.Calls = []upstream.Call{recall} // next to the agent's own call
		loop[longCalls/2] = middle
		look := upstream.Step{Text: "I look it up.", Calls: []upstream.Call{recall}}
		return slices.Insert(slices.Insert(loop, len(loop)-1, look), 3, look)
	}
	check := func(t *testing.T, d *desk, got result) {
		t.Helper()
		if epochs := got.epochs(t); epochs < 3 || got.code != 0 {
			t.Errorf("%d epochs, exit code %d\n%s", epochs, got.code, tail(got.out))
		}
		d.accept(t)
		turns := d.vendor.Turns()
		last := turns[len(turns)-1].Body
		if !within(t, last, ":"+needle+"\n") {
			t.Errorf("the needle has not come back\n%s\n%s", d.list(), tail(got.out))
		}
		if strings.Contains(got.out, "condense_recall") {
			t.Errorf("the agent has seen the gateway's tool\n%s", tail(got.out))
		}
		if breaks, epochs := d.vendor.Breaks(), got.epochs(t); len(breaks) > epochs {
			t.Errorf("%d breaks of the prefix in %d epochs: %+v", len(breaks), epochs, breaks)
		}
		read, ideal := d.vendor.Cached()
		t.Logf("%d turns, %d epochs, %d breaks, %d tokens of %d read from the cache", len(turns), got.epochs(t), len(d.vendor.Breaks()), read, ideal)
	}
	for _, a := range some("claude") {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			o := scenario()
			o.Script = script()
			d := newDesk(t, o)
			d.at(t, &a, "")
			check(t, d, d.wrap(t, a.env, append(append([]string{"--recall", "tool", a.name}, a.args...), task)...))
		})
	}
	for _, l := range loops {
		t.Run("sdk-"+l.name, func(t *testing.T) {
			t.Parallel()
			o := scenario()
			o.Script = script()
			d := newDesk(t, o)
			d.place(t, l.file)
			// What these loops say is short, without an agent's instructions: after so little cost few epochs are allowed.
			d.more = "serve: {epoch: {risk: 100}}\n"
			check(t, d, d.wrap(t, []string{l.key}, "--recall", "tool", "--", "node", l.file, task))
		})
	}
}
