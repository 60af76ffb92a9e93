package supervise

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
)

// killStrays kills what a plugin left running in sessions of its own, out of reach of its
// group. They are known by the environment that they inherited, which names the private
// folder of this one process; one that has cleaned its environment gets away.
func (system) killStrays(dir string) {
	mark := []byte("\x00" + plugin.EnvUnixSocketDir + "=" + dir + "\x00")
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, e := range entries {
		pid, err := strconv.Atoi(filepath.Base(e))
		if err != nil || pid == os.Getpid() || !marked(e, mark) {
			continue
		}
		// Look again once the process cannot be exchanged for another of the same number.
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
