//go:build unix

package servecmd

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
)

// runChild runs a program with the standard streams of this process and returns its exit code as
// a shell does: 128 plus the number of the signal that ended it.
//
// The program stays in the process group of this process, so that a terminal treats both as one
// job: what the terminal sends, on Ctrl-C, on Ctrl-Z or when the size of the window changes, reaches
// the program without help. Signals that were sent to this process alone are passed on. If the
// program stops, so does this process, so that the shell gets the terminal back.
func runChild(program string, argv, env []string, a *cli.App) (int, error) {
	files, err := streams(a)
	if err != nil {
		return 0, err
	}
	// The handlers of main end this process; here the program decides.
	signal.Reset(unix.SIGINT, unix.SIGTERM)
	received := make(chan os.Signal, 16)
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2} {
		if !signal.Ignored(s) { // under nohup the program must ignore it too
			signal.Notify(received, s)
		}
	}
	defer signal.Stop(received)
	child, err := os.StartProcess(program, argv, &os.ProcAttr{Env: env, Files: files})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", program, cause(err))
	}
	ended := make(chan struct{})
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		for {
			select {
			case s := <-received:
				if fromTerminal(s) {
					continue // the program has it already
				}
				_ = child.Signal(s) // it may have ended
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

// ending is the exit code of a child that has ended.
func ending(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// settle is how long a signal for the whole group may take to reach all of it.
const settle = 10 * time.Millisecond

// wait waits for the end of a child, and stops this process whenever the child stops.
func wait(pid int) (int, error) {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait: %w", err)
		case status.Exited(), status.Signaled():
			return ending(status), nil
		case status.Stopped():
			// The shell may be continuing the group just now: do not stop again.
			time.Sleep(settle)
			if n, err := unix.Wait4(pid, &status, unix.WCONTINUED|unix.WNOHANG, nil); err == nil && n == pid {
				if status.Continued() {
					continue
				}
				return ending(status), nil
			}
			// Not SIGTSTP, which is ignored in a group that no shell controls.
			if err := unix.Kill(unix.Getpid(), unix.SIGSTOP); err != nil {
				return 0, fmt.Errorf("stop: %w", err)
			}
			// A shell continues the whole group; kill -CONT only this process.
			if err := unix.Kill(pid, unix.SIGCONT); err != nil && !errors.Is(err, unix.ESRCH) {
				return 0, fmt.Errorf("continue: %w", err)
			}
		}
	}
}

// fromTerminal reports whether the terminal has sent a signal, and so to the whole foreground group.
func fromTerminal(s os.Signal) bool {
	if s != unix.SIGINT && s != unix.SIGQUIT {
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
