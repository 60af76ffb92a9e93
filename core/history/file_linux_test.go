package history_test

import (
	"errors"
	"os/signal"
	"syscall"
	"testing"
)

// A disk that is full in the middle of a write: here the limit on the size of files,
// which the kernel enforces in the same way, byte by byte.
func TestFailedWriteLeavesNoPartialLine(t *testing.T) {
	f, path := create(t)
	run(t, f.Journal, "append a b")
	before := content(t, path)

	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	tight := syscall.Rlimit{Cur: uint64(len(before)) + 10, Max: limit.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &tight); err != nil {
		t.Fatal(err)
	}
	var errs []error
	for _, step := range []string{"append c", "condense X hide a; insert S after a", "rewind a"} {
		errs = append(errs, do(t, f.Journal, step))
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}

	for _, err := range errs {
		if !errors.Is(err, syscall.EFBIG) {
			t.Errorf("got error %v, want that the file is too large", err)
		}
	}
	if got := content(t, path); got != before {
		t.Errorf("the file changed from %q to %q", before, got)
	}
	if got := says(f.View()); got != "a b" {
		t.Errorf("got view %s, want a b", got)
	}
	run(t, f.Journal, "append c", "condense X hide a; insert S after a") // there is room again
	if got, want := content(t, path), encode(t, f.Journal); got != want {
		t.Errorf("got file %s\nwant %s", got, want)
	}
}
