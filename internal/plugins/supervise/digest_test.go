package supervise_test

import (
	"os"
	"path/filepath"
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
