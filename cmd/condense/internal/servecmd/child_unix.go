//go:build unix

package servecmd

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
)

// runChild runs a program with the standard streams of this process and returns its exit code as
// a shell does: 128 plus the number of the signal that ended it.
//
// The program stays in the process group of this process, so that a terminal treats both as one job: the terminal's
// signals, on Ctrl-C, on Ctrl-Z or when the size of the window changes, reach the program directly. Signals that were
// sent to this process alone are passed on. If the program stops, so does this process, so that the shell gets the
// terminal back.
func runChild(program string, argv, env []string, a *cli.App) (int, error) {
	files, err := streams(a)
	if err != nil {
		return 0, err
	}
	// The handlers of main end this process; here the program decides. SIGTSTP, too: if this process stopped first,
	// the shell would prompt while the program can still read input for the shell.
	signal.Reset(unix.SIGINT, unix.SIGTERM)
	received := make(chan os.Signal, 16)
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGTSTP, unix.SIGUSR1, unix.SIGUSR2} {
		if !signal.Ignored(s) { // under nohup the program must ignore it too
			signal.Notify(received, s)
		}
	}
	defer signal.Stop(received)
	attr, undo := endsWithParent()
	defer undo()
	child, err := os.StartProcess(program, argv, &os.ProcAttr{Env: env, Files: files, Sys: attr})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", program, cli.Cause(err))
	}
	ended := make(chan struct{})
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		var late <-chan time.Time
		for {
			select {
			case s := <-received:
				if !fromTerminal(s) {
					_ = child.Signal(s) // it may have ended
				} else if s == unix.SIGQUIT { // the program has it already, if the terminal has sent it
					late = time.After(afterQuit)
				}
			case <-late:
				_ = child.Signal(unix.SIGQUIT)
			case <-ended:
				return
			}
		}
	}()
	code, err := wait(child.Pid)
	close(ended)
	<-forwarded
	return code, errors.Join(err, child.Release())
}

// ownedByUser reports whether a file belongs to the user of this process.
func ownedByUser(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}

// afterQuit is how long the program may take to end by the terminal's SIGQUIT, before this process passes its own on: it
// may have been sent to this process alone, which cannot be told. A program that handles SIGQUIT may get it twice.
const afterQuit = time.Second

// settle is how long a signal for the whole group may take to reach all of it.
const settle = 10 * time.Millisecond

// wait waits for the end of a child, and stops this process whenever the child stops.
func wait(pid int) (int, error) {
	status, _, err := event(pid, 0)
	for err == nil {
		switch {
		case status.Exited():
			return status.ExitStatus(), nil
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		case status.Stopped():
			var more bool
			if status, more, err = stopWith(pid); more || err != nil {
				continue
			}
		}
		status, _, err = event(pid, 0)
	}
	return 0, fmt.Errorf("wait: %w", err)
}

// event waits for the end, the stop or the continuation of a child; with WNOHANG it reports whether
// there was one.
func event(pid, flags int) (status unix.WaitStatus, ok bool, err error) {
	for {
		n, err := unix.Wait4(pid, &status, flags|unix.WUNTRACED|unix.WCONTINUED, nil)
		if !errors.Is(err, unix.EINTR) {
			return status, n == pid, err
		}
	}
}

// stopWith stops this process because the child has stopped, and returns when it has been
// continued: with the child's next event, if there is one by then.
func stopWith(pid int) (status unix.WaitStatus, ok bool, err error) {
	// The shell may be continuing the whole group just now, one process after the other.
	time.Sleep(settle)
	if status, ok, err = event(pid, unix.WNOHANG); ok || err != nil {
		return status, ok, err
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	// Not SIGTSTP, which is ignored in a group that no shell controls.
	if err := unix.Kill(unix.Getpid(), unix.SIGSTOP); err != nil {
		return status, false, err
	}
	<-continued // another thread may be the first to stop
	time.Sleep(settle)
	if status, ok, err = event(pid, unix.WNOHANG); ok || err != nil {
		return status, ok, err
	}
	// Only this process has been continued.
	if err := unix.Kill(pid, unix.SIGCONT); err != nil && !errors.Is(err, unix.ESRCH) {
		return status, false, err
	}
	return status, false, nil
}

// fromTerminal reports whether the terminal has sent a signal, and so to the whole foreground group.
func fromTerminal(s os.Signal) bool {
	if s != unix.SIGINT && s != unix.SIGQUIT && s != unix.SIGTSTP {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false // there is no terminal
	}
	defer tty.Close() //nolint:errcheck // only read
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
