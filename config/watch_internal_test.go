package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that is written in pieces is loaded when it no longer changes, even if each piece is
// valid by itself.
func TestPollWaitsUntilSettled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "condense.yaml")
	set := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("threshold: 50\n")
	w, err := Watch(t.Context(), Options{Path: file, Env: []string{}}, &WatchOptions{Interval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { <-w.Done() })
	expect := func(step string, coming bool, want float64) {
		t.Helper()
		if got := w.poll(); got != coming {
			t.Errorf("%s: a change is on its way: got %t, want %t", step, got, coming)
		}
		if got := *w.Current().Values().Threshold; got != want {
			t.Errorf("%s: got %v, want %v", step, got, want)
		}
	}
	expect("unchanged", false, 50)
	set("threshold: 6\n")
	expect("the first piece", true, 50)
	set("threshold: 60\n")
	expect("the second piece", true, 50)
	expect("settled", false, 60)
	expect("unchanged again", false, 60)
	set("threshold: 70\n")
	expect("changed", true, 60)
	set("threshold: 60\n")
	expect("changed back", false, 60)
	set("threshold: 3\n")
	expect("wrong", true, 60)
	expect("wrong and settled", false, 60)
	set("threshold: 80\n")
	expect("right again", true, 60)
	expect("right and settled", false, 80)
}
