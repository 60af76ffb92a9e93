//go:build unix

package access

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A file that has become a pipe is not opened: every request of the gateway would wait for its writer. The last valid content stays.
func TestFileThatBecomesAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := ""
	f, err := open(func(err error) { said = err.Error() }, func() (string, error) {
		text, err := os.ReadFile(path)
		return string(text), err
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f.looked = time.Time{}
	if got := f.get(); got != "old" || !strings.Contains(said, path) {
		t.Errorf("%q, and it said %q", got, said)
	}
}
