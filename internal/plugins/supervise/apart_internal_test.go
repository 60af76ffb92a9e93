//go:build linux

package supervise

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// TestAFileThatMayNotBeExecutedCostsNoIsolation: a program that cannot be executed fails with
// the same error as namespaces that the system refuses. It must not cost all later plugins
// theirs.
func TestAFileThatMayNotBeExecutedCostsNoIsolation(t *testing.T) {
	testkit.Process(t)
	before := together.Load()
	path := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &child{path: path, args: []string{path}}
	if _, err := c.start(nil, nil, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, want that it is not permitted", err)
	}
	if together.Load() != before {
		t.Error("plugins get no namespaces of their own any more")
	}
}
