package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
)

func put(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// folder checks that a folder has exactly these files, with this content.
func folder(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if wanted, ok := want[e.Name()]; !ok || string(text) != wanted {
			t.Errorf("%s: got %q, want %q", e.Name(), text, wanted)
		}
	}
	if len(entries) != len(want) {
		t.Errorf("got %d files, want %d", len(entries), len(want))
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "old"), "before", 0o640)
	for name, mode := range map[string]fs.FileMode{"old": 0o640, "new": 0o600} {
		o, err := cli.OpenFile(filepath.Join(dir, name), 0o700) // as of a program
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Write([]byte("after")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s: got mode %v, want %v", name, info.Mode(), mode)
		}
	}
	folder(t, dir, map[string]string{"old": "after", "new": "after"})
}

// The owner of a file may change it between OpenFile and Write.
func TestWriteDoesNotOverwriteWhatSomethingElseWrote(t *testing.T) {
	dir := t.TempDir()
	for name, meanwhile := range map[string]func(path string){
		"extended": func(path string) { put(t, path, "before and more", 0o600) },
		"replaced": func(path string) {
			put(t, path+".new", "other", 0o600)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
		"created": func(path string) { put(t, path, "other", 0o600) },
	} {
		path := filepath.Join(dir, name)
		if name != "created" {
			put(t, path, "before", 0o600)
		}
		o, err := cli.OpenFile(path, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		meanwhile(path)
		if err := o.Write([]byte("after")); err == nil || !strings.HasPrefix(err.Error(), "write "+path+": another program has ") {
			t.Errorf("%s: got error %v, want that another program has written", name, err)
		}
	}
	folder(t, dir, map[string]string{"extended": "before and more", "replaced": "other", "created": "other"})
}

// Links are followed, also to other links, and a cycle is an error.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for name, target := range map[string]string{"a": "b", "b": filepath.Join(dir, "c"), "x": "y", "y": "x"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	if _, err := cli.OpenFile(filepath.Join(dir, "x"), 0o600); err == nil || !strings.HasPrefix(err.Error(), "write "+filepath.Join(dir, "x")+": ") {
		t.Errorf("got error %v, want one that names the link", err)
	}
	for range 2 { // the second time there is a file
		o, err := cli.OpenFile(filepath.Join(dir, "a"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Write([]byte("after")); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "c")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("got %v, %v, want that the file at the end of the links was written", info, err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "a")); err != nil || info.Mode().IsRegular() {
		t.Errorf("got %v, %v, want that the link is there", info, err)
	}
}
