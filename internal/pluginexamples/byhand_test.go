//go:build unix

package pluginexamples_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire"
)

// TestByHand starts the programs as a person would.
func TestByHand(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language, name, dir string) {
		program := filepath.Join(dir, name+l.suffix)
		for _, tt := range []struct {
			args   []string
			exit   int
			stdout string
			stderr string
		}{
			{nil, 2, "", "condense plugin test " + program},
			{[]string{"-h"}, 0, "is a plugin of condense", ""},
			{[]string{"--help"}, 0, "plugin: " + program, ""},
			{[]string{"-version"}, 0, name + " 0.1.0", ""},
			{[]string{"-verbose"}, 2, "", "unknown argument verbose; there are -h, -version and -debug"},
		} {
			cmd := exec.CommandContext(t.Context(), program, tt.args...) //nolint:gosec // G204: what is tested
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

// TestDebug attaches to programs that somebody started, perhaps under a debugger.
func TestDebug(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language, name, dir string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, name+l.suffix), "-debug") //nolint:gosec // G204: what is tested
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var attach map[string]wire.Reattach
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := regexp.MustCompile(wire.EnvReattach + `='(.*)'`).FindStringSubmatch(lines.Text()); m != nil {
				if err := json.Unmarshal([]byte(m[1]), &attach); err != nil {
					t.Fatalf("%s: %v", m[1], err)
				}
				break
			}
		}
		at := attach[name]
		if at.Protocol != "grpc" || at.ProtocolVersion != wire.ProtocolVersion || at.Pid != cmd.Process.Pid || !at.Test || at.Addr.Network != "unix" {
			t.Errorf("it says %+v", at)
		}
		conn, err := grpc.NewClient("unix:"+at.Addr.String, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the test is over
		client := wire.NewClient(conn, nil)
		req := coretest.HalfRequest(coretest.Session())
		if _, err := client.Condense(t.Context(), req); err == nil || !strings.Contains(err.Error(), "not configured yet") {
			t.Errorf("before it has settings: got %v", err)
		}
		if err := client.Configure(t.Context(), []byte(eager[name])); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Condense(t.Context(), req); err != nil {
			t.Error(err)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // an interrupt may be a failure or not
		if _, err := os.Stat(at.Addr.String); err == nil {
			t.Error("the socket is left")
		}
	})
}

// TestHostDies has the host end without a word, as after kill -9: the plugin goes with it.
func TestHostDies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language, name, dir string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, name+l.suffix)) //nolint:gosec // G204: what is tested
		sockets, err := os.MkdirTemp("", "s")                                      // t.TempDir is too long for a socket
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
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "1|1|unix|"+sockets) || !strings.HasSuffix(line, "|grpc|\n") {
			t.Fatalf("handshake %q (%v)", line, err)
		}
		if err := stdin.Close(); err != nil { // the only thing that the end of a host does everywhere
			t.Fatal(err)
		}
		exited := make(chan error, 1)
		go func() { exited <- cmd.Wait() }()
		select {
		case err := <-exited:
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("it is still there")
		}
	})
}
