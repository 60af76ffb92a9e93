//go:build linux

package supervise_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit"
)

// TestEnvironment: a plugin reports what it sees.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "secret", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": "/home/secret", "LD_PRELOAD": "",
		"LC_TIME": "C", "TZ": "UTC", "PASSED": "passed", "ACME_ONE": "1", "ACME_TWO": "2", "SET": "secret",
	} {
		t.Setenv(name, value)
	}
	b := newBench(t, "tells-environment")
	b.spec.Env = []string{"GORACE=", "PASSED", "ACME_*", "SET=new", "EMPTY=", "ABSENT"}
	b.spec.Limits.Memory = 1 << 30
	if raceEnabled {
		b.spec.Limits.Memory = 1 << 40
	}
	res, err := b.open(t).Condense(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	text := string(res.Messages[len(res.Messages)-1].Parts[0].(core.Text))
	if strings.Contains(text, "secret") {
		t.Errorf("it sees a secret:\n%s", text)
	}
	var names []string
	for line := range strings.SplitSeq(text, "\n") {
		if name, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(name, "PLUGIN_") && !strings.HasPrefix(name, "CONDENSE_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := []string{"ACME_ONE", "ACME_TWO", "EMPTY", "GOMEMLIMIT", "LC_TIME", "PASSED", "PATH", "SET", "TEMP", "TMP", "TMPDIR", "TZ"}
	names = slices.DeleteFunc(names, func(n string) bool {
		return n == "GORACE" || n == "LANG" || strings.HasPrefix(n, "LC_") && n != "LC_TIME" // as the machine has them
	})
	if !slices.Equal(names, want) {
		t.Errorf("it sees %v; want %v", names, want)
	}
	if !strings.Contains(text, "SET=new\n") {
		t.Error("SET is not what the configuration sets it to")
	}
}

// TestPrivateFolder inspects the folder of a running plugin.
func TestPrivateFolder(t *testing.T) {
	b := newBench(t, "window")
	p := b.open(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	sockets := 0
	err := filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == b.dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		if info.Mode().Type() == fs.ModeSocket {
			sockets++
		}
		return nil
	})
	if err != nil || sockets != 1 {
		t.Errorf("got %d sockets, %v; want 1", sockets, err)
	}
}

// TestStranger: another process of the same user connects to a plugin with TLS.
func TestStranger(t *testing.T) {
	b := newBench(t, "window")
	b.spec.Plaintext = false
	p := b.open(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	sockets, _ := filepath.Glob(filepath.Join(b.dir, "cnd-*/*/plugin*"))
	sockets = slices.DeleteFunc(sockets, func(s string) bool { return strings.Contains(s, "plugin-dir") })
	if len(sockets) != 1 {
		t.Fatalf("got the sockets %v; want one", sockets)
	}
	conn, err := grpc.NewClient("unix:"+sockets[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { must(conn.Close()) }()
	_, err = grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v; want no connection", err)
	}
	if err := condenseOnce(t, p); err != nil {
		t.Errorf("then: %v", err)
	}
}

func TestLimits(t *testing.T) {
	b := newBench(t, "window")
	b.spec.Limits.Files = 123
	if !raceEnabled {
		b.spec.Limits.Memory = 777 << 20
	}
	p := b.open(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	proc := fmt.Sprintf("/proc/%d/", p.Seen().PID)
	limits, err := os.ReadFile(proc + "limits")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Max open files 123 123 files", "Max core file size 0 0 bytes"}
	if !raceEnabled {
		want = append(want, "Max data size 814743552 814743552 bytes")
	}
	for _, w := range want {
		if !slices.ContainsFunc(strings.Split(string(limits), "\n"), func(l string) bool { return strings.Join(strings.Fields(l), " ") == w }) {
			t.Errorf("no line %q in\n%s", w, limits)
		}
	}
	if score, err := os.ReadFile(proc + "oom_score_adj"); err != nil || string(score) != "500\n" {
		t.Errorf("got %q, %v; want that the plugin goes before its host", score, err)
	}
	stat, err := os.ReadFile(proc + "stat")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if group := strings.Fields(rest)[2]; group != strconv.Itoa(p.Seen().PID) {
		t.Errorf("it is in the group %s, not in its own", group)
	}
}

// TestHashedBytesRun replaces the program after it was approved, and tries to change what
// runs.
func TestHashedBytesRun(t *testing.T) {
	b := newBench(t, "exits-once")
	program, err := os.ReadFile(b.spec.Path)
	if err != nil {
		t.Fatal(err)
	}
	b.spec.Path = filepath.Join(b.dir, "program")
	must(os.WriteFile(b.spec.Path, program, 0o700))
	p := b.open(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	exe := fmt.Sprintf("/proc/%d/exe", p.Seen().PID)
	if got, err := os.ReadFile(exe); err != nil || !bytes.Equal(got, program) {
		t.Errorf("what runs is not what was approved (%v)", err)
	}
	if f, err := os.OpenFile(exe, os.O_WRONLY, 0); err == nil {
		if _, err := f.Write([]byte("evil")); !errors.Is(err, syscall.EPERM) {
			t.Errorf("what runs can be written: %v", err)
		}
		_ = f.Close()
	}
	must(os.WriteFile(b.spec.Path+".new", []byte("#!/bin/sh\necho evil\n"), 0o700))
	must(os.Rename(b.spec.Path+".new", b.spec.Path))
	wantError(t, condenseOnce(t, p), nil, "crashed (exit status 7)")
	if err := condenseOnce(t, p); err != nil { // the next process is still the approved one
		t.Error(err)
	}
	wantState(t, p, state{ready, 2, 1})

	// A new host detects it.
	again := b.open(t)
	wantError(t, condenseOnce(t, again), nil, "is not the plugin that was pinned")
}

// script is a plugin that needs a shell to start.
func (b *bench) script(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", b.spec.Path)
}

func TestScript(t *testing.T) {
	b := newBench(t, "window")
	b.install(b.script(t))
	if err := condenseOnce(t, b.open(t)); err != nil {
		t.Error(err)
	}
}

// TestUnpinned: an author's latest build runs.
func TestUnpinned(t *testing.T) {
	b := newBench(t, "window")
	script := b.script(t)
	b.install(script)
	b.spec.SHA256, b.spec.Unpinned = "", true
	p := b.open(t)
	if err := condenseOnce(t, p); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.log.String(), `level=WARN msg="plugin is not pinned: any program at its path runs"`) {
		t.Error("nothing in the log warns")
	}
	b.install("#!/bin/sh\necho broken >&2\n")
	wantError(t, condenseOnce(t, p), nil, "it ended before its handshake (exit status 0); it wrote: broken")
	b.install(script + "# mended\n")
	if err := condenseOnce(t, p); err != nil { // at once: what failed was another program
		t.Error(err)
	}
	testkit.Eventually(t, "one process", func() bool { return len(processes(t, "in="+b.dir)) == 1 })
}

// TestTree pins a plugin of several files.
func TestTree(t *testing.T) {
	b := newBench(t, "window")
	b.spec.Tree = filepath.Join(b.dir, "tree")
	write := func(name, text string, mode fs.FileMode) {
		path := filepath.Join(b.spec.Tree, name)
		must(os.MkdirAll(filepath.Dir(path), 0o700))
		must(os.WriteFile(path, []byte(text), mode))
	}
	write("lib/start.sh", fmt.Sprintf("exec '%s' \"$@\"\n", b.spec.Path), 0o600)
	write("lib.sh", "", 0o600)
	write("run", "#!/bin/sh\n. \"$(dirname \"$0\")/lib/start.sh\"\n", 0o700)
	must(os.Symlink("/etc/passwd", filepath.Join(b.spec.Tree, "link")))
	b.spec.Path = filepath.Join(b.spec.Tree, "run")
	sum, err := supervise.Digest(b.spec)
	if err != nil {
		t.Fatal(err)
	}
	// The recipe of the documentation.
	shell := exec.Command("sh", "-c", `find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum | sha256sum`)
	shell.Dir = b.spec.Tree
	if out, err := shell.Output(); err != nil || !strings.HasPrefix(string(out), sum+" ") {
		t.Errorf("got %s; sha256sum says %s, %v", sum, out, err)
	}
	b.spec.SHA256 = sum
	if err := condenseOnce(t, b.open(t)); err != nil {
		t.Error(err)
	}
	write("lib/start.sh", "echo evil\n", 0o600)
	wantError(t, condenseOnce(t, b.open(t)), nil, "tree is not the plugin that was pinned")
}

// TestSweep: the folder of a host that was killed is removed.
func TestSweep(t *testing.T) {
	b := newBench(t, "window")
	left := filepath.Join(b.dir, "cnd-1234")
	must(os.Mkdir(left, 0o700))
	must(os.WriteFile(filepath.Join(left, "lock"), nil, 0o600))
	must(os.Mkdir(filepath.Join(left, "1"), 0)) // a plugin has removed its permissions
	theirs := filepath.Join(b.dir, "cnd-of-somebody")
	must(os.Mkdir(theirs, 0o755))
	defer func() { must(os.Remove(theirs)) }()

	p, q := b.open(t), b.open(t)
	for _, p := range []*supervise.Process{p, q} { // the second does not remove what the first uses
		if err := condenseOnce(t, p); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a host left behind is still there (%v)", err)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("a folder that is not ours: %v", err)
	}
	if err := condenseOnce(t, p); err != nil {
		t.Error(err)
	}
}

// startHost starts a host, and returns when its plugin is called.
func startHost(t *testing.T, b *bench, host *exec.Cmd) {
	t.Helper()
	host.Stderr = b.log
	out := testkit.Start(t, host)
	if line, err := io.ReadAll(io.LimitReader(out, 6)); err != nil || string(line) != "ready\n" {
		t.Errorf("the host says %q, %v", line, err)
	}
}

// nextHost removes the files that a killed host left, as every new host does.
func nextHost(t *testing.T, b *bench) {
	t.Helper()
	next := newBench(t, "window")
	next.opts.TempDir = b.dir
	if err := next.open(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHostKilled kills a host in the middle of a call.
func TestHostKilled(t *testing.T) {
	programs := []string{"hangs", "hangs-deaf", "ignores-stdin"}
	together(t, programs, strings.Clone, func(t *testing.T, program string) {
		b := newBench(t, program)
		host := exec.CommandContext(t.Context(), b.spec.Path, "plugin", "host", program, b.spec.SHA256, b.dir)
		startHost(t, b, host)
		if n := len(processes(t, "in="+b.dir)); n != 1 {
			t.Errorf("got %d plugins; want 1", n)
		}
		must(host.Process.Kill())
		killed := time.Now()
		_ = host.Wait()
		testkit.Eventually(t, "the plugin is gone", func() bool { return len(processes(t, "in="+b.dir)) == 0 })
		t.Logf("the plugin was gone after %s", time.Since(killed))
		nextHost(t, b)
	})
}

// TestDetachedChildrenDieWithTheHost kills a host with a signal that it cannot catch. What its
// plugin left in sessions of its own, with an empty environment, ends too.
func TestDetachedChildrenDieWithTheHost(t *testing.T) {
	needNamespaces(t)
	b := newBench(t, "leaves-daemons")
	host := exec.CommandContext(t.Context(), b.spec.Path, "plugin", "host", "leaves-daemons", b.spec.SHA256, b.dir)
	startHost(t, b, host)
	testkit.Eventually(t, "both daemons run", func() bool { return len(processes(t, "sleeps")) >= 2 && len(processes(t, "in="+b.dir)) == 3 })
	must(host.Process.Kill())
	killed := time.Now()
	_ = host.Wait()
	testkit.Eventually(t, "everything is gone", func() bool { return len(processes(t, "in="+b.dir)) == 0 })
	t.Logf("gone after %s", time.Since(killed))
	nextHost(t, b)
}

// TestPluginCannotReadTheHostsEnvironment: a plugin runs as the same user, and sees none of the
// keys that its host was started with.
func TestPluginCannotReadTheHostsEnvironment(t *testing.T) {
	needNamespaces(t)
	b := newBench(t, "sees-host")
	host := exec.CommandContext(t.Context(), b.spec.Path, "plugin", "asks", "sees-host", b.spec.SHA256, b.dir)
	host.Env = append(os.Environ(), "SECRET_OF_THE_HOST=1234")
	host.Stderr = b.log
	out, err := host.Output()
	if want := "plugin acme: panic: seen: ."; err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "1234") {
		t.Errorf("the call says %q, %v; want %q", out, err, want)
	}
}

// TestPluginsRunWhereNamespacesAreRefused: in many containers a process may have no namespaces
// of its own. There a plugin runs without them, and still ends with its host.
func TestPluginsRunWhereNamespacesAreRefused(t *testing.T) {
	needNamespaces(t) // the test creates an environment that refuses them
	b := newBench(t, "hangs")
	host := exec.CommandContext(t.Context(), "/bin/sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`,
		"sh", b.spec.Path, "plugin", "host", "hangs", b.spec.SHA256, b.dir)
	own := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	host.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: own, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
	startHost(t, b, host)
	plugins := processes(t, "in="+b.dir)
	if len(plugins) != 1 {
		t.Fatalf("got %d plugins; want 1", len(plugins))
	}
	pid, _, _ := strings.Cut(plugins[0], " ")
	its, err := os.Readlink("/proc/" + pid + "/ns/pid")
	ours, err2 := os.Readlink("/proc/self/ns/pid")
	if err != nil || err2 != nil || its != ours {
		t.Errorf("the plugin is in %s (%v), not in %s (%v): namespaces were not refused", its, err, ours, err2)
	}
	must(host.Process.Kill())
	_ = host.Wait()
	testkit.Eventually(t, "the plugin is gone", func() bool { return len(processes(t, "in="+b.dir)) == 0 })
	nextHost(t, b)
}

// needNamespaces skips a test where this system refuses namespaces, as many containers do.
func needNamespaces(t *testing.T) {
	t.Helper()
	testkit.Process(t)
	cmd := exec.CommandContext(t.Context(), "/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID}
	if err := cmd.Run(); err != nil {
		t.Skipf("this system gives a plugin no namespaces of its own: %v", err)
	}
}
