package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/command"
	"github.com/condensehq/condense/internal/testkit"
)

// A new plugin compiles as written, every saved change is tried, and at the end nothing remains: no
// process, no goroutine, no file.
func TestDevFollowsChanges(t *testing.T) {
	testkit.Process(t)
	temp, work := t.TempDir(), t.TempDir()
	for k, v := range map[string]string{
		// Offline: every dependency was downloaded to build this test.
		"GOFLAGS": "-mod=readonly", "GOPROXY": "off", "GOSUMDB": "off", "GOWORK": "off", "TMPDIR": temp,
	} {
		t.Setenv(k, v)
	}
	t.Chdir(work)
	var said testkit.Log
	if code := command.Run(t.Context(), []string{"plugin", "new", "tidy"}, nil, &said, &said); code != cli.ExitDone {
		t.Fatalf("plugin new: exit code %d\n%s", code, said.String())
	}
	goroutines := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- command.Run(ctx, []string{"plugin", "dev", "tidy"}, nil, &said, &said) }()
	await(t, &said, "tidy             insufficient 23,813 -> 13,625 tokens", "truncation       applied", "waiting for a change")

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
		said.Reset()
		if err := os.WriteFile(source, []byte(strings.ReplaceAll(string(text), old, instead)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("if m.Protected {", "if m.Protected { messages[i].Parts = nil")
	await(t, &said, "provider.go changed", "tidy             rejected", "keep-protected: message m1: ",
		"repair: skip messages with Protected set", "truncation       applied", "waiting for a change")
	save("return nil, err", "return err")
	await(t, &said, "provider.go changed", "./provider.go:", "waiting for a change")

	cancel()
	select {
	case code := <-ended:
		if code != cli.ExitDone {
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

// A package that is to be compiled in is no program, and it is said where one would be.
func TestDevOfAPackage(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module example.com/tidy\n\ngo 1.26\n", "tidy.go": "package tidy\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said testkit.Log
	code := command.Run(t.Context(), []string{"plugin", "dev", ".", "--once"}, nil, &said, &said)
	if code == cli.ExitDone || !strings.Contains(said.String(), "is a package, not a program: name the folder of its package main") {
		t.Errorf("exit code %d\n%s", code, said.String())
	}
}

// await waits until said contains all texts, in this order.
func await(t *testing.T, said *testkit.Log, texts ...string) {
	t.Helper()
	for end := time.Now().Add(testkit.Patience(t)); ; time.Sleep(20 * time.Millisecond) {
		rest, all := said.String(), true
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
			t.Fatalf("it does not say %q; it says\n%s", texts, said.String())
		}
	}
}
