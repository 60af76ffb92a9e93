package servecmd

import (
	"os"
	"path/filepath"
	"testing"
)

// A run that was killed could not remove its folder, which can hold the recall secret: the next run does, and touches
// nothing else.
func TestFoldersOfKilledRunsAreRemoved(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	running, err := newRunFolder()
	if err != nil {
		t.Fatal(err)
	}
	killed, err := newRunFolder()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(killed.path, "mcp.json"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := killed.lock.Unlock(); err != nil { // as the system does
		t.Fatal(err)
	}
	foreign := filepath.Join(temp, runPrefix+"being made")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := newRunFolder()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{running.path: true, killed.path: false, foreign: true, next.path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %t", path, err, want)
		}
	}
	for _, f := range []*runFolder{running, next} {
		if err := f.remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(f.path); err == nil {
			t.Errorf("%s is still there", f.path)
		}
	}
}
