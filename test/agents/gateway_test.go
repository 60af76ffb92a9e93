package agents_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// folder has the program, built once for all tests.
var folder string

var program = sync.OnceValues(func() (string, error) {
	return testkit.Program(filepath.Join("..", ".."), filepath.Join(folder, "condense"))
})

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "condense-agents-*"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// condense returns the program, and writes the user's configuration: the window is that of the vendor.
func (d *desk) condense(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(d.home, ".config", "condense", "condense.yaml"), fmt.Sprintf("profiles: {small: {window: %d}}\n%s", window, d.more))
	return path
}

// upstreams are the flags that name the vendor.
func (d *desk) upstreams() []string {
	return []string{"--upstream", "anthropic=" + d.url, "--upstream", "openai=" + d.url}
}

// A gateway is condense serve as a process.
type gateway struct {
	cmd *exec.Cmd
	url string
	own string // the address of its own pages
	log *testkit.Log
}

var listens = regexp.MustCompile(`condense listens on (http://\S+) \(what it does: (http://\S+)\)`)

// serve starts condense serve at an address.
func (d *desk) serve(t *testing.T, address string, flags ...string) *gateway {
	t.Helper()
	g := &gateway{log: &testkit.Log{}}
	args := append([]string{"serve", "--listen", address, "--store", filepath.Join(d.home, "serve.db")}, d.upstreams()...)
	g.cmd = d.start(t, nil, g.log, d.condense(t), append(args, flags...)...)
	t.Cleanup(func() {
		g.kill()
		if t.Failed() || testing.Verbose() {
			t.Logf("condense serve:\n%s", tail(g.log.String()))
		}
	})
	testkit.Eventually(t, "condense serve listens", func() bool {
		m := listens.FindStringSubmatch(g.log.String())
		if m != nil {
			g.url, g.own = m[1], m[2]
		}
		return m != nil
	})
	return g
}

// kill ends the gateway without a chance to say or save anything.
func (g *gateway) kill() {
	_ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
	_ = g.cmd.Wait()
}

// epochs is how often it condensed since it was started.
func (g *gateway) epochs(t *testing.T) int {
	t.Helper()
	n, _ := g.status(t)["epoch_count"].(float64)
	return int(n)
}

// status is what the gateway counts.
func (g *gateway) status(t *testing.T) map[string]any {
	t.Helper()
	resp, err := http.Get(g.own + "status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var status map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	return status
}

// condensed fails the test unless the run went through to its end below the window, no request was refused, epochs were rare, the
// prefix broke at most once for each, and the vendor's cache served nearly all that it could.
func (d *desk) condensed(t *testing.T, got result, epochs int) {
	t.Helper()
	if n := len(d.vendor.Breaks()); epochs == 0 || n > epochs {
		t.Errorf("%d epochs, and the prefix broke %d times: %+v", epochs, n, d.vendor.Breaks())
	}
	d.accept(t)
	if turns := len(d.vendor.Turns()); epochs*7 > turns {
		t.Errorf("%d epochs in %d turns: they should be rare", epochs, turns)
	}
	for _, r := range d.over() {
		t.Errorf("request %d was too long: %s", r.N, r.Error)
	}
	if d.steps() <= calls || got.code != 0 {
		t.Errorf("stopped at step %d with exit code %d\n%s\n%s", d.steps(), got.code, tail(got.out), d.list())
	}
	if n := d.count("summary") + d.count("compaction"); n > 0 {
		t.Errorf("the agent condensed by itself %d times\n%s", n, d.list())
	}
	read, ideal := d.vendor.Cached()
	t.Logf("%d epochs, %s", epochs, d.bill())
	if read*10 < ideal*9 {
		t.Errorf("the cache served %d tokens, an ideal one %d: less than 90 %%\n%s", read, ideal, d.list())
	}
}

// bill sums up what the vendor saw. The cost is in tokens of uncached input: written ones count 1.25, read ones 0.1.
func (d *desk) bill() string {
	var sent, write int
	for _, r := range d.vendor.Turns() {
		sent, write = sent+r.Usage.Prompt, write+r.Usage.CacheWrite
	}
	read, ideal := d.vendor.Cached()
	return fmt.Sprintf("%d requests, %d turns, %d breaks, %d tokens sent, %d written to the cache, %d of %d read from it (%.1f %%), cost %d",
		len(d.vendor.Records()), len(d.vendor.Turns()), len(d.vendor.Breaks()), sent, write, read, ideal, 100*float64(read)/float64(ideal),
		(125*write+10*read+100*(sent-read-write))/100)
}
