package servecmd

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/live"
)

func TestReport(t *testing.T) {
	epoch := live.Epoch{Before: 48_100, After: 27_000, Reason: "window"}
	for name, tt := range map[string]struct {
		stats live.Stats
		want  string
	}{
		"nothing": {live.Stats{}, "condense: no conversation came through the gateway; if the agent had one, it uses an address that wrap could not change\n"},
		"short": {
			live.Stats{Requests: 1, Tokens: live.Tokens{Received: 1200, Sent: 1200, CacheWrite: 1000}, Unpriced: 1},
			"condense: 1 request, 1,200 tokens sent, 0 saved\ncondense: cache: 0 tokens read, 1,000 written; no price known for the model\ncondense: the history was never too long\n",
		},
		"condensed": {
			live.Stats{Requests: 46, Tokens: live.Tokens{Received: 2000, Sent: 1500, Saved: 700, Recalled: 200, Net: 500, CacheRead: 900}, Cost: 3.214, Saved: 1, Unpriced: 2, Epochs: []live.Epoch{epoch, epoch, epoch, epoch}, EpochCount: 4, Ingested: 1, Errors: map[string]int{"vendor_overloaded_error": 2}},
			"condense: 46 requests, 1,500 tokens sent, 500 saved (25 %), without 200 that the agent recalled\ncondense: cache: 900 tokens read, 0 written; $3.21 instead of $4.21, without 2 requests to models of unknown price\n" +
				"condense: history condensed 4 times: 48,100 to 27,000 tokens (window), 48,100 to 27,000 tokens (window), 48,100 to 27,000 tokens (window), …; 1 tool result shortened; 2 errors, see --log info\n",
		},
		"observed": {
			live.Stats{Observe: true, Requests: 46, Tokens: live.Tokens{Received: 2000, Sent: 1500, Saved: 500, Net: 500}, Cost: 4, Saved: 1, Epochs: []live.Epoch{epoch}, EpochCount: 1},
			"condense: 46 requests, 2,000 tokens sent, 500 would have been saved (25 %)\ncondense: cache: 0 tokens read, 0 written; $4.00, would have been $3.00\ncondense: history would have been condensed 1 time: 48,100 to 27,000 tokens (window)\n",
		},
	} {
		var out strings.Builder
		if report(&out, tt.stats); out.String() != tt.want {
			t.Errorf("%s:\n%swant:\n%s", name, out.String(), tt.want)
		}
	}
}
