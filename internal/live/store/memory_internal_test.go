package store

import "testing"

// TestMemoryHasNoLimit: a store in memory is no file of SQLite's memdb, which is full at 1 GiB, before KeepBytes is reached; and it may be
// closed again.
func TestMemoryHasNoLimit(t *testing.T) {
	s, err := Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mode string // a database without a file keeps it
	if err := s.(*database).db.QueryRowContext(t.Context(), "PRAGMA journal_mode=truncate").Scan(&mode); err != nil || mode != "memory" {
		t.Errorf("the journal's mode is %q (%v), as of a file", mode, err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
