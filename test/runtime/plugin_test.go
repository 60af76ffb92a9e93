package runtime_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/trust"
	"github.com/condensehq/condense/plugin-sdk/host"
)

// A plugged is a folder with a plugin in it, and a configuration that names it.
type plugged struct{ dir, program, file, store string }

// plug builds the plugin of the command's tests. When the test ends, nothing of it runs.
func plug(t *testing.T) *plugged {
	t.Helper()
	testkit.Process(t)
	dir := t.TempDir()
	p := &plugged{dir: dir, program: filepath.Join(dir, "ours"), file: filepath.Join(dir, "condense.yaml"), store: filepath.Join(dir, "condense", "trust")}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", p.program, "../../cmd/condense/testdata/plugin").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	goroutines := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, goroutines)
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, l := range lines {
			if text, _ := os.ReadFile(l); bytes.HasPrefix(text, []byte(p.program+"\x00")) {
				t.Errorf("a process is left: %s", filepath.Dir(l))
			}
		}
	})
	return p
}

func (p *plugged) pin(t *testing.T) {
	t.Helper()
	sum, err := plugins.Digest(config.Provider{Plugin: p.program})
	if err != nil {
		t.Fatal(err)
	}
	if err := trust.Open(p.store).SetPin(p.program, false, sum); err != nil {
		t.Fatal(err)
	}
}

// options returns options that trust the configuration.
func (p *plugged) options() config.Options {
	return config.Options{
		Path: p.file, Env: []string{"XDG_CONFIG_HOME=" + filepath.Dir(filepath.Dir(p.store))},
		Trust: trusted,
	}
}

// write replaces the configuration at once, as editors do: a host that watches it sees no
// half of it.
func (p *plugged) write(t *testing.T, text string) {
	t.Helper()
	replace(t, p.file, text, 0o600)
}

// configure loads a configuration whose chain is the plugin with these settings.
func (p *plugged) configure(t *testing.T, settings string) *config.Config {
	t.Helper()
	p.write(t, "profiles: {p: {window: 20000, chain: [ours]}}\nproviders:\n  ours: {plugin: ./ours, settings: "+settings+"}\n")
	c, err := config.Load(p.options())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func openConfig(t *testing.T, c *config.Config) *condense.Host {
	t.Helper()
	return start(t, &condense.Options{Config: c, Plugins: host.Plugins("")})
}

// attempts manages a long conversation and returns the outcome of each provider.
func attempts(t *testing.T, h *condense.Host) string {
	t.Helper()
	r, err := h.Manage(t.Context(), talk(400), condense.Turn{Trigger: core.TriggerManual})
	if err != nil {
		t.Fatal(err)
	}
	if r.Tokens.After > r.Budget.Limit {
		t.Errorf("%d tokens are left, the limit is %d", r.Tokens.After, r.Budget.Limit)
	}
	var out []string
	for _, a := range r.Attempts {
		out = append(out, fmt.Sprintf("%s %s %s", a.Provider, a.Outcome, a.Reason))
	}
	return strings.Join(out, "\n")
}

// A plugin that runs already, for instance in a debugger, is attached to and neither pinned
// nor stopped.
func TestReattach(t *testing.T) {
	p := plug(t)
	cmd := exec.CommandContext(t.Context(), p.program, "-debug")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out := testkit.Start(t, cmd)
	value := ""
	for lines := bufio.NewScanner(out); value == "" && lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "CONDENSE_REATTACH='"); ok {
			value = strings.TrimRight(v, "' \\")
		}
	}
	_, value, ok := strings.Cut(value, ":") // with the name in the configuration
	if !ok {
		t.Fatal("the plugin printed no line to attach with")
	}
	h, err := condense.Open(t.Context(), &condense.Options{Config: p.configure(t, "{}"), Plugins: host.Plugins(`{"ours":` + value)})
	if err != nil {
		t.Fatal(err)
	}
	if got := attempts(t, h); !strings.HasPrefix(got, "ours applied") && !strings.HasPrefix(got, "ours insufficient") {
		t.Errorf("got %s", got)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Errorf("the plugin was ended: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Log(err)
	}
	if _, err := condense.Open(t.Context(), &condense.Options{Config: p.configure(t, "{}"), Plugins: host.Plugins("tidy")}); err == nil ||
		!strings.Contains(err.Error(), "want the line that a plugin prints with -debug") {
		t.Errorf("got %v", err)
	}
}

// A plugin answers in a chain as a built-in provider does. After any fault of the plugin
// truncation answers.
func TestPlugin(t *testing.T) {
	p := plug(t)
	c := p.configure(t, "{last: 4}")
	want := "ours skipped plugin ours: " + p.program + " is not pinned, and only what was approved is started: if you trust it, run 'condense plugin pin ours'"
	if got := attempts(t, openConfig(t, c)); !strings.HasPrefix(got, want) {
		t.Errorf("not pinned: got %s\nwant %s", got, want)
	}

	// A program that was built without plugins says so, and not in the middle of a conversation.
	_, err := condense.Open(t.Context(), &condense.Options{Config: c})
	if err == nil || !strings.Contains(err.Error(), "plugin ours: this program runs no plugins") || !strings.Contains(err.Error(), "Options.Plugins") {
		t.Errorf("no plugins: got error %v", err)
	}

	p.pin(t)
	h := openConfig(t, c)
	if got := attempts(t, h); !strings.HasPrefix(got, "ours applied ") || !strings.Contains(got, "truncation skipped not needed") {
		t.Errorf("a good plugin: %s", got)
	}
	for settings, want := range map[string]string{
		"{do: panic}": "out of ideas",
		"{do: exit}":  "exit status 3",
		"{do: empty}": "all 400 messages are gone",
		"{do: fail}":  "no wish to work",
	} {
		// Another configuration replaces the process.
		if err := h.Reload(t.Context(), p.configure(t, settings)); err != nil {
			t.Fatal(err)
		}
		got := attempts(t, h)
		if !strings.Contains(got, want) || !strings.HasPrefix(got, "ours failed ") || !strings.Contains(got, "truncation applied") {
			t.Errorf("%s: got\n%s\nwant %s", settings, got, want)
		}
	}
	for settings, want := range map[string]string{
		"{lest: 4}":  `start plugin ours: settings: unknown setting "lest"; did you mean "last"?`,
		"{last: -1}": "last: must not be negative",
	} {
		// One that does not start does not replace a process that works.
		if err := h.Reload(t.Context(), p.configure(t, "{last: 4}")); err != nil {
			t.Fatal(err)
		}
		works := attempts(t, h)
		if err := h.Reload(t.Context(), p.configure(t, settings)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v\nwant %s", settings, err, want)
		}
		if got := attempts(t, h); got != works || !strings.HasPrefix(got, "ours applied ") {
			t.Errorf("%s: got\n%s\nwant as before\n%s", settings, got, works)
		}
		// Where none works, it takes its place, and the chain goes on without it.
		other := openConfig(t, p.configure(t, settings))
		if got := attempts(t, other); !strings.Contains(got, want) || !strings.HasPrefix(got, "ours failed ") || !strings.Contains(got, "truncation applied") {
			t.Errorf("%s: got\n%s\nwant %s", settings, got, want)
		}
	}

	// Another program than the one that was pinned does not run.
	if err := os.WriteFile(p.program, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.Reload(t.Context(), c); err == nil || !strings.Contains(err.Error(), "is not the plugin that was pinned") {
		t.Errorf("another program: got error %v", err)
	}
	if got := attempts(t, openConfig(t, c)); !strings.Contains(got, "is not the plugin that was pinned") || !strings.Contains(got, "truncation applied") {
		t.Errorf("another program: %s", got)
	}
	if err := os.Remove(p.program); err != nil {
		t.Fatal(err)
	}
	if err := h.Reload(t.Context(), c); err == nil || !strings.Contains(err.Error(), "there is no file") {
		t.Errorf("no program: got error %v", err)
	}
	if err := os.WriteFile(p.program, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	approvals, err := os.ReadDir(p.store)
	if err != nil || len(approvals) != 1 {
		t.Fatalf("%d approvals, %v", len(approvals), err)
	}
	if err := os.WriteFile(filepath.Join(p.store, approvals[0].Name()), []byte("rubbish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Reload(t.Context(), c); err == nil || !strings.Contains(err.Error(), "was not written by condense") {
		t.Errorf("a damaged approval: got error %v", err)
	}
}

// pids returns the processes of the plugin; none where there is no /proc.
func (p *plugged) pids() []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, l := range lines {
		if text, _ := os.ReadFile(l); strings.Contains(string(text), p.program) {
			found = append(found, l)
		}
	}
	return found
}

// TestWatchPins: a plugin that is pinned while its host runs is started, and a running one
// keeps running when the configuration changes in something unrelated.
func TestWatchPins(t *testing.T) {
	p := plug(t)
	p.configure(t, "{}")
	if err := trust.Open(p.store).SetPin(p.program, false, strings.Repeat("0", 64)); err != nil {
		t.Fatal(err)
	}
	h, reloaded := follow(t, p.options())
	if got := attempts(t, h); !strings.Contains(got, "is not the plugin that was pinned") {
		t.Errorf("before: %s", got)
	}
	p.pin(t)
	reloaded()
	if got := attempts(t, h); !strings.HasPrefix(got, "ours applied ") {
		t.Errorf("pinned: %s", got)
	}
	before := p.pids()
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "threshold: 70\n"+string(text))
	reloaded()
	if got := attempts(t, h); !strings.HasPrefix(got, "ours applied ") || !slices.Equal(p.pids(), before) {
		t.Errorf("another threshold: %s, processes %q, before %q", got, p.pids(), before)
	}
}

// TestReloadKeepsWhatWorks: a change that would replace a working plugin by one that cannot start is refused, says why, and the
// former one goes on; one that does not work anyway may be replaced.
func TestReloadKeepsWhatWorks(t *testing.T) {
	p := plug(t)
	p.pin(t)
	h := openConfig(t, p.configure(t, "{}"))
	works := func(when string) {
		t.Helper()
		if got := attempts(t, h); !strings.HasPrefix(got, "ours applied ") {
			t.Errorf("%s: %s", when, got)
		}
	}
	works("at first")
	before := p.pids()
	for settings, want := range map[string]string{
		"{lsat: 3}":  `unknown setting "lsat"; did you mean "last"?`,
		"{last: -3}": "last: must not be negative",
	} {
		err := h.Reload(t.Context(), p.configure(t, settings))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "condense.yaml:3:3: provider ours does not start, and the former one goes on: ") {
			t.Errorf("%s: got error %v", settings, err)
		}
		works(settings)
	}
	if now := p.pids(); !slices.Equal(now, before) {
		t.Errorf("processes %q, before %q", now, before)
	}

	// A program that has been replaced by one that was not approved.
	if err := os.Rename(p.program, p.program+".old"); err != nil {
		t.Fatal(err)
	}
	replace(t, p.program, "#!/bin/sh\nexit 1\n", 0o700)
	c := p.configure(t, "{last: 12}")
	if err := h.Reload(t.Context(), c); err == nil || !strings.Contains(err.Error(), "is not the plugin that was pinned") {
		t.Errorf("replaced: got error %v", err)
	}
	works("with another program on the disk")

	// One that is approved and ends at once.
	p.pin(t)
	if err := h.Reload(t.Context(), c); err == nil || !strings.Contains(err.Error(), "does not start, and the former one goes on") {
		t.Errorf("dead: got error %v", err)
	}
	works("with a dead program on the disk")

	// A host that never had one that works has nothing to lose: the next provider is asked.
	broken := openConfig(t, c)
	if err := broken.Reload(t.Context(), p.configure(t, "{last: 13}")); err != nil {
		t.Errorf("of two that do not work: %v", err)
	}
	if got := attempts(t, broken); !strings.HasPrefix(got, "ours failed ") {
		t.Errorf("got %s", got)
	}
}
