//go:build unix

package pluginexamples_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
)

// TestByHand starts the programs from a shell.
func TestByHand(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language) {
		program := filepath.Join(l.example.dir(t), l.example.program)
		for _, tt := range []struct {
			args   []string
			exit   int
			stdout string
			stderr string
		}{
			{nil, 2, "", "condense plugin test " + program},
			{[]string{"--help"}, 0, "plugin: " + program, ""},
			{[]string{"-version"}, 0, l.exampleName + " 0.1.0", ""},
			{[]string{"-verbose"}, 2, "", "unknown argument verbose; there are -h, -version and -debug"},
		} {
			cmd := exec.CommandContext(t.Context(), program, tt.args...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != tt.exit {
				t.Errorf("%q: exit status %d, want %d", tt.args, got, tt.exit)
			}
			for stream, s := range map[string][2]string{"output": {stdout.String(), tt.stdout}, "error": {stderr.String(), tt.stderr}} {
				if got, want := s[0], s[1]; want == "" && got != "" || !strings.Contains(got, want) {
					t.Errorf("%q: standard %s is %q, want %q in it", tt.args, stream, got, want)
				}
			}
		}
	})
}

// TestDebug attaches to a running program, as under a debugger, and configures it repeatedly.
func TestDebug(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(l.tricks.dir(t), l.tricks.program), "-debug")
		cmd.Stderr = os.Stderr
		out := testkit.Start(t, cmd)
		at := attachment(t, out, "tricks")
		if at.Protocol != "grpc" || at.ProtocolVersion != wire.ProtocolVersion || at.Pid != cmd.Process.Pid || !at.Test || at.Addr.Network != "unix" {
			t.Errorf("it says %+v", at)
		}
		conn, err := grpc.NewClient("unix:"+at.Addr.String, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the test is over
		log := &testkit.Log{}
		settings(t, caller.NewClient(conn, &caller.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}), log)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("interrupted: %v", err)
		}
		if _, err := os.Stat(at.Addr.String); err == nil {
			t.Error("the socket is left")
		}
	})
}

// attachment returns the reattach data that the program called name prints.
func attachment(t *testing.T, out io.Reader, name string) wire.Reattach {
	t.Helper()
	line := regexp.MustCompile(wire.EnvReattach + `='(.*)'`)
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if m := line.FindStringSubmatch(lines.Text()); m != nil {
			var attach map[string]wire.Reattach
			if err := json.Unmarshal([]byte(m[1]), &attach); err != nil {
				t.Fatalf("%s: %v", m[1], err)
			}
			return attach[name]
		}
	}
	t.Fatalf("it does not say where it is: %s", said.String())
	return wire.Reattach{}
}

// settings tries invalid settings, whose faults are all reported at once, and valid ones.
func settings(t *testing.T, client *caller.Client, log *testkit.Log) {
	t.Helper()
	if _, err := client.Condense(t.Context(), request("tell")); err == nil || !strings.Contains(err.Error(), "not configured yet") {
		t.Errorf("before it has settings: got %v", err)
	}
	for _, tt := range []struct {
		settings string
		refused  string
		greeting string // that is in force
	}{
		{"", "", "hello"},
		{`{"greeting": "good morning", "share": 1, "style": "fancy"}`, "", `"good morning"`},
		{
			`{"greeting": [], "greting": "x", "style": "odd", "share": null}`, "greeting: want string, have array; " +
				"greting: unknown; there are greeting, share, style; " +
				`style: "odd" is none of plain, fancy; share: want number, have null`, `"good morning"`,
		},
		{`{"greeting": "good night", "share": 2}`, "share: must be from 0 to 1", `"good morning"`},
		{`[]`, "not a JSON object", `"good morning"`},
		{`{"greeting": "moin"}`, "", "moin"},
	} {
		err := client.Configure(t.Context(), []byte(tt.settings))
		if bad := new(caller.SettingsError); tt.refused == "" && err != nil ||
			tt.refused != "" && (!errors.As(err, &bad) || strings.ReplaceAll(bad.Error(), "\n", "; ") != tt.refused) {
			t.Errorf("%s: got %v\nwant %s", tt.settings, err, tt.refused)
		}
		if _, err := client.Condense(t.Context(), request("tell")); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if last := lines[len(lines)-1]; !strings.HasSuffix(last, "greeting="+tt.greeting) {
			t.Errorf("after %s: it says %s, want %s", tt.settings, last, tt.greeting)
		}
	}
	if strings.Contains(log.String(), "in detail") {
		t.Error("it logged what the host does not want")
	}
}

// TestHostDies ends the host without a shutdown, as kill -9 does: the plugin exits too.
func TestHostDies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(l.example.dir(t), l.example.program))
		sockets, err := os.MkdirTemp("", "s") //nolint:usetesting // t.TempDir is too long for a socket
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(sockets) //nolint:errcheck // best effort
		cmd.Env = append(os.Environ(), wire.Handshake.MagicCookieKey+"="+wire.Handshake.MagicCookieValue,
			"PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR="+sockets, wire.EnvExitWithStdin+"=1")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout := testkit.Start(t, cmd)
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "1|1|unix|"+sockets) || !strings.HasSuffix(line, "|grpc|\n") {
			t.Fatalf("handshake %q (%v)", line, err)
		}
		if err := stdin.Close(); err != nil { // the only effect of the end of a host on every system
			t.Fatal(err)
		}
		exited := make(chan error, 1)
		go func() { exited <- cmd.Wait() }()
		select {
		case err := <-exited:
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(testkit.Patience(t)):
			t.Error("it is still there")
		}
	})
}
