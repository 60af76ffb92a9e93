package supervise

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// together is set once the system has refused a plugin namespaces of its own.
var together atomic.Bool

// apart gives the process a user namespace and a process namespace of its own. In the second
// it is the first process, so the kernel ends with it all that it started, however detached;
// and it ends with us. Because of the first it may not look into processes outside, such as
// into our memory and environment, although it runs as the same user. Files it reads and
// writes as before.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID
	cmd.SysProcAttr.UidMappings = sameIDs("/proc/self/uid_map", os.Geteuid())
	cmd.SysProcAttr.GidMappings = sameIDs("/proc/self/gid_map", os.Getegid())
}

// sameIDs maps every ID that we may map to itself: all if we are root, else our own.
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

// refused reports whether a process may have failed to start because the system allows it no
// namespaces of its own, as in many containers.
func (system) refused(cmd *exec.Cmd, err error) bool {
	if cmd.SysProcAttr.Cloneflags == 0 {
		return false
	}
	for _, refusal := range []error{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSPC, unix.ENOSYS, unix.EUSERS} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// shares notes that a process started only without namespaces of its own. From then on plugins
// have none. What they leave running is found by its environment, see killStrays. And our
// memory and environment are closed to other processes of this user, which closes us to
// debuggers and core dumps as well.
func (system) shares() {
	together.Store(true)
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // where that is refused too, nothing more can be done
}
