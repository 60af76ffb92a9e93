// Package pgtest starts a PostgreSQL of its own for tests: the programs that Debian installs, in a temporary folder,
// reached by a socket there. It is for tests only.
package pgtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// A Server is a running PostgreSQL. Its methods are safe for concurrent use.
type Server struct {
	dir   string
	cmd   *exec.Cmd
	log   testkit.Log
	ended chan struct{}
	names atomic.Int64
}

// Start starts a server, which ends with the test. Where PostgreSQL is not installed the test is skipped, or fails if
// CONDENSE_REQUIRE_PEERS is set.
func Start(tb testing.TB) *Server {
	tb.Helper()
	testkit.Process(tb)
	bin := programs(tb)
	// Not tb.TempDir: the path of a socket has at most 107 bytes, and the server's user must get there.
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{dir: dir, ended: make(chan struct{})}
	_ = s.run(tb, filepath.Join(bin, "initdb"), "--pgdata="+filepath.Join(dir, "data"), "--auth=trust", "--username=condense", "--encoding=UTF8", "--no-locale", "--no-sync")
	s.cmd = s.command(filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-k", dir, "-c", "listen_addresses=",
		"-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "fsync=off")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait()
	}()
	tb.Cleanup(func() {
		s.Resume()
		_ = s.cmd.Process.Signal(syscall.SIGINT) // "fast": ends sessions and stops
		<-s.ended
	})
	testkit.Eventually(tb, "PostgreSQL is ready", func() bool {
		select {
		case <-s.ended:
			tb.Fatalf("PostgreSQL has ended:\n%s", s.log.String())
		default:
		}
		ready := s.command(filepath.Join(bin, "pg_isready"), "--quiet", "--host="+dir)
		return ready.Run() == nil
	})
	return s
}

// Installed reports whether [Start] would not skip the test.
func Installed() bool { return folder() != "" || os.Getenv("CONDENSE_REQUIRE_PEERS") != "" }

// programs is the folder of PostgreSQL's programs.
func programs(tb testing.TB) string {
	tb.Helper()
	const advice = "PostgreSQL is not installed: apt-get install postgresql"
	found := folder()
	switch {
	case found != "":
	case os.Getenv("CONDENSE_REQUIRE_PEERS") != "":
		tb.Fatal(advice)
	default:
		tb.Skip(advice)
	}
	return found
}

// folder is the folder of the newest installed version; empty if there is none.
func folder() string {
	if runtime.GOOS == "windows" { // Pause needs signals
		return ""
	}
	found, version := "", -1
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has them
	for _, p := range all {
		if v, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(p)))); err == nil && v > version {
			found, version = filepath.Dir(p), v
		}
	}
	if p, err := exec.LookPath("initdb"); found == "" && err == nil {
		found = filepath.Dir(p)
	}
	return found
}

// Dump is the output of pg_dump for all tables: SQL, with binary data in hexadecimal.
func (s *Server) Dump(tb testing.TB) []byte {
	tb.Helper()
	return s.run(tb, filepath.Join(programs(tb), "pg_dump"), "--host="+s.dir, "--username=condense", "--inserts", "postgres")
}

// run returns a program's standard output.
func (s *Server) run(tb testing.TB, program string, args ...string) []byte {
	tb.Helper()
	if os.Geteuid() == 0 { // the server refuses to run as root
		if err := os.Chown(s.dir, unprivileged, unprivileged); err != nil {
			tb.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	cmd := s.command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		tb.Fatalf("%s: %v\n%s%s", program, err, out.String(), errs.String())
	}
	return out.Bytes()
}

// unprivileged is the user that owns no files, on Debian and elsewhere.
const unprivileged = 65534

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // an installed program; Cleanup ends it
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "TZ=UTC"}
	isolate(cmd)
	return cmd
}

// URL is the address of tables of their own: each call returns another schema.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://condense@/postgres?host=%s&search_path=s%d", url.QueryEscape(s.dir), s.names.Add(1))
}

// Pause stops all processes of the server, which answers nothing from then on, and keeps its connections. Resume lets
// them go on.
func (s *Server) Pause() { s.signal(pause) }

// Resume ends a [Server.Pause].
func (s *Server) Resume() { s.signal(resume) }

// signal sends a signal to the server and its children. Each of these is a session of its own, so there is no group
// for all.
func (s *Server) signal(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig)
	for _, pid := range children(s.cmd.Process.Pid) {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Signal(sig)
		}
	}
}

// children returns the processes whose parent is a process.
func children(parent int) []int {
	var found []int
	all, _ := fs.Glob(os.DirFS("/proc"), "[0-9]*/stat")
	for _, p := range all {
		text, err := os.ReadFile(filepath.Join("/proc", p))
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Dir(p))
			found = append(found, pid)
		}
	}
	return found
}
