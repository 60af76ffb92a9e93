package store

import "testing"

// TestMemoryHasNoLimit: a store in memory is no file of SQLite's memdb, which is full at 1 GiB, before KeepBytes is reached.
func TestMemoryHasNoLimit(t *testing.T) {
	s, err := Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing depends on it
	var n int
	var name, file string
	if err := s.(*database).db.QueryRowContext(t.Context(), "PRAGMA database_list").Scan(&n, &name, &file); err != nil || file != "" {
		t.Errorf("the database is %s in %q (%v), want none", name, file, err)
	}
}
