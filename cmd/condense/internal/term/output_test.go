package term_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/term"
)

// A standard stream whose faults are remembered is still its file: 'condense wrap' gives it to the program that it starts, and
// a terminal is known by it.
func TestOutputIsStillItsFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	o := &term.Output{Writer: f}
	if term.File(o) != f || term.File(f) != f || term.File(&term.Output{Writer: &term.Output{}}) != nil {
		t.Error("the file is not found")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write([]byte("x")); !errors.Is(o.Err, os.ErrClosed) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("the fault is %v, remembered %v", err, o.Err)
	}
}
