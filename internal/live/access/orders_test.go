package access_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/access"
)

// A link in the place of the secret, which may lead to a pipe or an endless device, is not read, nor is a file that is too large, too
// short, or for others.
func TestSecretOfOrdersIsASmallFileOfTheUser(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes there")
	}
	for name, put := range map[string]func(path string) error{
		"an endless device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a link": func(path string) error {
			known := filepath.Join(filepath.Dir(path), "known")
			if err := os.WriteFile(known, []byte(strings.Repeat("A", 26)), 0o600); err != nil {
				return err
			}
			return os.Symlink(known, path)
		},
		"a folder":    func(path string) error { return os.Mkdir(path, 0o700) },
		"a large one": func(path string) error { return os.WriteFile(path, make([]byte, 1<<20), 0o600) },
		"a short one": func(path string) error { return os.WriteFile(path, []byte("abc"), 0o600) },
		"for others":  func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("A", 26)), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			t.Setenv("XDG_STATE_HOME", state)
			t.Setenv("HOME", state)
			path := filepath.Join(state, "condense", "orders.key")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			if secret, err := access.Orders(true); err == nil || !strings.Contains(err.Error(), "delete it") {
				t.Errorf("the secret is %q, %v", secret, err)
			}
		})
	}
}
