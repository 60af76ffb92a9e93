//go:build linux

package supervise_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// A bench runs a plugin for a test and checks that nothing is left of it.
type bench struct {
	spec supervise.Spec
	opts supervise.Options
	log  *testkit.Log
	dir  string
}

// digest is the digest of this binary.
var digest = sync.OnceValues(func() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	return supervise.Digest(supervise.Spec{Path: exe})
})

// noLeaks fails t if, when it ends with all its subtests, there are goroutines, open files
// or processes that were not there before.
func noLeaks(t *testing.T) {
	t.Helper()
	testkit.Process(t)
	goroutines, files := goleak.IgnoreCurrent(), openFiles(t)
	t.Cleanup(func() {
		goleak.VerifyNone(t, goroutines)
		if now := openFiles(t); len(now) > len(files) {
			t.Errorf("open files before: %v, after: %v", files, now)
		}
		if left := zombies(); len(left) > 0 {
			t.Errorf("nobody waited for %v", left)
		}
	})
}

// together runs a subtest for every case, several at a time, because they mostly wait for
// other processes. Unlike parallel subtests they have ended when it returns, and more can
// run than there are processors.
func together[C any](t *testing.T, cases []C, name func(C) string, run func(*testing.T, C)) {
	t.Helper()
	noLeaks(t)
	free := make(chan struct{}, 6)
	var all sync.WaitGroup
	for _, c := range cases {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			t.Run(name(c), func(t *testing.T) { run(t, c) })
		})
	}
	all.Wait()
}

// newBench returns a bench for a program of this binary. When the test ends there must be
// no process and no file left, and after a top-level test no leak at all.
func newBench(t *testing.T, program string, args ...string) *bench {
	t.Helper()
	testkit.Process(t)
	if !strings.Contains(t.Name(), "/") {
		noLeaks(t)
	}
	dir, err := os.MkdirTemp("", "t") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := digest()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{log: &testkit.Log{}, dir: dir}
	// The last argument identifies the processes of this test.
	args = append([]string{"plugin", program}, append(args, "in="+dir)...)
	b.spec = supervise.Spec{Name: "acme", Path: exe, SHA256: sum, Args: args, Plaintext: true}
	if raceEnabled {
		b.spec.Limits.Memory = -1
		b.spec.Env = []string{"GORACE=atexit_sleep_ms=0"} // otherwise every process ends a second later
	}
	b.opts = supervise.Options{Logger: slog.New(slog.NewTextHandler(b.log, nil)), TempDir: dir}
	t.Cleanup(func() {
		if t.Failed() {
			log := b.log.String()
			t.Logf("end of the log:\n%s", log[max(0, len(log)-4000):])
		}
		if left := processes(t, "in="+dir); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
		private, _ := filepath.Glob(filepath.Join(dir, "*cnd-*"))
		if len(private) > 0 {
			t.Errorf("files are left: %v", private)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return b
}

// install makes the plugin a pinned script.
func (b *bench) install(script string) {
	b.spec.Path = filepath.Join(b.dir, "script")
	must(os.WriteFile(b.spec.Path, []byte(script), 0o700))
	var err error
	b.spec.SHA256, err = supervise.Digest(b.spec)
	must(err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// open opens the plugin and closes it when the test ends.
func (b *bench) open(t *testing.T) *supervise.Process {
	t.Helper()
	p, err := supervise.Open(b.spec, &b.opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// chain returns the plugin followed by truncation. The grace is long, so that what is
// reported depends on the plugin and not on how busy the machine is.
func chain(t *testing.T, p core.CondensationProvider, timeout time.Duration) *core.Chain {
	t.Helper()
	c, err := core.NewChain([]core.NamedProvider{
		{Name: "acme", Provider: p, Timeout: timeout},
		{Name: "truncation", Provider: slidingwindow.New(slidingwindow.DefaultConfig())},
	}, &core.ChainOptions{Grace: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func request() *core.Request { return coretest.HalfRequest(coretest.Session()) }

// processes returns those that have arg as an argument.
func processes(t *testing.T, arg string) []string {
	t.Helper()
	var found []string
	cmdlines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range cmdlines {
		cmdline, _ := os.ReadFile(path)
		if slices.Contains(strings.Split(string(cmdline), "\x00"), arg) {
			found = append(found, filepath.Base(filepath.Dir(path))+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

// zombies returns the processes that have ended and were not reaped.
func zombies() []string {
	var found []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		s, _ := os.ReadFile(stat)
		if _, rest, ok := strings.Cut(string(s), ") Z "); ok && strings.HasPrefix(rest, strconv.Itoa(os.Getpid())+" ") {
			found = append(found, string(s))
		}
	}
	return found
}

func openFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode:") {
			out = append(out, fmt.Sprintf("%s=%s", e.Name(), target))
		}
	}
	return out
}
