// Package peers installs other projects' programs for tests, and reports missing requirements.
package peers

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// require makes a test fail instead of skip if programs of others are missing. CI sets it to 1.
const require = "CONDENSE_REQUIRE_PEERS"

// Missing ends a test that lacks another project's program. Untried names the untested feature.
func Missing(t *testing.T, untried, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if os.Getenv(require) == "1" {
		t.Fatalf("%s, and %s=1 demands it", why, require)
	}
	t.Skipf("%s: %s", untried, why)
}

// Node returns the path of node and a folder with the packages that package-lock.json in
// the working directory pins. They are installed once for each lockfile, in the user's
// cache directory under name.
func Node(t *testing.T, name, untried string) (node, dir string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		Missing(t, untried, "node is not installed")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		Missing(t, untried, "npm is not installed")
	}
	files := map[string][]byte{}
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
		sum.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir = filepath.Join(cache, "condense", name, hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		install(t, npm, dir, untried, files)
	}
	return node, dir
}

// install runs npm ci in a temporary folder and renames it to dir, so that dir is complete whenever
// it exists.
func install(t *testing.T, npm, dir, untried string, files map[string][]byte) {
	t.Helper()
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp(parent, "install-*") //nolint:usetesting // on the file system that it is moved on
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // nothing is there after the rename
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(tmp, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		Missing(t, untried, "npm ci: %v\n%s", err, out)
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}
