//go:build unix

package pluginexamples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissingPackages starts plugins without the packages that they need: the error says how to
// install them.
func TestMissingPackages(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			full := l.tricks.dir(t) // the test may be skipped
			dir := t.TempDir()
			want := ""
			for _, name := range []string{"condense", l.tricks.program} {
				if err := copyAny(filepath.Join(dir, name), filepath.Join(full, name)); err != nil {
					t.Fatal(err)
				}
			}
			switch l.name {
			case "node":
				want = "npm ci"
			case "python": // they are installed in the system, so one is shadowed
				want = "apt-get install python3-grpcio python3-protobuf python3-cryptography"
				text := "raise ImportError(name='grpc')\n"
				if err := os.WriteFile(filepath.Join(dir, "grpc.py"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := open(t, folderAt(dir, l.tricks.program), "")
			if _, err := p.Describe(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
		})
	}
}
