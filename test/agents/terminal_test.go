package agents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/peers"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// An interactive is how an agent is started for a person, in a terminal.
type interactive struct {
	drop, env []string          // of the arguments for a run without a person; more variables
	files     map[string]string // settings that keep it from asking; {dir} is the folder of the task
	ready     string            // on the screen when it takes input
}

var interactives = map[string]interactive{
	"claude": {
		drop: []string{"-p"}, ready: "❯",
		files: map[string]string{".claude.json": `{"hasCompletedOnboarding": true, "theme": "dark", "customApiKeyResponses": {"approved": ["dummy"]},
			"projects": {"{dir}": {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}}}`},
	},
	"codex": {
		drop: []string{"exec", "--skip-git-repo-check"}, ready: "›",
		files: map[string]string{".codex/auth.json": `{"auth_mode": "apikey", "OPENAI_API_KEY": "dummy"}`},
	},
	// OpenCode waits for a package otherwise.
	"opencode": {drop: []string{"run"}, env: []string{"npm_config_fetch_retries=0"}, ready: "Ask anything"},
	"pi":       {drop: []string{"-p"}, ready: "claude-sonnet-4-5"},
}

// A terminal is an agent in a terminal, with a gateway, and a tap before it that numbers the requests.
type terminal struct {
	*desk
	agent  *agent
	socket string // of tmux
	id     string // of the conversation

	mu     sync.Mutex
	bodies [][]byte // of the client's requests; number i+1
}

// numbered is the header with the number of a request.
const numbered = "X-Test-Number"

func (s *terminal) tap(t *testing.T, to string) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, body)
		r.Header.Set(numbered, strconv.Itoa(len(s.bodies)))
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// tmux runs a command of tmux, and returns its output.
func (s *terminal) tmux(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tmux", append([]string{"-S", s.socket, "-f", os.DevNull}, args...)...)
	cmd.Env, cmd.Dir = s.env, s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// open starts the agent.
func (s *terminal) open(t *testing.T, address string) {
	t.Helper()
	how := interactives[s.agent.name]
	s.at(t, s.agent, address)
	for name, text := range how.files {
		write(t, filepath.Join(s.home, name), strings.ReplaceAll(text, "{dir}", s.dir))
	}
	args := slices.DeleteFunc(slices.Clone(s.agent.args), func(arg string) bool { return slices.Contains(how.drop, arg) })
	command := slices.Concat([]string{"env", "TERM=xterm-256color"}, s.agent.env, how.env, []string{filepath.Join(s.home, "bin", s.agent.name)}, args)
	s.curious = true
	pid, err := strconv.Atoi(strings.TrimSpace(s.tmux(t, append([]string{"new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", "test", "-x", "160", "-y", "40", "--"}, command...)...)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", s.screen(t))
		}
		_ = syscall.Kill(-pid, syscall.SIGKILL) // it writes into the home folder until then
		testkit.Eventually(t, "the agent has ended", func() bool { return syscall.Kill(pid, 0) != nil })
		cmd := exec.Command("tmux", "-S", s.socket, "kill-server")
		cmd.Env = s.env
		_ = cmd.Run() // it has ended with its last window
	})
	testkit.Eventually(t, s.agent.name+" takes input", func() bool { return strings.Contains(s.screen(t), how.ready) })
}

func (s *terminal) screen(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("tmux", "-S", s.socket, "capture-pane", "-p", "-t", "test")
	cmd.Env = s.env
	out, _ := cmd.Output()            // empty if the agent has ended
	time.Sleep(20 * time.Millisecond) //nolint:forbidigo // Eventually would keep tmux busy
	return string(out)
}

// say types a prompt, and presses Enter until the vendor has answered a step.
func (s *terminal) say(t *testing.T, text string, step int) {
	t.Helper()
	s.tmux(t, "send-keys", "-t", "test", "-l", text)
	testkit.Eventually(t, "the prompt is on the screen", func() bool { return strings.Contains(s.screen(t), text) })
	pressed := time.Time{}
	testkit.Eventually(t, fmt.Sprintf("step %d", step), func() bool {
		if s.steps() < step && time.Since(pressed) > 3*time.Second { // an agent that still draws takes it for a line break
			pressed = time.Now()
			s.tmux(t, "send-keys", "-t", "test", "Enter")
		}
		s.screen(t)
		return s.steps() >= step
	})
}

// waits is a command that runs until working has done something.
func waits(step int) string {
	return fmt.Sprintf("touch at-%d; until [ -e go-%d ]; do sleep 0.1; done; echo went on", step, step)
}

// working does something while the agent runs the command of a step.
func (s *terminal) working(t *testing.T, step int, do func()) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("the command of step %d", step), func() bool {
		s.screen(t)
		_, err := os.Stat(filepath.Join(s.dir, fmt.Sprintf("at-%d", step)))
		return err == nil
	})
	do()
	write(t, filepath.Join(s.dir, fmt.Sprintf("go-%d", step)), "")
}

// live runs condense live.
func (s *terminal) live(t *testing.T, args ...string) string {
	t.Helper()
	got := s.run(t, nil, s.condense(t), append([]string{"live", "--store", filepath.Join(s.home, "serve.db")}, args...)...)
	if got.code != 0 {
		t.Errorf("condense live %s: exit code %d", strings.Join(args, " "), got.code)
	}
	return got.out
}

// sent returns the request that a step answered, as the client and as the gateway sent it.
func (s *terminal) sent(t *testing.T, step int) (client, gateway []byte) {
	t.Helper()
	for _, r := range s.vendor.Turns() {
		if n, err := strconv.Atoi(r.Header.Get(numbered)); err == nil && r.Step == step {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.bodies[n-1], r.Body
		}
	}
	t.Fatalf("no request of step %d\n%s", step, s.list())
	return nil, nil
}

// own fails the test unless the vendor had the client's own history: all bytes or, since thinking can be bound to what was condensed,
// all but
// the thinking.
func (s *terminal) own(t *testing.T, step int) {
	t.Helper()
	client, gateway := s.sent(t, step)
	if bytes.Equal(client, gateway) || unthinking(t, client) == unthinking(t, gateway) {
		t.Logf("step %d: all bytes are the client's: %v", step, bytes.Equal(client, gateway))
		return
	}
	t.Errorf("step %d: the vendor had %d bytes, the client %d", step, len(gateway), len(client))
}

// unthinking is a body without blocks of thinking.
func unthinking(t *testing.T, body []byte) string {
	t.Helper()
	var request map[string]any
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	messages, _ := request["messages"].([]any)
	for _, m := range messages {
		m, _ := m.(map[string]any)
		if content, ok := m["content"].([]any); ok {
			m["content"] = slices.DeleteFunc(content, func(b any) bool {
				block, _ := b.(map[string]any)
				return block["type"] == "thinking" || block["type"] == "redacted_thinking"
			})
		}
	}
	out, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// shorter fails the test unless the history was condensed and has the protected text.
func (s *terminal) shorter(t *testing.T, step int) {
	t.Helper()
	client, gateway := s.sent(t, step)
	if len(gateway) >= len(client)-2*printed {
		t.Errorf("step %d is not condensed: the vendor had %d bytes, the client %d", step, len(gateway), len(client))
	}
	if !bytes.Contains(gateway, []byte(protected)) {
		t.Errorf("step %d: the protected text is gone", step)
	}
}

const (
	protected = "the total is rounded in export/rounding.py, line 41"
	printed   = 4000 // bytes of a step
	turn      = 7    // steps of a turn of TestTerminal; the last is a text
)

// TestTerminal: a person lists, condenses, undoes, protects and pauses the conversation of an agent in a terminal, while it works and
// while it
// is idle. Nothing is refused, and an undo sends what the client has. Thinking of Claude Code's model is bound to what came before it.
func TestTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		peers.Missing(t, "no agent is tried in a terminal", "tmux is not installed")
	}
	for _, a := range some("claude") {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			directed(t, &a)
		})
	}
}

var listed = regexp.MustCompile(`(?m)^([a-z2-7]{8}) +(\S+) `)

func directed(t *testing.T, a *agent) {
	t.Helper()
	s := &terminal{agent: a}
	o := upstream.Options{Window: window, StreamOverflow: true, ByCredential: true}
	for range 3 {
		o.Script = append(o.Script, upstream.Loop(turn-1, printed, map[int]string{2: protected})...)
	}
	for _, step := range []int{turn + 2, turn + 4, 2*turn + 2, 2*turn + 4} {
		o.Script[step-1].Commands = []string{waits(step)}
	}
	s.desk = newDesk(t, o)
	dir, err := os.MkdirTemp("", "tmux-*") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.socket = filepath.Join(dir, "s")
	g := s.serve(t, "127.0.0.1:0", "--recall", "mcp") // the requests are compared with the client's own
	s.open(t, s.tap(t, g.url))

	// Idle: list, protect, now.
	s.say(t, task, 1)
	s.idle(t, turn)
	m := listed.FindStringSubmatch(s.live(t))
	if m == nil || !strings.HasPrefix(m[2], a.name) {
		t.Fatalf("condense live lists no conversation of %s: %q", a.name, m)
	}
	s.id = m[1]
	s.live(t, "protect", s.id, protected)
	s.live(t, "now", s.id, "--target", "20%")
	s.say(t, "Go on with part two.", turn+1)
	// At work: undo, and now again.
	s.working(t, turn+2, func() { s.live(t, "undo", s.id, "--yes") })
	s.working(t, turn+4, func() { s.live(t, "now", s.id, "--target", "20%") })
	s.idle(t, 2*turn)
	s.shorter(t, turn+1)
	s.own(t, turn+3)
	s.shorter(t, turn+5)
	// Idle: undo, pause; at work: list, resume, pause; idle again: resume.
	s.live(t, "undo", s.id, "--yes")
	s.live(t, "pause", s.id)
	s.say(t, "Go on with part three.", 2*turn+1)
	s.working(t, 2*turn+2, func() {
		s.paused(t, true)
		s.live(t, "resume", s.id)
		s.paused(t, false)
	})
	s.working(t, 2*turn+4, func() { s.live(t, "pause", s.id) })
	s.idle(t, 3*turn)
	s.paused(t, true)
	s.live(t, "resume", s.id)
	for step := 2*turn + 1; step <= 3*turn; step++ {
		s.own(t, step)
	}
	s.accept(t)
	if n := len(s.vendor.Breaks()); n > 4 {
		t.Errorf("the prefix broke %d times: %+v", n, s.vendor.Breaks())
	}
}

// paused fails the test unless the list says that the conversation is paused, or does not.
func (s *terminal) paused(t *testing.T, want bool) {
	t.Helper()
	if out := s.live(t); strings.Contains(out, s.id+": paused") != want {
		t.Errorf("paused: want %v\n%s", want, out)
	}
}

// idle waits until the agent has shown the last text of a turn.
func (s *terminal) idle(t *testing.T, step int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%s is idle after step %d", s.agent.name, step), func() bool {
		screen := s.screen(t)
		return s.steps() >= step && strings.Contains(screen, fmt.Sprintf("All %d steps are done.", turn-1))
	})
}
