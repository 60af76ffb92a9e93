package agents_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// The scenario: 45 tool calls of 6 kB, about 68,000 tokens, against a window of 60,000.
const (
	calls = 45
	// longCalls are enough for three epochs, where the test needs them.
	longCalls = 75
	size      = 6000
	window    = 60_000
	task      = "Run the commands of the checklist, one after the other."
)

func scenario() upstream.Options {
	return upstream.Options{Script: upstream.Loop(calls, size, nil), Window: window, StreamOverflow: true, ByCredential: true}
}

// TestWithout shows what condense is for: what each agent does by itself when the vendor refuses a prompt as too long.
func TestWithout(t *testing.T) {
	atNight(t)
	t.Parallel()
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, scenario())
			got := d.direct(t, &a, d.url, task)
			if len(d.over()) == 0 {
				t.Errorf("no prompt was too long: the scenario proves nothing\n%s", d.list())
			}
			t.Logf("exit code %d, %d steps, %d requests, %d too long", got.code, d.steps(), len(d.vendor.Records()), len(d.over()))
			switch a.name {
			case "claude":
				// Its own summary keeps the newest messages with their thinking, which is bound to what the summary replaced. It is refused
				// once for that, and goes on without the thinking.
				d.accept(t, "binding")
			default:
				d.accept(t)
			}
			if a.name == "codex" {
				if got.code == 0 || !strings.Contains(got.out, "ran out of room") {
					t.Errorf("Codex goes on: exit code %d\n%s", got.code, tail(got.out))
				}
				return
			}
			// The others replace their history with a summary of their own. OpenCode then exits with 1 all the same.
			if d.steps() <= calls {
				t.Errorf("%s stopped at step %d with exit code %d\n%s\n%s", a.name, d.steps(), got.code, tail(got.out), d.list())
			}
			if n := d.count("summary") + d.count("no tool"); n == 0 {
				t.Errorf("%s asked for no summary\n%s", a.name, d.list())
			}
		})
	}
}
