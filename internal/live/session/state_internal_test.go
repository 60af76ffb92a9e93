package session

import (
	"testing"
)

// TestNewEntryFree: a lineage that was never stored can have several epochs, one after each way back to before it. Each gets a record
// of its own, and another gateway that knows the same ones takes the same name.
func TestNewEntryFree(t *testing.T) {
	for range 2 {
		s := &Session{}
		for _, want := range []string{"X-1", "X-2", "X-3"} {
			c := &Lease{Entry: &Entry{ID: "X"}, Session: s}
			e, from := c.NewEntry()
			if e.ID != want || from != nil {
				t.Errorf("the epoch is record %q from %v, not %q", e.ID, from, want)
			}
			s.entries = append(s.entries, e)
		}
	}
}
