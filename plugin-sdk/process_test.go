package pluginsdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc/codes"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
)

// self returns a command that runs this binary as the plugin of the strategy named.
func self(tb testing.TB, strategy string, args ...string) *exec.Cmd {
	tb.Helper()
	testkit.Process(tb)
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), exe, args...)
	cmd.Env = append(os.Environ(), envStrategy+"="+strategy)
	return cmd
}

type process struct {
	*caller.Client

	plugin         *plugin.Client
	stdout, stderr *testkit.Log
}

// launch starts a plugin as go-plugin does, with its default environment; or attaches to one
// that runs already if cmd is nil.
func launch(tb testing.TB, cmd *exec.Cmd, reattach *plugin.ReattachConfig, tls bool, opts ...*caller.Options) *process {
	tb.Helper()
	opts = append(opts, nil)
	p := &process{stdout: &testkit.Log{}, stderr: &testkit.Log{}}
	c := &plugin.ClientConfig{
		HandshakeConfig:  wire.Handshake,
		VersionedPlugins: caller.Plugins(opts[0]),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		SyncStdout:       p.stdout, SyncStderr: p.stderr, Stderr: p.stderr,
		GRPCDialOptions: caller.DialTuning(),
	}
	if c.Reattach = reattach; reattach == nil {
		c.Cmd, c.AutoMTLS = cmd, tls
	} else {
		c.Plugins = c.VersionedPlugins[wire.ProtocolVersion]
	}
	p.plugin = plugin.NewClient(c)
	tb.Cleanup(p.plugin.Kill)
	conn, err := p.plugin.Client()
	if err != nil {
		tb.Fatalf("start: %v; standard error: %s", err, p.stderr)
	}
	raw, err := conn.Dispense(wire.PluginName)
	if err != nil {
		tb.Fatal(err)
	}
	p.Client = raw.(*caller.Client)
	return p
}

func TestProcess(t *testing.T) {
	p := launch(t, self(t, "tail"), nil, true)
	d, err := p.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "tail" || d.Doc != "Keeps the end of a conversation. A test." || len(d.Settings) != 3 ||
		d.Settings[1].Name != "style" || string(d.Settings[1].Default) != `"messages"` || len(d.Settings[1].Enum) != 2 ||
		!strings.HasPrefix(d.SDK, "condense-go ") {
		t.Errorf("description is %+v", d)
	}

	req := coretest.HalfRequest(coretest.Session())
	if _, err := p.Condense(t.Context(), req); err == nil || !strings.Contains(err.Error(), "not configured") {
		t.Errorf("a call before settings: got error %v", err)
	}
	err = p.Configure(t.Context(), json.RawMessage(`{"keep": 0, "style": "bytes"}`))
	wrong, ok := errors.AsType[*caller.SettingsError](err)
	if !ok {
		t.Fatalf("wrong settings: got error %v; want a SettingsError", err)
	}
	want := []wire.Problem{{Key: "keep", Message: "0 is not positive"}, {Key: "style", Message: `"bytes" is neither messages nor tokens`}}
	if len(wrong.Problems) != 2 || wrong.Problems[0] != want[0] || wrong.Problems[1] != want[1] {
		t.Errorf("problems are %q; want %q", wrong.Problems, want)
	}
	err = p.Configure(t.Context(), json.RawMessage(`{"kepe": 2}`))
	if err == nil || !strings.Contains(err.Error(), `unknown setting "kepe"`) || !strings.Contains(err.Error(), "keep") {
		t.Errorf("an unknown setting: got error %v", err)
	}

	if err := p.Configure(t.Context(), json.RawMessage(`{"keep": 2, "fault": "talks"}`)); err != nil {
		t.Fatal(err)
	}
	res, err := p.Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	if n := len(res.Messages); n >= len(req.Messages) {
		t.Errorf("%d of %d messages were kept", n, len(req.Messages))
	}
	testkit.Eventually(t, "text on standard output", func() bool { return p.stdout.String() != "" })
	p.plugin.Kill()
	if !p.plugin.Exited() {
		t.Error("it has not exited")
	}
	if !strings.Contains(p.stderr.String(), `"@message":"closed"`) {
		t.Errorf("the provider was not closed; standard error: %s", p.stderr)
	}
	if got := p.stdout.String(); got != "said on standard output\n" {
		t.Errorf("standard output: got %q", got)
	}
}

// TestProcessAsksTheHost: a plugin gets vectors and hidden messages of the host, and has a strategy that is built into the host work on a part.
func TestProcessAsksTheHost(t *testing.T) {
	reg, err := resolver.Strategies()
	if err != nil {
		t.Fatal(err)
	}
	words, _ := sdktest.Extractive().(model.Embedder)
	p := launch(t, self(t, "asker"), nil, true, &caller.Options{
		Run: resolver.RunnerOf(reg), Embedder: func() (model.Embedder, error) { return words, nil },
	})
	if err := p.Configure(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	req := coretest.HalfRequest(coretest.Session())
	req.Hidden = func(ids ...string) ([]core.Message, error) {
		return []core.Message{{ID: ids[0], Role: core.RoleUser, Parts: []core.Part{core.Text("Never use tabs.")}}}, nil
	}
	req.File = func(path string) ([]core.FilePiece, error) {
		return []core.FilePiece{{First: 7, Text: "of " + path}}, nil
	}
	req.Cached.Messages, req.Messages[0].Labels = 3, map[string]string{"kept": "pin"}
	res, err := p.Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	n := len(req.Messages)
	for i, was := range req.Messages {
		if (i < 2 || i > n-4) && !slices.ContainsFunc(res.Messages, func(m core.Message) bool { return m.Equal(was) }) {
			t.Errorf("message %d is outside of the part, and is changed", i)
		}
	}
	first := fmt.Sprint(res.Messages[0].Parts)
	if !strings.Contains(first, "Never use tabs.") || !strings.Contains(first, "[{7 of a.go false}] 3 map[kept:pin]") || strings.Count(first, "1") != 2 || slices.EqualFunc(req.Messages, res.Messages[1:], core.Message.Equal) {
		t.Errorf("%d messages became %d, the first is %s", n, len(res.Messages), first)
	}
	bare := launch(t, self(t, "asker"), nil, true)
	if err := bare.Configure(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Condense(t.Context(), req); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "embed: not supported by this host") {
		t.Errorf("a host without: got error %v", err)
	}
}

func TestProcessConformance(t *testing.T) {
	p := launch(t, self(t, "tail"), nil, true)
	if err := p.Configure(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := coretest.TestProvider(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// TestProcessLarge sends what gRPC's default limit would refuse, in one message and in
// many.
func TestProcessLarge(t *testing.T) {
	p := launch(t, self(t, "tail"), nil, true)
	if err := p.Configure(t.Context(), json.RawMessage(`{"keep": 3}`)); err != nil {
		t.Fatal(err)
	}
	var messages []core.Message
	line := strings.Repeat("All work and no play makes Jack a dull boy.\n", 40)
	for i := range 15_000 {
		m := coretest.User(core.Text(line))
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		messages = append(messages, m)
	}
	messages[2].Parts = []core.Part{core.Text(strings.Repeat(line, 12_000))}
	messages = coretest.Conversation(messages...)
	req := coretest.HalfRequest(messages)
	res, err := p.Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Messages) != 4 || res.Messages[3].ID != messages[14_999].ID {
		t.Errorf("got %d messages", len(res.Messages))
	}
}

func TestProcessFaults(t *testing.T) {
	p := launch(t, self(t, "tail"), nil, true)
	ctx := t.Context()
	req := coretest.HalfRequest(coretest.Session())
	call := func(fault string) error {
		if err := p.Configure(ctx, json.RawMessage(`{"fault": "`+fault+`"}`)); err != nil {
			t.Fatal(err)
		}
		_, err := p.Condense(ctx, req)
		return err
	}
	err := call("panic")
	if e, ok := errors.AsType[*caller.RemoteError](err); !ok || e.Code != codes.Internal || !regexp.MustCompile(`^panic: boom at main_test.go:\d+$`).MatchString(e.Text) {
		t.Errorf("a panic: got error %v", err)
	}
	if err := call(""); err != nil {
		t.Errorf("a call after a panic: %v", err)
	}
	if err := call("exit"); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("an exit: got error %v; want core.ErrUnavailable", err)
	}
	if _, err := p.Condense(ctx, req); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("a call after an exit: got error %v; want core.ErrUnavailable", err)
	}
}

func TestByHand(t *testing.T) {
	for _, tt := range []struct {
		name, strategy string
		args           []string
		exit           int
		stdout, stderr []string // what must be said there; nil: nothing
	}{
		{"nothing", "tail", nil, 2, nil, []string{
			"is a plugin of condense", "Keeps the end of a conversation. A test.", "plugin: /", "keep   integer  4", "One of messages, tokens.", "condense plugin test /", "-debug",
		}},
		{"help", "tail", []string{"-h"}, 0, []string{"is a plugin of condense"}, nil},
		{"version", "tail", []string{"--version"}, 0, []string{"tail devel"}, nil},
		{"unknown", "tail", []string{"serve"}, 2, nil, []string{`unknown argument "serve"`}},
		{"no strategy", "nameless", nil, 1, nil, []string{"a name has", "not made by registry.Define", "no documentation"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			cmd := self(t, tt.strategy, tt.args...)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if exit := cmd.ProcessState.ExitCode(); exit != tt.exit {
				t.Errorf("exit code: got %d (%v); want %d", exit, err, tt.exit)
			}
			for _, s := range []struct {
				name, got string
				want      []string
			}{{"output", stdout.String(), tt.stdout}, {"error", stderr.String(), tt.stderr}} {
				if s.want == nil && s.got != "" {
					t.Errorf("standard %s: got %q; want nothing", s.name, s.got)
				}
				for _, w := range s.want {
					if !strings.Contains(s.got, w) {
						t.Errorf("standard %s: got %s\nwant %q in it", s.name, s.got, w)
					}
				}
			}
		})
	}
}

// TestExitWithStdin: a plugin does not outlive a host that holds its standard input.
func TestExitWithStdin(t *testing.T) {
	cmd := self(t, "tail")
	cmd.Env = append(cmd.Env, wire.Handshake.MagicCookieKey+"="+wire.Handshake.MagicCookieValue, wire.EnvExitWithStdin+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := testkit.Start(t, cmd)
	line := make([]byte, 1) // it has started to serve
	if _, err := io.ReadFull(out, line); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("it exited with %v", err)
		}
	case <-time.After(testkit.Patience(t)):
		t.Error("it did not exit")
	}
}

// TestDebug attaches to a plugin that was started by hand, as its output says.
func TestDebug(t *testing.T) {
	cmd := self(t, "tail", "-debug")
	out := testkit.Start(t, cmd)
	var said bytes.Buffer
	line := regexp.MustCompile(wire.EnvReattach + `='(.*)'`)
	for buf := make([]byte, 512); !line.Match(said.Bytes()); {
		n, err := out.Read(buf)
		if err != nil {
			t.Fatalf("it said %q: %v", said.String(), err)
		}
		said.Write(buf[:n])
	}
	var attach map[string]wire.Reattach
	if err := json.Unmarshal(line.FindSubmatch(said.Bytes())[1], &attach); err != nil {
		t.Fatal(err)
	}
	a, ok := attach["tail"]
	if !ok || a.Pid != cmd.Process.Pid || !a.Test {
		t.Fatalf("got %+v", attach)
	}
	addr, err := net.ResolveUnixAddr(a.Addr.Network, a.Addr.String)
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, nil, &plugin.ReattachConfig{
		Protocol: plugin.Protocol(a.Protocol), ProtocolVersion: a.ProtocolVersion, Pid: a.Pid, Test: a.Test, Addr: addr,
	}, false)
	if d, err := p.Describe(t.Context()); err != nil || d.Name != "tail" {
		t.Errorf("got %+v, %v", d, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience(t))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("interrupted, it exited with %v", err)
		}
	case <-ctx.Done():
		t.Error("interrupted, it did not exit")
	}
}
