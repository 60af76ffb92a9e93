//go:build linux

package supervise_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins/supervise"
)

func TestCondense(t *testing.T) {
	noLeaks(t)
	for name, plaintext := range map[string]bool{"mutual TLS": false, "plaintext": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "window")
			b.spec.Plaintext = plaintext
			p := b.open(t)
			req := request()
			out, err := chain(t, p, time.Minute).Run(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if out.Provider != "acme" || out.TokensAfter > req.Budget.Target {
				t.Errorf("got %d tokens by %s; want at most %d by acme: %+v", out.TokensAfter, out.Provider, req.Budget.Target, out.Attempts)
			}
		})
	}
}

// TestConformance runs the conformance suite.
func TestConformance(t *testing.T) {
	b := newBench(t, "window")
	p := b.open(t)
	coretest.Run(t, func(*testing.T) core.CondensationProvider { return p })
}

// TestOneProcess: many concurrent calls start one process.
func TestOneProcess(t *testing.T) {
	b := newBench(t, "window")
	p := b.open(t)
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			if _, err := p.Condense(t.Context(), request()); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if s := p.Seen(); s.Starts != 1 || s.State != supervise.StateReady {
		t.Errorf("got %d starts and state %s; want 1 and ready", s.Starts, s.State)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("text"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sum := strings.Repeat("0", 64)
	program := write("program", 0o755)
	for _, tt := range []struct {
		name string
		spec supervise.Spec
		want string
		is   error
	}{
		{"missing", supervise.Spec{Path: filepath.Join(dir, "none"), SHA256: sum}, "none does not exist", fs.ErrNotExist},
		{"not executable", supervise.Spec{Path: write("data", 0o644), SHA256: sum}, `data is not executable \(mode -rw-r--r--\): try chmod \+x`, fs.ErrPermission},
		{"folder", supervise.Spec{Path: dir, SHA256: sum}, "is a folder, not a program", nil},
		{"device", supervise.Spec{Path: os.DevNull, SHA256: sum}, "/dev/null is not a file", nil},
		{"by a relative program", supervise.Spec{Path: program, SHA256: sum, Interpreter: []string{"bin/condense"}}, `"bin/condense" is not absolute`, nil},
		{"relative", supervise.Spec{Path: "program", SHA256: sum}, `path: "program" is not absolute; a plugin is never looked up`, nil},
		{"no path", supervise.Spec{SHA256: sum}, "path: missing", nil},
		{"not pinned", supervise.Spec{Path: program}, "sha256: missing; pin the plugin", nil},
		{"no digest", supervise.Spec{Path: program, SHA256: "latest"}, `sha256: "latest" is not a digest of 64 hexadecimal digits`, nil},
		{"environment", supervise.Spec{Path: program, SHA256: sum, Env: []string{"*"}}, `env: "\*" is not NAME, NAME\* or NAME=value`, nil},
		{"settings", supervise.Spec{Path: program, SHA256: sum, Settings: []byte("[]")}, "settings: not a JSON object", nil},
		{"tree", supervise.Spec{Path: program, SHA256: sum, Tree: "/usr/share"}, `tree: "/usr/share" is not the absolute path of a folder that contains`, nil},
		{"two faults", supervise.Spec{Path: "program"}, `(?s)path: .*\n.*sha256: missing`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Name = "acme"
			p, err := supervise.Open(tt.spec, nil)
			if p != nil || err == nil {
				t.Fatalf("got %v, %v; want an error", p, err)
			}
			if !regexp.MustCompile(tt.want).MatchString(err.Error()) || !strings.HasPrefix(err.Error(), "plugin acme: ") {
				t.Errorf("got %q; want %q about plugin acme", err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %v; want it to wrap %v", err, tt.is)
			}
		})
	}
}

// TestDoesNotStart has the error of every way not to start. The first call fails with it;
// the next one is refused, and quotes it; the conversation is truncated.
func TestDoesNotStart(t *testing.T) {
	const early = "it ended before its handshake "
	type test struct {
		program string
		change  func(*bench)
		want    string
	}
	tests := []test{
		{"ends-early", nil, early + `\(exit status 3\); it wrote: cannot open the database: no such file`},
		{"ends-silently", nil, early + `\(exit status 0\) and wrote nothing`},
		{"panics-early", nil, early + `\(exit status 2\); it wrote: panic: no configuration at programs_test\.go:\d+`},
		{"garbage", nil, `it wrote "DEBUG starting up" to standard output before its handshake; standard output is for the handshake, write logs to standard error`},
		{"garbage-endless", nil, `it wrote "x{200}"… to standard output before its handshake; .*`},
		{"silent", quickly, `it was not ready within 2s: it wrote no handshake to standard output`},
		{"wrong-cookie", nil, early + `\(exit status 1\): it is a plugin for another program: its handshake has another cookie`},
		{"other-release", nil, early + `\(exit status 2\): it does not accept this host's handshake: it was built for another release of condense`},
		{"wrong-version", nil, `it uses version "7" of the condense protocol, this host version 1; update the host`},
		{"wrong-core", nil, `it uses version "2" of go-plugin's handshake, this host version 1`},
		{"speaks-netrpc", nil, `it does not offer gRPC: the fifth field of its handshake must be grpc`},
		{"listens-elsewhere", nil, `it listens on ".*/s", which is not in the folder that PLUGIN_UNIX_SOCKET_DIR names`},
		{"links-elsewhere", nil, `it announces ".*/link", which is not a socket`},
		{"listens-on-tcp", nil, `it listens on "tcp" "127.0.0.1:9"; want a unix socket in the folder that PLUGIN_UNIX_SOCKET_DIR names`},
		{"socket-missing", nil, `it announces a socket that does not exist: .*`},
		{"socket-dead", nil, `it does not accept connections at its announced address: .* connection refused`},
		{"socket-mute", quickly, `it was not ready within 2s: it did not answer on its socket`},
		{"unasked-certificate", quickly, `it was not ready within 2s: it did not answer on its socket`},
		{"no-certificate", encrypted, `it offers no certificate: it must serve with TLS if PLUGIN_CLIENT_CERT is set and announce its certificate, or be configured as plaintext`},
		{"window", wrongSettings, `settings: unknown setting "mood"; there are mode, keep_first, fraction, messages, head_share`},
		{"window", wrongDigest, `\S+ is not the plugin that was pinned: its SHA-256 is [0-9a-f]{64}, pinned is 0{64}; if you changed or updated it yourself, pin it again \(condense plugin pin\), otherwise find out who did`},
		{"window", notAProgram, `it is not a program for this system: it was built for another system, is empty, or is a script without a #! line`},
		{"window", noInterpreter, `the interpreter or loader that it names does not exist`},
		{"window", deepFolder, `the path of a socket in \S+ would have \d+ bytes, and may have 103: set TMPDIR to a shorter folder`},
	}
	together(t, tests, func(tt test) string { return tt.program }, func(t *testing.T, tt test) {
		b := newBench(t, tt.program)
		b.opts.Restart = supervise.Restart{Min: time.Hour, Max: time.Hour}
		if tt.change != nil {
			tt.change(b)
		}
		p := b.open(t)
		req := request()
		out, err := chain(t, p, time.Minute).Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		att := out.Attempts[0]
		if want := regexp.MustCompile(`^start plugin acme: ` + tt.want + `$`); att.Outcome != core.OutcomeFailed || !want.MatchString(att.Err.Error()) {
			t.Errorf("got %s, %q\nwant failed, %q", att.Outcome, att.Err, want)
		}
		if out.Provider != "truncation" || out.TokensAfter > req.Budget.Limit {
			t.Errorf("got %d tokens by %s; want at most %d by truncation", out.TokensAfter, out.Provider, req.Budget.Limit)
		}
		_, err = p.Condense(t.Context(), req)
		if again := regexp.MustCompile(`^plugin acme: it ended or did not start; the next start is in \S+ \(start plugin acme: ` + tt.want + `\)$`); !errors.Is(err, core.ErrUnavailable) || !again.MatchString(err.Error()) {
			t.Errorf("second call: got %q\nwant unavailable, %q", err, again)
		}
	})
}

func quickly(b *bench)       { b.spec.Limits.Start = 2 * time.Second }
func encrypted(b *bench)     { b.spec.Plaintext = false }
func wrongSettings(b *bench) { b.spec.Settings = []byte(`{"mood": "good"}`) }
func wrongDigest(b *bench)   { b.spec.SHA256 = strings.Repeat("0", 64) }
func notAProgram(b *bench)   { b.install("#no program\n") }
func noInterpreter(b *bench) { b.install("#!/no/such/interpreter\n") }

func deepFolder(b *bench) {
	b.opts.TempDir = filepath.Join(b.dir, strings.Repeat("deep/", 12))
	must(os.MkdirAll(b.opts.TempDir, 0o700))
}

// TestGoneMeanwhile: the program is removed between opening and starting.
func TestGoneMeanwhile(t *testing.T) {
	b := newBench(t, "window")
	b.install("#!/bin/sh\n")
	p := b.open(t)
	must(os.Remove(b.spec.Path))
	out, err := chain(t, p, time.Minute).Run(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if a := out.Attempts[0]; a.Outcome != core.OutcomeFailed || !errors.Is(a.Err, fs.ErrNotExist) || out.Provider != "truncation" {
		t.Errorf("got %s, %q, then %s; want failed, because it does not exist, then truncation", a.Outcome, a.Reason, out.Provider)
	}
}

// TestChecksumError is for programs that show both digests.
func TestChecksumError(t *testing.T) {
	b := newBench(t, "window")
	is := b.spec.SHA256
	wrongDigest(b)
	_, err := b.open(t).Condense(t.Context(), request())
	var sum *supervise.ChecksumError
	if !errors.As(err, &sum) || sum.Got != is || sum.Want != b.spec.SHA256 || sum.Path != b.spec.Path {
		t.Errorf("got %+v; want both digests", sum)
	}
}
