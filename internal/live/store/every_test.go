package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/store"
)

// testEvery tests a kind of store, which must pass all of these. Open returns a new, empty one; testEvery closes it. Reopen returns the
// same store as another process would open it, while the first one is open; nil means that
// the kind cannot be shared.
func testEvery(t *testing.T, open func(t *testing.T) store.Store, reopen func(t *testing.T) store.Store) {
	for name, test := range map[string]func(*testing.T, store.Store){
		"records come back latest first":   records,
		"keys never meet":                  keys,
		"the second writer has a conflict": conflicts,
		"of many writers one wins":         race,
		"data is not shared":               copies,
		"old and many records expire":      expires,
		"bad keys are refused":             refuses,
		"an ended context is an error":     canceled,
		"secrets stay":                     secrets,
		"originals are kept with a record": keeps,
		"originals expire with records":    forgets,
		"too many originals are refused":   full,
		"originals have one reader":        reads,
		"one record goes on from another":  decisions,
		"a tenant is forgotten":            forgetsTenant,
		"records of an API, of all":        since,
		"keeping and deleting meet":        keepsWhileDeleting,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			test(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if reopen == nil {
		return
	}
	t.Run("two processes share records and secrets", func(t *testing.T) {
		a := open(t)
		b := reopen(t)
		shared(t, a, b)
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	})
}

var (
	mine = store.Key{Tenant: "t1", API: "messages", Agent: "a1", Session: "s1"}
	noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
)

func save(t *testing.T, s store.Store, r *store.Record) {
	t.Helper()
	if err := s.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, s store.Store, k store.Key) []store.Record {
	t.Helper()
	found, err := s.Load(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func ids(found []store.Record) string {
	var b strings.Builder
	for _, r := range found {
		b.WriteString(r.ID + " ")
	}
	return strings.TrimSpace(b.String())
}
