package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
)

// prepare makes the process the leader of its own group, so that a Ctrl-C at the terminal
// does not reach it and a kill reaches its children, and makes it end with the host. If
// shared is set, it gets no namespaces of its own.
func (system) prepare(cmd *exec.Cmd, shared bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !shared && !together.Load() {
		apart(cmd)
	}
}

// started sets the limits of a process that has just been started. Setting them earlier
// would take another program in between.
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
	// If the system runs out of memory, it kills a plugin before its host. Best effort.
	_ = os.WriteFile("/proc/"+strconv.Itoa(p.Pid)+"/oom_score_adj", []byte("500"), 0)
	return nil
}

// ended drops the error if the process has ended by itself in the meantime.
func ended(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// await returns when p has ended but does not reap it, so that its PID is not reused. It
// returns false at once if the system cannot do that.
func (system) await(p *os.Process) bool {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// together is set when the system has refused namespaces for a plugin.
var together atomic.Bool

// apart gives the process a user namespace and a process namespace of its own. In the process namespace it is the
// first process, so the kernel kills everything that it started together with it, even detached processes. In the
// user namespace it cannot inspect processes outside, such as the host's memory and environment, although it runs as
// the same user. Its access to files does not change.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID
	cmd.SysProcAttr.UidMappings = sameIDs("/proc/self/uid_map", os.Geteuid())
	cmd.SysProcAttr.GidMappings = sameIDs("/proc/self/gid_map", os.Getegid())
}

// sameIDs maps every ID that may be mapped to itself: all for root, else our own.
func sameIDs(file string, own int) []syscall.SysProcIDMap {
	var all []syscall.SysProcIDMap
	if text, err := os.ReadFile(file); err == nil && os.Geteuid() == 0 {
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) != 3 {
				continue
			}
			first, err := strconv.Atoi(fields[0])
			count, err2 := strconv.Atoi(fields[2])
			if err == nil && err2 == nil {
				all = append(all, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: count})
			}
		}
	}
	if len(all) == 0 {
		all = []syscall.SysProcIDMap{{ContainerID: own, HostID: own, Size: 1}}
	}
	return all
}

// refused reports whether a process may have failed to start because the system does not
// allow namespaces, as in many containers.
func (system) refused(cmd *exec.Cmd, err error) bool {
	refusals := []error{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSPC, unix.ENOSYS, unix.EUSERS}
	return cmd.SysProcAttr.Cloneflags != 0 && slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

// shares records that a process started only without namespaces. From then on plugins have none. Processes that they
// leave running are found by their environment, see killEscaped. The host's memory and environment become unreadable
// for other processes of this user, which also excludes debuggers and core dumps.
func (system) shares() {
	together.Store(true)
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // best effort
}

// sealed copies a program into memory that can no longer be written or resized, and returns
// it with its digest. The error wraps [errors.ErrUnsupported] if this system cannot, or may
// not, run programs from memory.
func sealed(src io.Reader) (*os.File, string, error) {
	unsupported := func(err error) (*os.File, string, error) {
		return nil, "", fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return unsupported(err)
	}
	const (
		name  = "condense-plugin"
		flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	)
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 there was no flag
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return unsupported(err)
	}
	mem := os.NewFile(uintptr(fd), name)
	defer mem.Close() //nolint:errcheck // it is opened again below
	sum, err := copyDigest(mem, src)
	if err != nil {
		return nil, "", err
	}
	if _, err := unix.FcntlInt(mem.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return unsupported(err)
	}
	// A file that is open for writing cannot be executed.
	read, err := os.Open(sealedPath(mem))
	if err != nil {
		return unsupported(err)
	}
	return read, sum, nil
}

// sealedPath returns the path by which a child executes mem. The child has our descriptors
// until it executes the program.
func sealedPath(mem *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", mem.Fd()) }

// killEscaped kills the processes of a plugin that left its process group. It recognizes them by the private folder
// of this process in their inherited environment. A process that has changed its environment survives.
func (system) killEscaped(dir string) {
	mark := []byte("\x00" + plugin.EnvUnixSocketDir + "=" + dir + "\x00")
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, e := range entries {
		pid, err := strconv.Atoi(filepath.Base(e))
		if err != nil || pid == os.Getpid() || !marked(e, mark) {
			continue
		}
		// Check again, now that another process cannot get the same PID.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if marked(e, mark) {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(fd)
	}
}

func marked(proc string, mark []byte) bool {
	env, err := os.ReadFile(filepath.Join(proc, "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, env...), mark)
}

// lockThread keeps the thread of this goroutine until unlock: the parent-death signal is
// sent when the thread that launched the process ends.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
