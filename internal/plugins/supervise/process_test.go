//go:build linux

package supervise_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/wire"
)

const (
	never = time.Hour
	soon  = 900 * time.Millisecond // a pause that a test waits for; a call would wait for it too, because it is less than a second
)

// condenseOnce makes one call and returns its error.
func condenseOnce(t *testing.T, p *supervise.Process) error {
	t.Helper()
	_, err := p.Condense(t.Context(), request())
	return err
}

// within makes one call with a deadline.
func within(t *testing.T, p *supervise.Process, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := p.Condense(ctx, request())
	return err
}

// refused returns the error of a short call that falls into a pause of the plugin. Where the machine stands still for as long as the
// pause, the call comes behind it, and another one is made.
func refused(t *testing.T, p *supervise.Process) (err error) {
	t.Helper()
	testkit.Eventually(t, "a call is refused", func() bool {
		err = within(t, p, soon/10)
		return errors.Is(err, core.ErrUnavailable)
	})
	return err
}

func wantError(t *testing.T, err error, is error, text string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v; want an error with %q that wraps %v", err, text, is)
	}
}

// state is the part of Status that does not vary.
type state struct {
	state           supervise.State
	starts, crashes int
}

func wantState(t *testing.T, p *supervise.Process, want state) {
	t.Helper()
	if s := p.Seen(); (state{s.State, s.Starts, s.Crashes}) != want {
		t.Errorf("got %s after %d starts and %d crashes; want %+v", s.State, s.Starts, s.Crashes, want)
	}
}

func TestStartsAgainAfterCrash(t *testing.T) {
	b := newBench(t, "exits-once")
	p := b.open(t)
	wantError(t, condenseOnce(t, p), nil, "crashed (exit status 7)")
	// The second call waits for the pause to end.
	if err := condenseOnce(t, p); err != nil {
		t.Error(err)
	}
	wantState(t, p, state{ready, 2, 1})
}

func TestCallTooShortForPause(t *testing.T) {
	b := newBench(t, "exits")
	b.opts.Restart = supervise.Restart{Min: soon, Max: soon}
	p := b.open(t)
	wantError(t, condenseOnce(t, p), nil, "crashed")
	err := refused(t, p)
	wantError(t, err, core.ErrUnavailable, "it may start again in ")
	wantError(t, err, nil, "(plugin acme crashed (exit status 7)")
}

func TestCrashLoop(t *testing.T) {
	b := newBench(t, "exits")
	b.opts.Restart = supervise.Restart{Min: time.Millisecond, Crashes: 3, Window: never, Cooldown: soon}
	p := b.open(t)
	for range 3 {
		wantError(t, condenseOnce(t, p), nil, "crashed (exit status 7)")
	}
	wantState(t, p, state{supervise.StateBroken, 3, 3})
	// A call would wait for a pause this short, but not for a broken plugin.
	wantError(t, refused(t, p), core.ErrUnavailable, "it may start again in ")
	n := p.Seen().Starts
	time.Sleep(soon)
	wantError(t, condenseOnce(t, p), nil, "crashed (exit status 7)") // the trial
	wantState(t, p, state{supervise.StateBroken, n + 1, n + 1})
}

func TestBrokenForLong(t *testing.T) {
	b := newBench(t, "exits")
	b.opts.Restart = supervise.Restart{Min: time.Millisecond, Crashes: 2, Window: never, Cooldown: never}
	p := b.open(t)
	for range 2 {
		wantError(t, condenseOnce(t, p), nil, "crashed (exit status 7)")
	}
	err := condenseOnce(t, p)
	wantError(t, err, core.ErrUnavailable, "plugin acme: it ended or did not start 2 times within 1h0m0s; the next start is in ")
	wantError(t, err, nil, "(plugin acme crashed (exit status 7) after ")
	if errors.As(err, new(*supervise.CrashError)) {
		t.Error("it passes for a crash of its own")
	}
}

// TestBreaker: calls to a running process fail until it has recovered.
func TestBreaker(t *testing.T) {
	b := newBench(t, "panics-thrice")
	b.opts.Breaker = supervise.Breaker{Failures: 2, Cooldown: soon}
	p := b.open(t)
	for range 2 {
		wantError(t, condenseOnce(t, p), nil, "panic: not yet")
	}
	wantState(t, p, state{supervise.StateOpen, 1, 0})
	err := condenseOnce(t, p)
	wantError(t, err, core.ErrUnavailable, "plugin acme: its last calls failed; the next one is tried in ")
	wantError(t, err, nil, "(plugin acme: panic: not yet")

	time.Sleep(soon)
	wantError(t, condenseOnce(t, p), nil, "panic: not yet") // the trial, in a new process
	wantState(t, p, state{supervise.StateOpen, 2, 0})

	time.Sleep(soon)
	for range 2 {
		if err := condenseOnce(t, p); err != nil {
			t.Error(err)
		}
	}
	wantState(t, p, state{ready, 3, 0})
}

// TestCallersFaults: calls fail in ways that are not the plugin's fault.
func TestCallersFaults(t *testing.T) {
	b := newBench(t, "slow")
	b.opts.Breaker = supervise.Breaker{Failures: 1, Cooldown: never}
	p := b.open(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := p.Condense(ctx, request())
	wantError(t, err, context.Canceled, "plugin acme: context canceled")
	must(os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600))
	if err := condenseOnce(t, p); err != nil {
		t.Error(err)
	}
	wantState(t, p, state{ready, 1, 0})
}

// TestDeclines: a plugin declines. That is an answer.
func TestDeclines(t *testing.T) {
	b := newBench(t, "declines")
	b.opts.Breaker = supervise.Breaker{Failures: 1, Cooldown: never}
	p := b.open(t)
	for range 3 {
		out, err := chain(t, p, time.Minute).Run(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		if a := out.Attempts[0]; a.Outcome != core.OutcomeSkipped || !strings.Contains(a.Reason, "plugin acme: the model is away") {
			t.Errorf("got %s, %q; want skipped, in the plugin's words", a.Outcome, a.Reason)
		}
	}
	wantState(t, p, state{ready, 1, 0})
}

// TestTimesOutInside: a plugin reports a timeout of its own. That is an answer, too.
func TestTimesOutInside(t *testing.T) {
	b := newBench(t, "times-out")
	b.opts.Breaker = supervise.Breaker{Failures: 1, Cooldown: never}
	b.spec.Limits.Calls = 1
	p := b.open(t)
	for range 2 {
		wantError(t, condenseOnce(t, p), context.DeadlineExceeded, "plugin acme: asking the model: context deadline exceeded")
	}
	wantState(t, p, state{ready, 1, 0})
}

// TestAbandonedCalls: a plugin works on after its calls were cancelled.
func TestAbandonedCalls(t *testing.T) {
	b := newBench(t, "hangs-deaf")
	b.spec.Limits.Calls = 2
	p := b.open(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := p.Seen().PID
	for range 2 {
		wantError(t, within(t, p, 50*time.Millisecond), context.DeadlineExceeded, "no answer in time")
	}
	testkit.Eventually(t, "another process", func() bool {
		now := p.Seen().PID
		return p.Ping(t.Context()) == nil && now != 0 && now != pid
	})
	wantState(t, p, state{ready, 2, 0})
}

func TestIdleStop(t *testing.T) {
	b := newBench(t, "window")
	// Long enough for the first call, on a busy machine too.
	b.spec.Limits.Idle = 700 * time.Millisecond
	p := b.open(t)
	for n := range 2 {
		if err := condenseOnce(t, p); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "stopped", func() bool { return p.Seen().State == supervise.StateStopped })
		testkit.Eventually(t, "gone", func() bool { return len(processes(t, "in="+b.dir)) == 0 })
		wantState(t, p, state{supervise.StateStopped, n + 1, 0})
	}
}

func TestTooManyCalls(t *testing.T) {
	b := newBench(t, "slow")
	b.spec.Limits.Calls = 2
	p := b.open(t)
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			if err := condenseOnce(t, p); err != nil {
				t.Error(err)
			}
		})
	}
	testkit.Eventually(t, "two calls", func() bool { return p.Seen().Calls == 2 && b.exists("began") })
	wantError(t, within(t, p, 20*time.Millisecond), core.ErrUnavailable, "plugin acme: 2 calls run, as many as it may have")
	calls.Go(func() { // this one has time to wait
		if err := condenseOnce(t, p); err != nil {
			t.Error(err)
		}
	})
	must(os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600))
	calls.Wait()
}

func (b *bench) exists(name string) bool {
	_, err := os.Stat(filepath.Join(b.dir, name))
	return err == nil
}

// TestRecycle: a call that runs ends in the process where it began, and the next one gets a
// new process.
func TestRecycle(t *testing.T) {
	b := newBench(t, "slow")
	p := b.open(t)
	var calls sync.WaitGroup
	call := func() {
		if err := condenseOnce(t, p); err != nil {
			t.Error(err)
		}
	}
	calls.Go(call)
	testkit.Eventually(t, "the call runs", func() bool { return b.exists("began") })
	was := p.Seen().PID
	p.Recycle()
	calls.Go(call)
	testkit.Eventually(t, "another process", func() bool { pid := p.Seen().PID; return pid != 0 && pid != was })
	if got := len(processes(t, "in="+b.dir)); got != 2 {
		t.Errorf("got %d processes; want the old one and the new one", got)
	}
	must(os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600))
	calls.Wait()
	testkit.Eventually(t, "the old process is gone", func() bool { return len(processes(t, "in="+b.dir)) == 1 })
}

// TestDrainEnds: calls on a process that is being replaced have a limit.
func TestDrainEnds(t *testing.T) {
	b := newBench(t, "freezes")
	b.spec.Limits.Drain = 100 * time.Millisecond
	p := b.open(t)
	var old sync.WaitGroup
	old.Go(func() {
		wantError(t, condenseOnce(t, p), nil, "plugin acme was killed: it was replaced, and its calls did not end within 100ms")
	})
	testkit.Eventually(t, "the call runs", func() bool { return b.exists("asked") })
	p.Recycle()
	old.Wait()
	wantState(t, p, state{supervise.StateStopped, 1, 0})
}

func TestClose(t *testing.T) {
	b := newBench(t, "window")
	p := b.open(t)
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	wantError(t, condenseOnce(t, p), supervise.ErrClosed, "plugin acme: closed")
	wantError(t, p.Ping(t.Context()), supervise.ErrClosed, "plugin acme: closed")
	wantState(t, p, state{supervise.StateClosed, 0, 0})
}

// TestCloseInTheMiddle closes plugins that are busy.
func TestCloseInTheMiddle(t *testing.T) {
	busy := func(t *testing.T, b *bench, p *supervise.Process, is supervise.State) {
		t.Helper()
		var call sync.WaitGroup
		call.Go(func() { wantError(t, condenseOnce(t, p), supervise.ErrClosed, "closed") })
		testkit.Eventually(t, "a process", func() bool { return len(processes(t, "in="+b.dir)) == 1 && p.Seen().State == is })
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		call.Wait()
	}
	type test struct {
		program string
		close   func(*testing.T, *bench, *supervise.Process)
	}
	starting := func(t *testing.T, b *bench, p *supervise.Process) {
		t.Helper()
		busy(t, b, p, supervise.StateStarting)
	}
	together(t, []test{
		{"silent", starting},
		{"socket-mute", starting},
		{"hangs-deaf", func(t *testing.T, b *bench, p *supervise.Process) {
			t.Helper()
			busy(t, b, p, ready)
		}},
		{"ignores-shutdown", func(t *testing.T, _ *bench, p *supervise.Process) {
			t.Helper()
			if err := p.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"freezes", func(t *testing.T, _ *bench, p *supervise.Process) {
			t.Helper()
			if err := p.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			wantError(t, within(t, p, 200*time.Millisecond), context.DeadlineExceeded, "no answer in time")
		}},
	}, func(tt test) string { return tt.program }, func(t *testing.T, tt test) {
		b := newBench(t, tt.program)
		b.opts.Grace = 500 * time.Millisecond
		p := b.open(t)
		tt.close(t, b, p)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestImpatientCaller: one caller gives up while the plugin starts for another.
func TestImpatientCaller(t *testing.T) {
	b := newBench(t, "window")
	b.spec.Plaintext = false // takes longer
	p := b.open(t)
	var patient sync.WaitGroup
	patient.Go(func() {
		if err := condenseOnce(t, p); err != nil {
			t.Error(err)
		}
	})
	testkit.Eventually(t, "starting", func() bool { return p.Seen().State == supervise.StateStarting })
	err := within(t, p, time.Millisecond)
	wantError(t, err, core.ErrUnavailable, "plugin acme: it is still starting")
	patient.Wait()
	wantState(t, p, state{ready, 1, 0})
}

// TestSlowStartCostsOneTimeout: a call that follows one which waited in vain for a start does not wait as long again.
func TestSlowStartCostsOneTimeout(t *testing.T) {
	b := newBench(t, "window")
	b.spec.Path = filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(b.spec.Path, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.spec.SHA256, b.spec.Unpinned, b.spec.Limits.Start = "", true, 10*time.Minute
	p := b.open(t)
	wantError(t, within(t, p, time.Second), core.ErrUnavailable, "plugin acme: it is still starting")
	for range 20 {
		began := time.Now()
		wantError(t, within(t, p, time.Second), core.ErrUnavailable, "plugin acme: it is still starting")
		if time.Since(began) < 900*time.Millisecond {
			return // one that was slowed down by the machine says nothing
		}
	}
	t.Error("every call waits for its own timeout")
}

func TestDescribe(t *testing.T) {
	b := newBench(t, "window")
	d, err := b.open(t).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "slidingwindow" || len(d.Settings) == 0 || d.Settings[0].Name != "mode" {
		t.Errorf("got %+v", d)
	}
}

// TestAttach uses a plugin that was started in a debugger.
func TestAttach(t *testing.T) {
	b := newBench(t, "debugged")
	cmd := exec.CommandContext(t.Context(), b.spec.Path, b.spec.Args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+b.dir)
	out := testkit.Start(t, cmd)
	defer func() {
		must(cmd.Process.Signal(os.Interrupt))
		must(cmd.Wait())
	}()
	lines := bufio.NewScanner(out)
	var attach map[string]*wire.Reattach
	for attach == nil && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), wire.EnvReattach+"='"); ok {
			line, _, _ := strings.Cut(rest, "'")
			must(json.Unmarshal([]byte(line), &attach))
		}
	}
	b.spec = supervise.Spec{Name: "acme", Attach: attach["slidingwindow"]}
	p := b.open(t)
	if err := condenseOnce(t, p); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if left := processes(t, "in="+b.dir); len(left) != 1 {
		t.Errorf("got %v; want that the plugin still runs", left)
	}
}
