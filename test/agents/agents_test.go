// Package agents_test runs real agents and the vendors' own SDKs, as real processes, against a scripted vendor on the
// loopback: without condense, and through condense wrap and condense serve.
//
// They come from npm at the versions of package-lock.json and get dummy keys, homes of their own and no more of the
// environment than they need. What they try to reach outside of the loopback fails the test.
package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/peers"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// patience is how long one run may take; without other work it takes 5 to 15 seconds.
const patience = 5 * time.Minute

// An agent is how one of the agents is run, in a folder with a task.
type agent struct {
	name  string   // as condense wrap takes it
	files []string // patterns of its program, below node_modules; the first that exists
	args  []string // before the task
	env   []string
	// settings is a file below the home folder that sends the requests to a vendor, given by the base URLs of Anthropic and OpenAI.
	settings, content string
	// base is content for condense wrap, which sends the requests elsewhere by itself.
	base string
}

// The models are ones whose rules are strict: Claude Code's binds thinking to what came before it, pi's demands thinking in
// an open round of tools.
var all = []agent{
	{
		name:  "claude",
		files: []string{"@anthropic-ai/claude-code-*/claude"},
		args:  []string{"--model", "claude-opus-5-5", "--allowedTools", "Bash,Agent", "-p"},
		// A model with a window of 60,000 tokens does not answer with 128,000, which the agent asks for otherwise.
		env:      []string{"ANTHROPIC_API_KEY=dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=8000"},
		settings: ".claude/settings.json",
		content:  `{"env": {"ANTHROPIC_BASE_URL": "{anthropic}"}}`,
		base:     `{}`,
	}, {
		name:     "codex",
		files:    []string{"@openai/codex-*/vendor/*/bin/codex"},
		args:     []string{"exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"},
		env:      []string{"CODEX_API_KEY=dummy"},
		settings: ".codex/config.toml",
		content:  "openai_base_url = \"{openai}\"\n" + codexOffline,
		base:     codexOffline,
	}, {
		name:  "opencode",
		files: []string{"opencode-*/bin/opencode"},
		args:  []string{"run", "-m", "anthropic/claude-sonnet-4-5"},
		env: []string{
			"ANTHROPIC_API_KEY=dummy", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_SHARE=1",
			`OPENCODE_PERMISSION={"*":"allow"}`, "npm_config_registry=http://127.0.0.1:1/",
		}, // it installs a package of its own otherwise
		settings: ".config/opencode/opencode.json",
		content:  `{"provider": {"anthropic": {"options": {"baseURL": "{anthropic}/v1"}}}}`,
		base:     `{}`,
	}, {
		name:     "pi",
		files:    []string{"@earendil-works/pi-coding-agent/dist/cli.js"},
		args:     []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "--thinking", "medium", "-p"},
		env:      []string{"ANTHROPIC_API_KEY=dummy", "PI_OFFLINE=1"},
		settings: ".pi/agent/models.json",
		content:  `{"providers": {"anthropic": {"baseUrl": "{anthropic}"}}}`,
		base:     `{"providers": {}}`,
	},
}

// copilot is tried only where it takes part in what it is for: the gateway's tests have enough agents.
var copilot = agent{
	name:  "copilot",
	files: []string{"@github/copilot-*/copilot"},
	args:  []string{"--allow-all-tools", "-p"},
	env: []string{
		"COPILOT_PROVIDER_TYPE=anthropic", "COPILOT_PROVIDER_BASE_URL={anthropic}", "COPILOT_PROVIDER_API_KEY=dummy", "COPILOT_MODEL=claude-sonnet-4-5",
		"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "XDG_CACHE_HOME={modules}/.copilot", // it unpacks itself there
	},
}

// everyAgent is the variable that makes `make test-agents` try every agent in every test if it is "all", as the nightly job does. CI tries
// every agent with condense wrap, and those that some names elsewhere: where agents differ most, or start fastest.
const everyAgent = "CONDENSE_AGENTS"

// everywhere reports whether every agent is tried in every test.
func everywhere() bool { return os.Getenv(everyAgent) == "all" }

// some returns the agents with the names, or all of them.
func some(names ...string) []agent {
	if everywhere() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(a agent) bool { return !slices.Contains(names, a.name) })
}

// atNight skips a test unless every agent is tried: one of what an agent does without condense, or one that differs little from others
// and takes long.
func atNight(t *testing.T) {
	t.Helper()
	if !everywhere() {
		t.Skipf("tried at night; %s=all runs it", everyAgent)
	}
}

const codexOffline = `model = "gpt-5.1"
check_for_update_on_startup = false
[features]
plugins = false
[analytics]
enabled = false
`

// A desk is where an agent works: a vendor, a home and a folder for its task.
type desk struct {
	vendor    *upstream.Vendor
	url       string // of the vendor
	home, dir string
	node      string // folder of node
	modules   string // node_modules
	env       []string
	more      string // lines of the user's configuration
	curious   bool   // the agent may look for news, as agents do for a person; it finds none
}

// newDesk returns a desk whose vendor is served on the loopback.
func newDesk(t *testing.T, o upstream.Options) *desk {
	t.Helper()
	testkit.Process(t)
	node, dir := install(t)
	vendor := upstream.New(o)
	server := httptest.NewServer(vendor)
	t.Cleanup(server.Close)
	d := &desk{vendor: vendor, url: server.URL, home: t.TempDir(), dir: t.TempDir(), node: filepath.Dir(node), modules: filepath.Join(dir, "node_modules")}

	// Agents that look for news find a proxy that refuses, and the test fails. Node, which pi runs on, takes no notice of it.
	var mu sync.Mutex
	var strays []string
	border := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		strays = append(strays, r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(func() {
		border.Close()
		if len(strays) > 0 && !d.curious {
			t.Errorf("the agent tried to reach %q", strays)
		}
	})

	bin := filepath.Join(d.home, "bin")
	if err := os.Mkdir(bin, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, a := range append(slices.Clip(all), copilot) {
		if err := os.Symlink(d.program(t, &a), filepath.Join(bin, a.name)); err != nil {
			t.Fatal(err)
		}
	}
	d.env = []string{
		"PATH=" + strings.Join([]string{bin, d.node, "/usr/local/bin", "/usr/bin", "/bin"}, ":"), "HOME=" + d.home, "TERM=xterm",
		"HTTPS_PROXY=" + border.URL, "NO_PROXY=127.0.0.1,localhost",
	}
	t.Cleanup(func() { d.dump(t) })
	return d
}

var installing sync.Mutex

// install returns the path of node and the folder with the packages of package-lock.json.
func install(t *testing.T) (node, dir string) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	return peers.Node(t, "agents-test", "no real agent is run")
}

// program returns the path of the agent's program.
func (d *desk) program(t *testing.T, a *agent) string {
	t.Helper()
	for _, pattern := range a.files {
		if found, _ := filepath.Glob(filepath.Join(d.modules, pattern)); len(found) > 0 {
			return found[0]
		}
	}
	peers.Missing(t, a.name+" is not tried", "npm has no program of %s for this machine", a.name)
	return ""
}

// at writes the agent's settings: requests go to the server at url, or, if it is empty, where the agent sends them by default.
func (d *desk) at(t *testing.T, a *agent, url string) {
	t.Helper()
	if a.settings == "" {
		return // its environment has all
	}
	text := a.base
	if url != "" {
		text = strings.NewReplacer("{anthropic}", url, "{openai}", url+"/v1").Replace(a.content)
	}
	write(t, filepath.Join(d.home, a.settings), text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A result is the end of a run.
type result struct {
	out  string // standard output and error
	code int
}

// start starts a program in the folder of the task, with an environment that has nothing of the test's.
// It and what it starts are killed at the end of the test.
func (d *desk) start(t *testing.T, env []string, out io.Writer, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = d.dir, slices.Clone(d.env)
	for _, v := range env {
		cmd.Env = append(cmd.Env, strings.NewReplacer("{anthropic}", d.url, "{modules}", d.modules).Replace(v))
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // of what it started with our pipe
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// run runs a program to its end.
func (d *desk) run(t *testing.T, env []string, name string, args ...string) result {
	t.Helper()
	var out testkit.Log
	return wait(t, d.start(t, env, &out, name, args...), &out)
}

// wait waits for the end of a program.
func wait(t *testing.T, cmd *exec.Cmd, out *testkit.Log) result {
	t.Helper()
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("%s: %v\n%s", cmd.Path, err, tail(out.String()))
	}
	return result{out: out.String(), code: cmd.ProcessState.ExitCode()}
}

// direct runs an agent whose settings name a server.
func (d *desk) direct(t *testing.T, a *agent, url, task string) result {
	t.Helper()
	var out testkit.Log
	return wait(t, d.begin(t, a, url, task, &out), &out)
}

// begin starts an agent whose settings name a server.
func (d *desk) begin(t *testing.T, a *agent, url, task string, out io.Writer) *exec.Cmd {
	t.Helper()
	d.at(t, a, url)
	return d.start(t, a.env, out, filepath.Join(d.home, "bin", a.name), append(slices.Clip(a.args), task)...)
}

// tail is the end of a long output.
func tail(s string) string {
	const most = 4000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// accept fails the test for every request that broke a rule of the vendor, other than its window and those that are expected.
func (d *desk) accept(t *testing.T, expected ...string) {
	t.Helper()
	for _, r := range d.vendor.Refusals() {
		if r.Rule != "path" && !slices.Contains(expected, r.Rule) { // the agents ask for more than the vendor has
			t.Errorf("request %d was refused: %s: %s", r.N, r.Rule, r.Error)
		}
	}
}

// count returns the number of accepted requests that are no turns of a conversation for that reason.
func (d *desk) count(side string) (n int) {
	for _, r := range d.vendor.Records() {
		if r.Side == side {
			n++
		}
	}
	return n
}

// over returns the requests that were larger than the window.
func (d *desk) over() (over []upstream.Record) {
	for _, r := range d.vendor.Records() {
		if r.Rule == "window" {
			over = append(over, r)
		}
	}
	return over
}

// steps is how much of the script the longest conversation has seen.
func (d *desk) steps() int {
	most := 0
	for _, n := range d.vendor.Played() {
		most = max(most, n)
	}
	return most
}

// list describes the requests, for messages.
func (d *desk) list() string {
	var b strings.Builder
	for _, r := range d.vendor.Records() {
		fmt.Fprintf(&b, "%3d %s %s step %d side %q tokens %d status %d %s %s usage %+v\n", r.N, r.Method, r.Path, r.Step, r.Side, r.Tokens, r.Status, r.Rule, r.Error, r.Usage)
	}
	return b.String()
}

// dump writes the requests into the folder that CONDENSE_AGENTS_DUMP names, to look into a failure.
func (d *desk) dump(t *testing.T) {
	t.Helper()
	dir := os.Getenv("CONDENSE_AGENTS_DUMP")
	if dir == "" {
		return
	}
	for _, r := range d.vendor.Records() {
		write(t, filepath.Join(dir, t.Name(), fmt.Sprintf("%03d-%d-%s.json", r.N, r.Status, r.Rule)), string(r.Body))
	}
	write(t, filepath.Join(dir, t.Name(), "list"), d.list())
}
