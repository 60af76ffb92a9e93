package disk_test

import (
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/condensehq/condense/internal/disk"
)

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

// On Windows a gateway did not start: the drive in file://C: was taken for a host.
func TestSQLiteHasNoHost(t *testing.T) {
	for path, want := range map[string]string{
		`C:\Users\a b\x?.db`: "file:C:%5CUsers%5Ca%20b%5Cx%3F.db?mode=ro",
		"//server/x#1.db":    "file:%2F%2Fserver%2Fx%231.db?mode=ro",
	} {
		if got := disk.SQLite(path, url.Values{"mode": {"ro"}}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
