//go:build unix

package pluginexamples_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDecode: what the SDK for Node decodes by hand is as its loader decodes it.
func TestDecode(t *testing.T) {
	t.Parallel()
	l := languages[0]
	dir := l.folder("decode", map[string]string{"decode.mjs": filepath.Join("testdata", "decode.mjs")}).dir(t)
	out, err := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "decode.mjs")).CombinedOutput()
	if err != nil || string(out) != "equal\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
