//go:build linux

package supervise_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
)

// TestHostileCalls: plugins misbehave in a call. Each case has what the chain reports, and
// the state of the process. The conversation is always truncated, and newBench checks
// that nothing is left.
func TestHostileCalls(t *testing.T) {
	const crashed = `plugin acme crashed \(%s\) after \S+ and 0 calls`
	ends := func(status string) string { return strings.ReplaceAll(crashed, "%s", status) }
	type test struct {
		program string
		change  func(*bench)
		want    string // of the error
		then    supervise.State
	}
	tests := []test{
		{"panics", nil, ends("exit status 2") + `: panic: a bug in a goroutine at programs_test\.go:\d+`, waiting},
		{"panics-in-call", nil, `plugin acme: panic: a bug in the call.*`, ready},
		{"exits", nil, ends("exit status 7"), waiting},
		{"exits-well", nil, `plugin acme exited by itself with exit status 0, after \S+ and 0 calls`, waiting},
		{"killed", nil, ends("signal: killed"), waiting},
		{"eats-memory", smallMemory, `plugin acme (crashed|ran out of memory) \(exit status 2\) after \S+ and 0 calls: (fatal error|runtime): .*`, waiting},
		{"leaves-child", nil, ends("exit status 7"), waiting},
		{"leaves-daemon", nil, ends("exit status 7"), waiting},
		{"cuts-connection", nil, `plugin acme was killed: it closed its connection after \S+ and 0 calls`, waiting},
		{"freezes", quickProbe, `plugin acme was killed: it hung: no answer to a health check within 200ms after \S+ and 0 calls`, waiting},

		{"hangs", nil, late, ready},
		{"hangs-deaf", nil, late, ready},
		{"floods-stderr", nil, late, ready},
		{"floods-stdout", nil, late, ready},
		{"floods-one-line", nil, late, ready},
		{"drips", nil, late, ready},
		{"logs-for-ever", nil, late, ready},

		{"answers-1gb", nil, broken + `edits of more than 67108864 bytes`, ready},
		{"answers-1gb-once", nil, broken + `.*received message larger than max.*`, ready},
		{"answers-10m", nil, broken + `insert after message "": more than 10000 new messages`, ready},
		{"answers-nothing", nil, broken + `the call ended without an answer`, ready},
	}
	if raceEnabled { // the detector alone takes more memory than the limit
		tests = slices.DeleteFunc(tests, func(tt test) bool { return tt.program == "eats-memory" })
	}
	together(t, tests, func(tt test) string { return tt.program }, func(t *testing.T, tt test) {
		b := newBench(t, tt.program)
		b.opts.Restart = supervise.Restart{Min: time.Hour, Max: time.Hour}
		if tt.change != nil {
			tt.change(b)
		}
		p := b.open(t)
		if err := p.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		pid := p.Seen().PID
		timeout := time.Minute
		if tt.want == late {
			timeout = 600 * time.Millisecond
		}
		if sig, ok := map[string]syscall.Signal{"killed": syscall.SIGKILL, "freezes": syscall.SIGSTOP}[tt.program]; ok {
			over := make(chan struct{})
			var sending sync.WaitGroup
			sending.Go(func() { // from outside: a process cannot do that to itself
				for {
					if _, err := os.Stat(filepath.Join(b.dir, "asked")); err == nil {
						_ = syscall.Kill(pid, sig)
						return
					}
					select {
					case <-over:
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			})
			defer func() { close(over); sending.Wait() }()
		}
		req := request()
		out, err := chain(t, p, timeout).Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		att := out.Attempts[0]
		if want := regexp.MustCompile(`^` + tt.want + `$`); att.Outcome != core.OutcomeFailed || !want.MatchString(att.Err.Error()) {
			t.Errorf("got %s, %q\nwant failed, %q", att.Outcome, att.Err, want)
		}
		if out.Provider != "truncation" || out.TokensAfter > req.Budget.Limit {
			t.Errorf("got %d tokens by %s; want at most %d by truncation", out.TokensAfter, out.Provider, req.Budget.Limit)
		}
		s := p.Seen()
		if s.State != tt.then || (s.PID == pid) != (tt.then == ready) {
			t.Errorf("then: got %s with pid %d, was %d; want %s", s.State, s.PID, pid, tt.then)
		}
		var crash *supervise.CrashError
		if errors.As(att.Err, &crash) != (tt.then == waiting) || crash != nil && crash.PID != pid {
			t.Errorf("got crash report %+v", crash)
		}
	})
}

const (
	ready   = supervise.StateReady
	waiting = supervise.StateWaiting
	late    = `no answer within 600ms: plugin acme: no answer in time`
	broken  = `plugin acme: the plugin breaks the protocol: `
)

func quickProbe(b *bench)  { b.spec.Limits.Health = 200 * time.Millisecond }
func smallMemory(b *bench) { b.spec.Limits.Memory = 256 << 20 }

// TestInvalidAnswers: plugins follow the protocol, but their answers are invalid. The
// protocol refuses what it cannot express, the rules refuse the rest.
func TestInvalidAnswers(t *testing.T) {
	type test struct {
		program string
		outcome core.Outcome
		want    string // of the reason
	}
	tests := []test{
		{"invents-id", core.OutcomeFailed, broken + `hide: there is no message "invented"`},
		{"hides-protected", core.OutcomeRejected, `keep-protected: message m2: is hidden.*`},
		{"edits-protected", core.OutcomeRejected, `keep-protected: message m2: is rewritten.*`},
		{"drops-half", core.OutcomeRejected, `keep-pairs: message m5: the result of call c1 stays without the call, which message m4 had.*`},
		{"hides-all", core.OutcomeRejected, `answer: .*`},
		{"reorders", core.OutcomeRejected, `keep-reasoning: signed or encrypted reasoning is in new message 15.*`},
		{"false-counts", core.OutcomeFailed, broken + `usage is .*`},
	}
	together(t, tests, func(tt test) string { return tt.program }, func(t *testing.T, tt test) {
		b := newBench(t, tt.program)
		req := request()
		out, err := chain(t, b.open(t), time.Minute).Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		att := out.Attempts[0]
		if want := regexp.MustCompile(`^` + tt.want + `$`); att.Outcome != tt.outcome || !want.MatchString(att.Reason) {
			t.Errorf("got %s, %q\nwant %s, %q", att.Outcome, att.Reason, tt.outcome, want)
		}
		if out.Provider != "truncation" || out.TokensAfter > req.Budget.Limit {
			t.Errorf("got %d tokens by %s; want at most %d by truncation", out.TokensAfter, out.Provider, req.Budget.Limit)
		}
	})
}

// TestOtherConversations: a plugin answers one conversation with the messages of another
// that it has seen before.
func TestOtherConversations(t *testing.T) {
	p := newBench(t, "hides-others").open(t)
	if _, err := p.Condense(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	mine := coretest.Session()
	for i := range mine {
		mine[i].ID = "my-" + mine[i].ID
	}
	out, err := chain(t, p, time.Minute).Run(t.Context(), coretest.HalfRequest(mine))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out.Attempts[0].Reason, broken+`hide: there is no message "m3"`; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

// TestMisbehaving runs every misbehaving provider of coretest as a process of its own.
func TestMisbehaving(t *testing.T) {
	// The SDK turns the author's list into an edit. It refuses a list that no edit can
	// express, and names the rule: for the host that is an error of the plugin.
	refused := []string{"answer", "valid-parts", "known-ids", "unique-ids", "keep-order", "keep-role"}
	release := make(chan struct{})
	close(release)
	together(t, misbehaving.All(release), func(s misbehaving.Case) string { return s.Name }, func(t *testing.T, m misbehaving.Case) {
		p := newBench(t, "misbehaves", m.Name).open(t)
		if err := p.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		timeout := time.Minute
		if slices.Contains([]string{"Hangs", "HangsForever", "AnswersLate"}, m.Name) {
			timeout = 200 * time.Millisecond
		}
		req := coretest.HalfRequest(m.Session())
		out, err := chain(t, p, timeout).Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		att, want := out.Attempts[0], m.Outcome
		switch {
		case want == core.OutcomeRejected && slices.Contains(refused, m.Rule):
			want = core.OutcomeFailed
		case m.Name == "LiesAboutUsage":
			want = core.OutcomeFailed // the protocol refuses NaN
		}
		if att.Outcome != want {
			t.Errorf("got %s, %q; want %s", att.Outcome, att.Reason, want)
		}
		if m.Outcome == core.OutcomeRejected && !strings.Contains(att.Reason, m.Rule+": ") && m.Name != "ChangesCallID" && m.Name != "KeepsOnlySystem" {
			t.Errorf("got %q; want the rule %s", att.Reason, m.Rule)
		}
		if out.TokensAfter > req.Budget.Limit {
			t.Errorf("got %d tokens; want at most %d", out.TokensAfter, req.Budget.Limit)
		}
	})
}
