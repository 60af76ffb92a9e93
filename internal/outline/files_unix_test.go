//go:build unix

package outline_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/condensehq/condense/internal/outline"
)

// TestFilesPipe does not wait for someone to write into a pipe.
func TestFilesPipe(t *testing.T) {
	t.Parallel()
	root, _ := tree(t)
	if err := syscall.Mkfifo(filepath.Join(root, "pipe.go"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, skipped := fold(t, []string{"pipe.go"}, outline.Options{Root: root})
	if got := skipped["pipe.go"]; !strings.Contains(got, "not a regular file") {
		t.Errorf("got %q", got)
	}
}
