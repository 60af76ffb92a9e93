package servecmd

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/live"
)

// The lines at the end of wrap say what was done and, of what failed, who and why: never that the history was not too
// long when something failed.
func TestReport(t *testing.T) {
	epoch := live.Epoch{Before: 48_100, After: 27_000, Reason: "window", Provider: "smart"}
	pays := live.Epoch{Before: 25_407, After: 23_125, Reason: "payback", Provider: "truncation", Fallback: true}
	away := []live.Unreachable{{Upstream: "anthropic", Address: "http://127.0.0.1:9", Count: 8, Reason: "dial tcp 127.0.0.1:9: connect: connection refused"}}
	said := live.Stats{Requests: 4, Tokens: live.Tokens{Received: 77_900, Sent: 77_900}, Cost: 1}
	const unchanged = "condense: 4 requests, 77,900 tokens sent, 0 saved\ncondense: cache: 0 tokens read, 0 written; $1.00 instead of $1.00\n"
	const toSee = "condense: to see what is removed: run it with --record DIR before the agent's name, then condense view --all with a file of DIR\n"
	failing := said
	failing.Attempts = []live.Attempt{
		{Provider: "native", Outcome: "failed", Mode: "code", Count: 1, Reason: "ask the model fail: 401: invalid x-api-key"},
		{Provider: "native", Outcome: "failed", Mode: "plan", Count: 2},
		{Provider: "native", Outcome: "replaced", Count: 1, Reason: "it asks a language model, and nothing was prepared"},
		{Provider: "truncation", Outcome: "no-op", Count: 9, Reason: "nothing changed"},
	}
	faulty := said
	faulty.Errors = map[string]int{"commit": 1}
	refused := said
	refused.Errors = map[string]int{"vendor_authentication_error": 7}
	refused.Failures = []live.Failure{{Kind: "vendor_authentication_error", Count: 7, Reason: "401 invalid x-api-key", Status: 401}}
	for name, tt := range map[string]struct {
		stats  live.Stats
		record string
		want   string
	}{
		"nothing": {live.Stats{}, "", "condense: no conversation came through, so there was nothing to condense\n"},
		"an upstream that is away": {
			live.Stats{Requests: 8, Unreachable: away},
			"",
			"condense: 8 requests, 0 tokens sent, 0 saved\ncondense: cache: 0 tokens read, 0 written; $0.00 instead of $0.00\ncondense: no request was answered\n" +
				"condense: anthropic at http://127.0.0.1:9 could not be reached 8 times: dial tcp 127.0.0.1:9: connect: connection refused\n",
		},
		"providers that fail": {
			failing, "", unchanged + "condense: the history was not condensed: native failed 3 times: ask the model fail: 401: invalid x-api-key\n" +
				"condense: native was replaced 1 time: it asks a language model, and nothing was prepared\n",
		},
		"a wrong key": {refused, "", unchanged + "condense: the history was not condensed\ncondense: the vendor refused: 401 invalid x-api-key, 7 times: check the key\n"},
		"a fault":     {faulty, "", unchanged + "condense: the history was not condensed; 1 error, see --log info\n"},
		"short": {
			live.Stats{Requests: 1, Tokens: live.Tokens{Received: 1200, Sent: 1200, CacheWrite: 1000}, Unpriced: 1},
			"",
			"condense: 1 request, 1,200 tokens sent, 0 saved\ncondense: cache: 0 tokens read, 1,000 written; no price known for the model\ncondense: the history was never too long\n",
		},
		"of unknown price but for a call that costs nothing": {
			live.Stats{Requests: 10, Tokens: live.Tokens{Received: 9, Sent: 9}, Unpriced: 9, Cost: .0001, Saved: .001},
			"",
			"condense: 10 requests, 9 tokens sent, 0 saved\ncondense: cache: 0 tokens read, 0 written; no price known for the model\ncondense: the history was never too long\n",
		},
		"condensed": {
			live.Stats{
				Requests: 46, Tokens: live.Tokens{Received: 2000, Sent: 1500, Saved: 700, Recalled: 200, Net: 500, CacheRead: 900}, Cost: 3.214, Saved: 1, Unpriced: 2,
				Epochs: []live.Epoch{epoch, epoch, pays, epoch}, EpochCount: 4, Ingested: 1, Errors: map[string]int{"vendor_overloaded_error": 2},
			},
			"",
			"condense: 46 requests, 1,500 tokens sent, 500 saved (25 %), without 200 that the agent recalled\ncondense: cache: 900 tokens read, 0 written; $3.21 instead of $4.21 with a full window, without 2 requests to models of unknown price\n" +
				"condense: history condensed 4 times (3 by smart, 1 by truncation): 48,100 to 27,000 tokens (window: the window was nearly full), 48,100 to 27,000 tokens (window), " +
				"25,407 to 23,125 tokens (payback: it was to save more than it costs), …; 1 tool result shortened; 2 errors, see --log info\n" + toSee,
		},
		"recorded": {
			live.Stats{Requests: 1, Epochs: []live.Epoch{epoch}, EpochCount: 1, Unpriced: 1},
			"/tmp/said",
			"condense: 1 request, 0 tokens sent, 0 saved\ncondense: cache: 0 tokens read, 0 written; no price known for the model\n" +
				"condense: history condensed 1 time by smart: 48,100 to 27,000 tokens (window: the window was nearly full)\ncondense: to see what was removed: condense view --all FILE, with a file of /tmp/said\n",
		},
		"windows": {
			live.Stats{Requests: 3, Unpriced: 3, Windows: []live.Window{
				{Model: "a", Tokens: 8192, From: live.WindowServer},
				{Model: "b", Tokens: 200_000, From: live.WindowNotKnown},
				{Model: "c", Tokens: 200_000, From: live.WindowNotKnown, Truncated: 2, Taken: 4096, Counted: 22_000, Holds: 4096},
				{Model: "d", Tokens: 200_000, From: live.WindowNotKnown, Truncated: 1, Taken: 1900, Counted: 22_000}, // one count is no window
			}},
			"",
			"condense: 3 requests, 0 tokens sent, 0 saved\ncondense: cache: 0 tokens read, 0 written; no price known for the model\ncondense: the history was never too long\n" +
				"condense: the window of b is not known, and 200,000 tokens are assumed; to set it: models: {\"b\": {window: TOKENS}} in condense.yaml\n" +
				"condense: the server of c has cut 2 prompts without a word: it took 4,096 of about 22,000 tokens, and the model does not see the rest; to condense for its window: models: {\"c\": {window: 4096}} in condense.yaml\n" +
				"condense: the server of d has cut 1 prompt without a word: it took 1,900 of about 22,000 tokens, and the model does not see the rest\n",
		},
		"observed": {
			live.Stats{Observe: true, Requests: 46, Tokens: live.Tokens{Received: 2000, Sent: 2000}, Cost: 4, Epochs: []live.Epoch{epoch}, Observed: &live.Observed{Epochs: 1, Sent: 1500, Saved: 500, CostSaved: 1}, Estimated: 2},
			"",
			"condense: only observed, nothing was changed: 46 requests, 2,000 tokens sent, 500 would have been saved (25 %)\ncondense: cache: 0 tokens read, 0 written; $4.00, would have been $3.00; 2 requests estimated, because the vendor did not report tokens\n" +
				"condense: history would have been condensed 1 time by smart: 48,100 to 27,000 tokens (window: the window was nearly full)\n",
		},
	} {
		var out strings.Builder
		if report(&out, tt.stats, tt.record, nil); out.String() != tt.want {
			t.Errorf("%s:\n%swant:\n%s", name, out.String(), tt.want)
		}
	}
}

// Money names what it is compared with: the agent's own compaction, where its size is known.
func TestReportNamesOwnCompaction(t *testing.T) {
	s := live.Stats{Requests: 1, Cost: 1, Saved: .5}
	for agent, want := range map[string]string{"claude": "$1.00 instead of $1.50 with its own compaction\n", "pi": "$1.00 instead of $1.50 with a full window\n"} {
		var out strings.Builder
		if report(&out, s, "", agents.Find(agent)); !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", agent, out.String())
		}
	}
	var out strings.Builder
	s.Windows = []live.Window{{Tokens: 20_000}, {Tokens: 80_000}} // in which Claude Code would have no room to begin again
	if report(&out, s, "", agents.Find("claude")); !strings.Contains(out.String(), "$1.00 instead of $1.50 with a full window\n") {
		t.Errorf("%s", out.String())
	}
	dear := live.Stats{Requests: 1, Cost: 1, Saved: -.25, EpochCount: 3, Epochs: make([]live.Epoch, 3)}
	if report(&out, dear, "", nil); !strings.Contains(out.String(), "$1.00 instead of $0.75 with a full window: the cache was rewritten 3 times\n") {
		t.Errorf("%s", out.String())
	}
}
