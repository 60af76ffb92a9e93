package store_test

import (
	"bytes"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/store"
)

// decisions: of many writers based on the same version of a record, one wins.
func decisions(t *testing.T, s store.Store) {
	const writers = 8
	save(t, s, &store.Record{ID: "old", Key: mine, Updated: noon, Data: []byte("old")})
	won := make([]bool, writers)
	var wait sync.WaitGroup
	for i := range writers {
		wait.Go(func() {
			r := &store.Record{ID: "new" + strconv.Itoa(i), Key: mine, Updated: noon.Add(time.Hour), Set: "s" + strconv.Itoa(i), From: &store.Record{ID: "old", Version: 1}}
			err := s.Save(t.Context(), r)
			if i%2 == 0 && err != nil {
				err = s.Keep(t.Context(), r, &store.Kept{Originals: []store.Original{{Kind: "k", Data: []byte("x")}}}, 0)
			}
			switch won[i] = err == nil; {
			case won[i] && (r.Version != 1 || r.From.Version != 2):
				t.Errorf("versions %d and %d after the decision", r.Version, r.From.Version)
			case !won[i] && !errors.Is(err, store.ErrConflict):
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	got := load(t, s, mine)
	if len(got) != 2 || got[1].ID != "old" || got[1].Version != 2 || string(got[1].Data) != "old" || size(t, s) != 0 {
		t.Fatalf("got %+v, want one decision and the old record", got)
	}
	for i, w := range won {
		if w != (got[0].ID == "new"+strconv.Itoa(i)) {
			t.Errorf("%s is there, and writer %d won: %v", got[0].ID, i, w)
		}
	}
	other := store.Key{Tenant: "t2"}
	if err := s.Save(t.Context(), &store.Record{ID: "z", Key: other, From: &store.Record{ID: "old", Version: 2}}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a record of another tenant was gone on from: %v", err)
	}
}

func forgetsTenant(t *testing.T, s store.Store) {
	keep(t, s, &store.Record{ID: "a", Key: mine, Updated: noon, Reader: "me", Set: "a"}, "h1", "a")
	keep(t, s, &store.Record{ID: "b", Key: store.Key{Tenant: "t2"}, Updated: noon.Add(time.Hour), Reader: "me", Set: "a"}, "h2", "b")
	if got, err := s.List(t.Context(), ""); err != nil || ids(got) != "b a" || got[0].Data != nil {
		t.Errorf("all records are %+v (%v)", got, err)
	}
	if got, err := s.List(t.Context(), "t1"); err != nil || ids(got) != "a" || got[0].Key != mine || got[0].Set != "a" {
		t.Errorf("the records of a tenant are %+v (%v)", got, err)
	}
	if n, err := s.Forget(t.Context(), "t1"); err != nil || n != 1 || len(load(t, s, mine)) != 0 || kept(t, s, "t1", "a") != "" {
		t.Errorf("%d records deleted (%v)", n, err)
	}
	if got := kept(t, s, "t2", "a"); got != "b" {
		t.Errorf("the other tenant has %q", got)
	}
	if n, err := s.Forget(t.Context(), "another"); err != nil || n != 0 {
		t.Errorf("%d records of an unknown tenant deleted (%v)", n, err)
	}
	for i, tenant := range []string{"team:1", "team:2", "team2:1", "team"} {
		save(t, s, &store.Record{ID: "n" + strconv.Itoa(i), Key: store.Key{Tenant: tenant}, Updated: noon})
	}
	if got, err := s.List(t.Context(), "team"); err != nil || ids(got) != "n0 n1 n3" {
		t.Errorf("the records of a tenant with several keys are %s (%v)", ids(got), err)
	}
	if n, err := s.Forget(t.Context(), "team"); err != nil || n != 3 {
		t.Errorf("%d records of a tenant with several keys deleted (%v)", n, err)
	}
}

func shared(t *testing.T, a, b store.Store) {
	changes := func(s store.Store) int64 {
		t.Helper()
		n, err := s.Changes(t.Context(), mine)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ofB := changes(b)
	r := &store.Record{ID: "r", Key: mine, Updated: noon, Data: []byte("of a")}
	save(t, a, r)
	if changes(b) == ofB {
		t.Error("a change is not seen by the other process")
	}
	got := load(t, b, mine)
	if len(got) != 1 || string(got[0].Data) != "of a" {
		t.Fatalf("the other process finds %+v", got)
	}
	got[0].Data = []byte("of b")
	save(t, b, &got[0])
	if err := a.Save(t.Context(), r); !errors.Is(err, store.ErrConflict) {
		t.Errorf("got error %v, want a conflict", err)
	}
	ofA := changes(a)
	if changes(a) != ofA {
		t.Error("a change is seen where there is none")
	}
	if _, err := b.Forget(t.Context(), mine.Tenant); err != nil || changes(a) == ofA {
		t.Errorf("that a record was deleted is not seen by the other process (%v)", err)
	}
	one, err := a.Secret(t.Context(), "tenants")
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Secret(t.Context(), "tenants")
	if err != nil || !bytes.Equal(one, other) {
		t.Errorf("two processes have different secrets (%v)", err)
	}
}
