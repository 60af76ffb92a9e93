package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/testkit"
)

// A host appends to its journal while a user runs commands on the same file. No message that the
// host has written may be missing, and each command reports why it did nothing.
func TestCommandUnderARunningHostLosesNoMessage(t *testing.T) {
	testkit.Process(t)
	path := filepath.Join(t.TempDir(), "session.jsonl")
	f, err := history.Create(path, json.RawMessage(`{"format":""}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	said := 0
	say := func() {
		t.Helper()
		id := fmt.Sprintf("m%d", said)
		m := core.Message{ID: id, Role: core.RoleUser, Parts: []core.Part{core.Text(strings.Repeat(id+" ", 500))}}
		if err := f.Append(m); err != nil {
			t.Fatal(err)
		}
		said++
	}
	for range 20 {
		say()
	}
	c := history.Condensation{ID: "X", Edit: core.Edit{Hide: []string{"m0"}}}
	if err := f.Condense(c); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(`[{"role":"user","content":"Hello"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"undo", path, "-i"},
		{"rewind", "--to", "3", path, "-i"},
		{"undo", path, "-o", path},
		{"run", path, "-o", path, "--force", "--window", "4000", "--max-output", "100"},
		{"run", other, "-o", path, "--to", "condense"},
	} {
		cmd := exec.CommandContext(t.Context(), "condense", args...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- cmd.Wait() }()
		for running := true; running; {
			say()
			select {
			case err = <-done:
				running = false
			default:
			}
		}
		if err == nil || !strings.Contains(stderr.String(), path+": another program, such as a running agent, has it open for writing, and nothing was changed") {
			t.Errorf("condense %q: got %v and %q, want that it is in use", args, err, stderr.String())
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, recovery, err := history.Open(path)
	if err != nil || recovery != nil {
		t.Fatal(err, recovery)
	}
	t.Cleanup(func() { _ = again.Close() })
	if got := len(again.Messages()); got != said {
		t.Errorf("the host wrote %d messages, and %d are there", said, got)
	}
}
