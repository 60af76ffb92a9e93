//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/testkit"
)

// started starts the program as a process in an empty folder.
func started(t *testing.T, stdin io.Reader, stdout io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	testkit.Process(t)
	cmd := exec.CommandContext(t.Context(), "condense", args...)
	cmd.Dir = t.TempDir()
	cmd.Stdin, cmd.Stdout = stdin, stdout
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// wantExit waits for the end of a process; the time-out of the test is the limit.
func wantExit(t *testing.T, cmd *exec.Cmd, code int) {
	t.Helper()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("%v: got %v, want exit code %d", cmd.Args, cmd.ProcessState, code)
	}
}

func interrupt(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// more than a pipe holds: when it is written, the program is reading.
var opened = append([]byte("["), bytes.Repeat([]byte(" "), 1<<20)...)

func TestSignalEndsACommandThatWaitsForStandardInput(t *testing.T) {
	for _, args := range [][]string{
		{"view", "-"}, {"run", "-"}, {"inspect", "-"}, {"check", "-"}, {"undo", "-"}, {"rewind", "--to", "1", "-"}, {"recall", "-", "--hidden"},
	} {
		for s, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := started(t, r, nil, args...)
			_ = r.Close()
			if _, err := w.Write(opened); err != nil {
				t.Fatal(err)
			}
			interrupt(t, cmd, s)
			wantExit(t, cmd, code)
			_ = w.Close()
		}
	}
}

// A hook that waits ends with nothing said when the agent ends it, or after its own time: other codes are an objection for agents.
func TestHookThatWaitsChangesNothing(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, 0} {
		if s == 0 {
			testkit.Slow(t) // the ten seconds that a hook has
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var answer bytes.Buffer
		cmd := started(t, r, &answer, "hook", "claude")
		_ = r.Close()
		if _, err := w.Write(opened); err != nil {
			t.Fatal(err)
		}
		if s != 0 {
			interrupt(t, cmd, s)
		}
		wantExit(t, cmd, 0)
		if answer.Len() > 0 {
			t.Errorf("the answer is %q", answer.String())
		}
		_ = w.Close()
	}
}

func TestSignalEndsACommandThatWaitsForAFIFO(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"view", "inspect", "check"} {
		cmd := started(t, nil, nil, name, fifo)
		w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the program has opened it
		if err != nil {
			t.Fatal(err)
		}
		interrupt(t, cmd, syscall.SIGTERM)
		wantExit(t, cmd, 143)
		_ = w.Close()
	}
}

// manyMessages is a conversation that takes seconds to parse and to count.
func manyMessages() []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range 300_000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"%s","content":"message %d"}`, []string{"user", "assistant"}[i%2], i)
	}
	b.WriteByte(']')
	return b.Bytes()
}

func TestSignalEndsParsingAndCounting(t *testing.T) {
	text := manyMessages()
	for _, name := range []string{"inspect", "run"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := started(t, r, nil, name, "-")
		_ = r.Close()
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		interrupt(t, cmd, syscall.SIGINT)
		wantExit(t, cmd, 130)
	}
}

func TestSecondSignalEndsACommandThatCannotWrite(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	file := filepath.Join(t.TempDir(), "many.json")
	if err := os.WriteFile(file, manyMessages(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := started(t, nil, w, "view", file)
	_ = w.Close()
	if _, err := r.Read(make([]byte, 1)); err != nil { // it writes, and the pipe is full soon
		t.Fatal(err)
	}
	interrupt(t, cmd, syscall.SIGINT)
	_ = cmd.Process.Signal(syscall.SIGINT) // the first may have ended it
	wantExit(t, cmd, 130)
}

func TestInputLimit(t *testing.T) {
	testkit.Process(t)
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"view", "run", "inspect", "check", "undo", "recall"} {
		args := []string{name, "/dev/zero", "--max-input", "1Mi"}
		if name == "recall" {
			args = append(args, "--hidden")
		}
		cmd := exec.CommandContext(t.Context(), "condense", args...)
		cmd.Dir = t.TempDir()
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != cli.ExitFailed || !strings.Contains(string(out), "/dev/zero: larger than 1 MiB; if it is a conversation, raise the limit with --max-input") {
			t.Errorf("%s: %v: %s", name, cmd.ProcessState, out)
		}
	}
}
