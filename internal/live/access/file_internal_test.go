package access

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that could not be read for a moment is read again, though it has not changed since: a token that was removed
// must not stay valid.
func TestFileIsReadAfterAMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	var broken error
	reports := 0
	f, err := open(func(error) { reports++ }, func() (string, error) {
		text, err := os.ReadFile(path)
		return string(text), errors.Join(err, broken)
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	later := func() string {
		f.looked = time.Time{}
		return f.get()
	}
	write("newer")
	broken = errors.New("too many open files")
	if got := later() + later(); got != "oldold" || reports != 1 {
		t.Errorf("%q, %d reports of one fault", got, reports)
	}
	broken = nil
	if got := later(); got != "newer" {
		t.Errorf("%q after the fault was over", got)
	}
}
