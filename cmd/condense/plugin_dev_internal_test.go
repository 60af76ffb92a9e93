package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
)

func TestEveryRuleHasARepair(t *testing.T) {
	rules := append(core.Rules(), coretest.Contract()...)
	for _, r := range rules {
		if repairs[r.Name] == "" {
			t.Errorf("%s: no repair", r.Name)
		}
	}
	if len(repairs) != len(rules) {
		t.Errorf("%d repairs for %d rules", len(repairs), len(rules))
	}
}

// Whatever rule is broken, the author is told which, where and what to do.
func TestFaultsNameTheRepair(t *testing.T) {
	release := make(chan struct{})
	close(release)
	for _, sin := range coretest.Misbehaving(release) {
		if sin.Outcome != core.OutcomeRejected {
			continue
		}
		req := coretest.HalfRequest(coretest.Session())
		res, err := sin.Provider.Condense(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", sin.Name, err)
		}
		var b bytes.Buffer
		printFaults(&b, fmt.Errorf("plugin x: %w", core.Verify(req, res)))
		if !strings.Contains(b.String(), "    "+sin.Rule+": ") || !strings.Contains(b.String(), repairs[sin.Rule]) {
			t.Errorf("%s breaks %s; printed:\n%s", sin.Name, sin.Rule, b.String())
		}
	}
}

func TestOtherFaultsAreQuoted(t *testing.T) {
	var b bytes.Buffer
	printFaults(&b, errors.New("plugin x: no wish to work"))
	if got, want := b.String(), "    plugin x: no wish to work\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A new plugin compiles as it is written, whatever is saved is tried, and when it ends
// nothing is left: no process, no goroutine, no file.
func TestDevFollowsChanges(t *testing.T) {
	testkit.Process(t)
	temp, work := t.TempDir(), t.TempDir()
	for k, v := range map[string]string{
		// Offline: all that is needed was downloaded to build this test.
		"GOFLAGS": "-mod=readonly", "GOPROXY": "off", "GOSUMDB": "off", "GOWORK": "off", "TMPDIR": temp,
	} {
		t.Setenv(k, v)
	}
	t.Chdir(work)
	var said screen
	if code := run(t.Context(), []string{"plugin", "new", "tidy"}, nil, &said, &said); code != exitDone {
		t.Fatalf("plugin new: exit code %d\n%s", code, said.String())
	}
	goroutines := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"plugin", "dev", "tidy"}, nil, &said, &said) }()
	said.await(t, "tidy             insufficient 3,716 -> 3,573 tokens", "truncation       applied", "waiting for a change")

	source := filepath.Join("tidy", "provider.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	save := func(old, instead string) {
		t.Helper()
		if !strings.Contains(string(text), old) {
			t.Fatalf("%s does not contain %q", source, old)
		}
		said.clear()
		if err := os.WriteFile(source, []byte(strings.ReplaceAll(string(text), old, instead)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("if m.Protected {", "if m.Protected { messages[i].Parts = nil")
	said.await(t, "provider.go changed", "tidy             rejected", "keep-protected: message m2: ",
		"repair: skip messages with Protected set", "truncation       applied", "waiting for a change")
	save("return nil, err", "return err")
	said.await(t, "provider.go changed", "./provider.go:", "waiting for a change")

	cancel()
	select {
	case code := <-ended:
		if code != exitDone {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(testkit.Patience(t)):
		t.Fatal("it does not end")
	}
	goleak.VerifyNone(t, goroutines)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}

// A screen is what a person would see.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Reset()
}

// await returns when all texts are there, in this order.
func (s *screen) await(t *testing.T, texts ...string) {
	t.Helper()
	for end := time.Now().Add(testkit.Patience(t)); ; time.Sleep(20 * time.Millisecond) {
		rest, all := s.String(), true
		for _, text := range texts {
			i := strings.Index(rest, text)
			if all = all && i >= 0; !all {
				break
			}
			rest = rest[i+len(text):]
		}
		if all {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it does not say %q; it says\n%s", texts, s.String())
		}
	}
}

func TestSnapshotIgnoresWhatIsNoChange(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", "one")
	before, err := takeSnapshot(t.Context(), dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	for _, tt := range []struct {
		what string
		do   func()
		want string
	}{
		{"nothing", func() {}, ""},
		{"the time", func() {
			if err := os.Chtimes(filepath.Join(dir, "a.go"), later, later); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"a hidden folder", func() { write(".git/index", "x") }, ""},
		{"what was installed", func() { write("node_modules/x/y.js", "x") }, ""},
		{"the program itself", func() { write("condense-a", strings.Repeat("x", maxSource+1)) }, ""},
		{"the content", func() { write("a.go", "two") }, "a.go"},
		{"another file", func() { write("a.go", "one"); write("sub/b.go", "") }, "b.go"},
		{"a file less", func() { _ = os.RemoveAll(filepath.Join(dir, "sub")); _ = os.Remove(filepath.Join(dir, "a.go")) }, "a.go"},
	} {
		tt.do()
		after, err := takeSnapshot(t.Context(), dir, "", before)
		if err != nil {
			t.Fatal(err)
		}
		if got := after.changed(before); got != tt.want {
			t.Errorf("%s changed: got %q, want %q", tt.what, got, tt.want)
		}
	}
}
