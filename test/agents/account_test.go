package agents_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestOwnAccount runs the scenario with accounts by the agent's own model: it is asked with the agent's key and what the agent has
// sent, which the cache
// of the vendor has, and no agent notices. A vendor that does not answer that delays nothing.
func TestOwnAccount(t *testing.T) {
	t.Parallel()
	for _, a := range some("pi") {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			ownAccount(t, &a, false)
		})
	}
	t.Run("the vendor hangs", func(t *testing.T) {
		t.Parallel()
		ownAccount(t, &all[0], true)
	})
}

const accountMark = "the commands of the checklist were run"

// ownAccount runs the scenario with an agent. If the vendor hangs, it never answers a request for an account.
func ownAccount(t *testing.T, a *agent, hangs bool) {
	t.Helper()
	o := scenario()
	var pace pace
	o.Account = func(upstream.Record) string {
		pace.rest(4 * time.Second)
		return "## Done\n- " + accountMark + "\n## Next step\n- run the next command\n"
	}
	o.Fault = func(upstream.Record) *upstream.Fault { return &upstream.Fault{Hold: pace.turn()} }
	if hangs {
		never := make(chan struct{})
		o.Fault = func(r upstream.Record) *upstream.Fault {
			if upstream.IsAccount(r.Body) && !strings.Contains(string(r.Body), accountMark) {
				return &upstream.Fault{Hold: never}
			}
			return nil
		}
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
			if !hangs && r.Usage.CacheRead*100 < r.Usage.Prompt*95 {
				t.Errorf("request %d for an account: the cache served %d of %d tokens\n%s", r.N, r.Usage.CacheRead, r.Usage.Prompt, d.list())
			}
		case r.Step > 0 && strings.Contains(string(r.Body), accountMark):
			joined++
		}
	}
	switch {
	case asked == 0:
		t.Errorf("no account was asked for\n%s\n%s", tail(got.out), d.list())
	case !hangs && joined == 0:
		t.Errorf("no request has the account\n%s\n%s", tail(got.out), d.list())
	}
	if !strings.Contains(got.out, "by the agent's own model") {
		t.Errorf("condense wrap does not say what it asked for\n%s", tail(got.out))
	}
	t.Logf("%d accounts asked, %d turns with one, %d of %d tokens of the requests for them from the cache", asked, joined, read, prompt)
}

// A pace makes the vendor as slow as a model while an account is prepared. Otherwise some agents make the two turns before the condensation
// within the 0.1 s that its preparation takes, and the account comes too late for it.
type pace struct {
	mu    sync.Mutex
	until time.Time
}

// rest lets the next turns wait until d has passed.
func (p *pace) rest(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(d)
}

// turn returns a channel that is closed when the turn can be answered.
func (p *pace) turn() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	over := make(chan struct{})
	time.AfterFunc(time.Until(p.until), func() { close(over) })
	return over
}
