package agents_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestOwnAccount runs the scenario with accounts by the agent's own model: it is asked with the agent's key and what the agent has sent, which the cache
// of the vendor has, and no agent notices. A vendor that does not answer that delays nothing.
func TestOwnAccount(t *testing.T) {
	t.Parallel()
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			ownAccount(t, &a, nil)
		})
	}
	t.Run("the vendor hangs", func(t *testing.T) {
		t.Parallel()
		never := make(chan struct{})
		ownAccount(t, &all[0], func(r upstream.Record) *upstream.Fault {
			if upstream.IsAccount(r.Body) && !strings.Contains(string(r.Body), accountMark) {
				return &upstream.Fault{Hold: never}
			}
			return nil
		})
	})
}

const accountMark = "the commands of the checklist were run"

func ownAccount(t *testing.T, a *agent, fault func(upstream.Record) *upstream.Fault) {
	t.Helper()
	o := scenario()
	o.Fault = fault
	o.Account = func(upstream.Record) string {
		return "## Done\n- " + accountMark + "\n## Next step\n- run the next command\n"
	}
	d := newDesk(t, o)
	d.more = "serve: {account: client}\n"
	d.at(t, a, "")
	got := d.wrap(t, a.env, append(append([]string{a.name}, a.args...), task)...)
	d.condensed(t, got, got.epochs(t))
	read, prompt, asked, joined := 0, 0, 0, 0
	for _, r := range d.vendor.Records() {
		switch {
		case r.Side == "account":
			asked++
			read, prompt = read+r.Usage.CacheRead, prompt+r.Usage.Prompt
			if fault == nil && r.Usage.CacheRead*100 < r.Usage.Prompt*95 {
				t.Errorf("request %d for an account: the cache served %d of %d tokens\n%s", r.N, r.Usage.CacheRead, r.Usage.Prompt, d.list())
			}
		case r.Step > 0 && strings.Contains(string(r.Body), accountMark):
			joined++
		}
	}
	switch {
	case asked == 0:
		t.Errorf("no account was asked for\n%s\n%s", tail(got.out), d.list())
	case fault == nil && joined == 0:
		t.Errorf("no request has the account\n%s\n%s", tail(got.out), d.list())
	}
	if !strings.Contains(got.out, "by the agent's own model") {
		t.Errorf("condense wrap does not say what it asked for\n%s", tail(got.out))
	}
	t.Logf("%d accounts asked, %d turns with one, %d of %d tokens of the requests for them from the cache", asked, joined, read, prompt)
}
