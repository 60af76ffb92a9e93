//go:build linux

package supervise_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
)

// startReader starts a process that reads n bytes at a time from a socket and acknowledges
// them.
func startReader(address string, n int) (stop func()) {
	exe, err := os.Executable()
	must(err)
	cmd := exec.Command(exe, "plugin", "reads", address, strconv.Itoa(n))
	must(cmd.Start())
	return func() {
		must(cmd.Process.Kill())
		_ = cmd.Wait()
	}
}

// reads is the process of startReader.
func reads() {
	n, err := strconv.Atoi(os.Args[4])
	check(err)
	conn, err := net.Dial("unix", os.Args[3])
	check(err)
	for data := make([]byte, n); ; {
		_, err := io.ReadFull(conn, data)
		check(err)
		_, err = conn.Write(data[:1])
		check(err)
	}
}
