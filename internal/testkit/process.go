package testkit

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Program returns the path of the program condense of this checkout, whose root is at root: the one that PROGRAM_UNDER_TEST names,
// so that CI links it once, or one that it builds as the file path.
func Program(root, path string) (string, error) {
	if built := os.Getenv("PROGRAM_UNDER_TEST"); built != "" {
		return built, nil
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "./cmd/condense") //nolint:gosec,noctx // of tests, also before the first
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// Start starts cmd and returns its standard output.
func Start(tb testing.TB, cmd *exec.Cmd) io.ReadCloser {
	tb.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// Eventually waits until ok, and fails the test if that never happens.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(Patience(tb)); !ok(); time.Sleep(2 * time.Millisecond) { //nolint:forbidigo // for conditions without an event to wait for
		if time.Now().After(end) {
			tb.Fatalf("never: %s", what)
		}
	}
}

// A Log is text that can be read while others write it.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the text.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset removes the text.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
