package disk_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/disk"
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
		o, err := disk.Open(filepath.Join(dir, name), 0o700) // as of a program
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

// The owner of a file may change it between Open and Write.
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
		o, err := disk.Open(path, 0o600)
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
	if _, err := disk.Open(filepath.Join(dir, "x"), 0o600); err == nil || !strings.HasPrefix(err.Error(), "write "+filepath.Join(dir, "x")+": ") {
		t.Errorf("got error %v, want one that names the link", err)
	}
	for range 2 { // the second time there is a file
		o, err := disk.Open(filepath.Join(dir, "a"), 0o600)
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

func TestPut(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.Mkdir(in, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(in, "a")
	for _, text := range []string{"one", "two"} {
		if err := disk.Put(file, dir, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file for its owner alone", info, err)
	}
	if err := disk.Put(filepath.Join(dir, "absent", "a"), dir, nil); err == nil {
		t.Error("a file was written to a folder that does not exist")
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("got %v, %v, want no temporary file", names, err)
	}
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	write := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, _ = io.WriteString(w, text)
			return err
		}
	}
	broken := errors.New("broken")
	if err := disk.Create(file, write("half", broken)); !errors.Is(err, broken) {
		t.Errorf("got %v, want the writer's error", err)
	}
	if err := disk.Create(file, write("whole", nil)); err != nil {
		t.Fatal(err)
	}
	if err := disk.Create(file, write("other", nil)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "whole" {
		t.Errorf("got %q, %v", got, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("got %v, %v, want no temporary file", names, err)
	}
}
