package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare sees to it that the process leads its own group, so that a Ctrl-C at the
// terminal does not reach it and killing reaches its children, and that it dies with us.
// If shared is set, it gets no namespaces of its own.
func (system) prepare(cmd *exec.Cmd, shared bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !shared && !together.Load() {
		apart(cmd)
	}
}

// started sets the limits of a process that has just been started. There is no way to do
// it earlier without a program in between.
func (system) started(p *os.Process, l *Limits) error {
	limits := []struct {
		name     string
		resource int
		value    int64
	}{
		// Not the address space: Go maps 2 GB of it without using them, Node more.
		{"memory", unix.RLIMIT_DATA, l.Memory},
		{"files", unix.RLIMIT_NOFILE, int64(l.Files)},
		{"core", unix.RLIMIT_CORE, 0},
	}
	for _, r := range limits {
		if r.value < 0 {
			continue
		}
		var old unix.Rlimit
		if err := unix.Prlimit(p.Pid, r.resource, nil, &old); err != nil {
			return ended(fmt.Errorf("%s: %w", r.name, err))
		}
		lim := min(uint64(r.value), old.Max)
		if err := unix.Prlimit(p.Pid, r.resource, &unix.Rlimit{Cur: lim, Max: lim}, nil); err != nil {
			return ended(fmt.Errorf("%s: %w", r.name, err))
		}
	}
	// If memory runs out for everyone, a plugin goes before its host. Best effort.
	_ = os.WriteFile("/proc/"+strconv.Itoa(p.Pid)+"/oom_score_adj", []byte("500"), 0)
	return nil
}

// ended drops the error of a process that has ended by itself meanwhile.
func ended(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// await returns when p has ended, and leaves it to be waited for: until then nobody else
// gets its pid. It returns false at once if the system cannot do that.
func (system) await(p *os.Process) bool {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
