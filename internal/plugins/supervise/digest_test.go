package supervise_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/plugins/supervise"
)

// The digest of a folder depends on everything except the files that change independently
// of the plugin, such as its own pin.
func TestDigestOfTree(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() string {
		t.Helper()
		sum, err := supervise.Digest(supervise.Spec{Path: filepath.Join(dir, "plugin.py"), Tree: dir})
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	put("plugin.py", "#!/usr/bin/python3")
	before := digest()
	for _, name := range []string{"condense.lock", ".git/HEAD", "pkg/__pycache__/x.pyc"} {
		if put(name, "x"); digest() != before {
			t.Errorf("%s changes the digest", name)
		}
	}
	for _, name := range []string{"pkg/condense.lock", "other.py", "pkg/git"} {
		put(name, "x")
		after := digest()
		if after == before {
			t.Errorf("%s does not change the digest", name)
		}
		before = after
	}
}

// No name of a file can be read as the line of another file in the list that is pinned: a file in place of two would not change
// the digest.
func TestNoNameHidesAFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{fmt.Sprintf("allow.txt\n%x  b.txt", sha256.Sum256(nil)), "lib\r/x", "a\x1bb", "a\x7f"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Skip("such names cannot be written here: ", err)
		}
		_, err := supervise.Digest(supervise.Spec{Path: filepath.Join(dir, "run.sh"), Tree: dir})
		if err == nil || !strings.Contains(err.Error(), "has a control character: rename the file") || strings.ContainsAny(err.Error(), "\n\r\x1b") {
			t.Errorf("%q: got %v", name, err)
		}
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
	}
}
