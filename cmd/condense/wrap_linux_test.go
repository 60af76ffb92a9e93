package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// A screen is what a process has printed.
type screen struct{ testkit.Log }

// wait waits until text has been printed n times.
func (s *screen) wait(t *testing.T, text string, n int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", s)
		}
	}()
	testkit.Eventually(t, fmt.Sprintf("%q is printed %d times", text, n), func() bool { return strings.Count(s.String(), text) >= n })
}

// notIgnored handles SIGHUP in this process from its first call on. Under nohup it is ignored, which the agents would inherit; after
// signal.Stop it would be ignored again without signal.Ignored saying so.
var notIgnored = sync.OnceFunc(func() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
})

// wrapped starts the fake agent through wrap, without a terminal.
func wrapped(t *testing.T, args ...string) (cmd *exec.Cmd, in *os.File, out *screen) {
	t.Helper()
	testkit.Process(t)
	r, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out = &screen{}
	cmd = exec.CommandContext(t.Context(), "condense", append(append([]string{"wrap", "--store", "memory"}, args...), "--", "agent")...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.TempDir(), r, out, out
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	notIgnored()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	out.wait(t, "ready", 1)
	return cmd, in, out
}

func say(t *testing.T, to *os.File, text string) {
	t.Helper()
	if _, err := to.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// A signal for wrap reaches the agent, once, and the agent decides what it means.
func TestWrapForwardsSignals(t *testing.T) {
	cmd, in, out := wrapped(t, "-q")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGINT} {
		before := strings.Count(out.String(), "got "+s.String())
		interrupt(t, cmd, s)
		out.wait(t, "got "+s.String(), before+1)
	}
	say(t, in, "hello\nexit 9\n")
	wantExit(t, cmd, 9)
	if text := out.String(); strings.Count(text, "got interrupt") != 2 || !strings.Contains(text, "repeated hello") {
		t.Errorf("the agent printed:\n%s", text)
	}
}

// An agent whose wrap was killed would go on with an address at which nothing answers: it is asked to end.
func TestKilledWrapEndsAgent(t *testing.T) {
	cmd, _, out := wrapped(t, "-q")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	out.wait(t, "got terminated", 1)
}

// Requests go to the vendor with the agent's own key, and the end says what was done.
func TestWrapReports(t *testing.T) {
	vendor := upstream.New(upstream.Options{Window: 200_000})
	server := httptest.NewServer(vendor)
	defer server.Close()
	cmd, in, out := wrapped(t, "--upstream", "anthropic="+server.URL)
	say(t, in, "ask something\n")
	out.wait(t, "200 OK", 1)
	say(t, in, "exit 0\n")
	wantExit(t, cmd, 0)
	got := vendor.Records()
	if len(got) != 1 || got[0].Header.Get("X-Api-Key") != "sk-ant-test" || len(vendor.Refusals()) > 0 {
		t.Fatalf("%d requests arrived, refused: %v", len(got), vendor.Refusals())
	}
	for _, line := range []string{
		fmt.Sprintf("condense: 1 request, %s tokens sent, 0 saved\n", size.Group(got[0].Usage.Prompt)), "condense: cache: ", "condense: the history was never too long\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing:\n%s", line, out)
		}
	}
}

// A vendor that cannot be reached is an answer to the agent, which goes on.
func TestWrapWithoutVendor(t *testing.T) {
	cmd, in, out := wrapped(t, "--upstream", "anthropic=http://127.0.0.1:1")
	say(t, in, "ask something\n")
	out.wait(t, "502 Bad Gateway", 1)
	say(t, in, "hello\nexit 3\n")
	wantExit(t, cmd, 3)
	if !strings.Contains(out.String(), "repeated hello") {
		t.Errorf("the agent printed:\n%s", out)
	}
}

// When wrap is stopped and continued, so is the agent's gateway; when the agent stops, so does wrap.
func TestWrapStopsWithTheAgent(t *testing.T) {
	cmd, in, out := wrapped(t, "-q")
	say(t, in, "stop\n")
	testkit.Eventually(t, "wrap stops with the agent", func() bool { return state(t, cmd.Process.Pid) == "T" })
	interrupt(t, cmd, syscall.SIGCONT)
	out.wait(t, "continued", 1)
	say(t, in, "exit 0\n")
	wantExit(t, cmd, 0)
}

func state(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return after[:1]
}

// An agent that ends by a signal gives the exit code that a shell would give.
func TestWrapExitCodeOfASignal(t *testing.T) {
	cmd, _, _ := wrapped(t, "-q")
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		t.Skip("this kernel does not list children")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for id := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(id)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantExit(t, cmd, 137)
}

// A terminal with a shell in it.
func terminal(t *testing.T) (keys *os.File, out *screen) {
	t.Helper()
	testkit.Process(t)
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	keys, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	side, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), shell, "--norc", "--noprofile", "--noediting", "-i")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, side, side, side
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "PS1=prompt ", "TERM=dumb", "LC_ALL=C", "HISTFILE=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := side.Close(); err != nil {
		t.Fatal(err)
	}
	out = &screen{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := keys.Read(buf)
			_, _ = out.Write(buf[:n])
			if err != nil {
				return // the shell has ended
			}
		}
	}()
	t.Cleanup(func() {
		killSession(cmd.Process.Pid) // a process that has the terminal open keeps the reader waiting
		_ = cmd.Wait()
		_ = keys.Close()
		<-done
	})
	return keys, out
}

// killSession ends all processes of a session.
func killSession(leader int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		name, after, _ := strings.Cut(string(text), ") ") // then state, parent, group, session
		fields := strings.Fields(after)
		pid, err := strconv.Atoi(strings.Fields(name + " x")[0])
		if err == nil && len(fields) > 3 && fields[3] == strconv.Itoa(leader) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// In a terminal, wrap and the agent are one job: keys and the size of the window reach the agent, once, and
// stopping and continuing works as without wrap.
func TestWrapInATerminal(t *testing.T) {
	keys, out := terminal(t)
	say(t, keys, "stty -echo\n")
	out.wait(t, "prompt", 2)
	say(t, keys, "condense wrap -q --store memory -- agent\n")
	out.wait(t, "ready", 1)
	for n := range 3 {
		say(t, keys, "\x03")
		out.wait(t, "got interrupt", n+1)
	}
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 111}); err != nil {
		t.Fatal(err)
	}
	out.wait(t, "got size 33 x 111", 1)
	prompts := strings.Count(out.String(), "prompt ")
	stops := 0
	foreground := func() {
		stops++
		out.wait(t, "Stopped", stops)
		out.wait(t, "prompt ", prompts+stops)
		say(t, keys, "fg\n")
		out.wait(t, "prompt condense wrap", stops) // the shell names the job
	}
	for n := range 5 {
		say(t, keys, "\x1a") // Ctrl-Z
		foreground()
		say(t, keys, fmt.Sprintf("hello %d\n", n))
		out.wait(t, fmt.Sprintf("repeated hello %d", n), 1)
	}
	for n := range 5 {
		say(t, keys, "stop\n") // by itself, as agents do that read the keys themselves
		foreground()
		out.wait(t, "continued", n+1)
	}
	say(t, keys, "exit 5\n")
	say(t, keys, "echo code is $?\n")
	out.wait(t, "code is 5", 1)
	if text := out.String(); strings.Count(text, "got interrupt") != 3 || strings.Count(text, "Stopped") != stops {
		t.Errorf("the screen:\n%s", text)
	}
}

// SIGQUIT to wrap alone reaches the agent in a terminal too, where it cannot be told from the terminal's own, and ends
// what does not handle it.
func TestQuitEndsWrap(t *testing.T) {
	keys, out := terminal(t)
	say(t, keys, "stty -echo\n")
	out.wait(t, "prompt", 2)
	started := regexp.MustCompile(`at (\d+)`)
	quit := func(n int) {
		t.Helper()
		testkit.Eventually(t, "wrap has started", func() bool { return len(started.FindAllString(out.String(), -1)) == n })
		pid, err := strconv.Atoi(started.FindAllStringSubmatch(out.String(), -1)[n-1][1])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
	}
	say(t, keys, "condense wrap -q --store memory -- agent & echo at $! ; fg\n")
	out.wait(t, "ready", 1)
	quit(1)
	out.wait(t, "got quit", 1)
	say(t, keys, "hello\nexit 3\n") // it is still there
	out.wait(t, "repeated hello", 1)
	say(t, keys, "echo code is $?\n")
	out.wait(t, "code is 3", 1)
	say(t, keys, "condense wrap -q --store memory -- sh -c 'echo asleep; exec sleep 1000' & echo at $! ; fg\n")
	out.wait(t, "asleep", 1+1)
	quit(2)
	say(t, keys, "echo code is $?\n")
	out.wait(t, "code is 131", 1)
	if text := out.String(); strings.Contains(text, "got terminated") {
		t.Errorf("the screen:\n%s", text)
	}
}

// The keys of the user are used for accounts only after a yes on a terminal, which shows the cost first and is
// remembered for that agent and that value alone.
func TestWrapAsksBeforeItUsesTheKey(t *testing.T) {
	keys, out := terminal(t)
	say(t, keys, "stty -echo\n")
	out.wait(t, "prompt", 2)
	ready := 0
	run := func(account, answer string) {
		t.Helper()
		asked := strings.Count(out.String(), "use it?")
		say(t, keys, "condense wrap -q --store memory --account "+account+" -- agent\n")
		if answer != "" {
			out.wait(t, "use it?", asked+1)
			say(t, keys, answer+"\n")
		}
		ready++
		out.wait(t, "ready", ready)
		say(t, keys, "exit 0\n")
		say(t, keys, fmt.Sprintf("echo run %d is over\n", ready))
		out.wait(t, fmt.Sprintf("run %d is over", ready), 1)
		if n := strings.Count(out.String(), "use it?"); answer == "" && n != asked {
			t.Errorf("run %d asks again: %d questions after %d", ready, n, asked)
		}
	}
	run("client", "n")
	run("client", "y")
	run("client", "")
	run("off", "")
	say(t, keys, "condense trust --list\n")
	out.wait(t, "account", 1)
	if text := out.String(); !strings.Contains(text, "with claude-haiku-4-5") || strings.Count(text, "there will be no accounts in this run") != 1 {
		t.Errorf("the screen:\n%s", text)
	}
}
