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

func records(t *testing.T, s store.Store) {
	if got := load(t, s, mine); len(got) != 0 {
		t.Errorf("an empty store has %d records", len(got))
	}
	for i, data := range [][]byte{[]byte("one"), nil, bytes.Repeat([]byte{0, 1, 0xff}, 1<<20)} {
		r := &store.Record{ID: "r" + strconv.Itoa(i), Key: mine, Updated: noon.Add(time.Duration(i) * time.Millisecond), Data: data}
		save(t, s, r)
		if r.Version != 1 {
			t.Errorf("version %d after the first save", r.Version)
		}
		got := load(t, s, mine)[0]
		if got.ID != r.ID || got.Key != mine || got.Version != 1 || !got.Updated.Equal(r.Updated) || !bytes.Equal(got.Data, data) {
			t.Errorf("got %s %v version %d at %v, %d bytes; want what was saved", got.ID, got.Key, got.Version, got.Updated, len(got.Data))
		}
	}
	first := load(t, s, mine)[2]
	first.Updated, first.Data = noon.Add(time.Hour), []byte("one more")
	save(t, s, &first)
	if got := ids(load(t, s, mine)); got != "r0 r2 r1" {
		t.Errorf("got %s, want the latest first", got)
	}
	if got := load(t, s, mine)[0]; got.Version != 2 || string(got.Data) != "one more" {
		t.Errorf("got version %d with %q", got.Version, got.Data)
	}
}

func since(t *testing.T, s store.Store) {
	for i, k := range []store.Key{{Tenant: "t1", API: "evidence"}, {Tenant: "t2", API: "evidence", Session: "s"}, mine, {Tenant: "acme:t3", API: "evidence"}} {
		save(t, s, &store.Record{ID: "r" + strconv.Itoa(i), Key: k, Updated: noon.Add(time.Duration(i) * time.Second), Data: []byte(k.Tenant)})
	}
	for _, want := range []struct {
		since time.Time
		limit int
		ids   string
	}{{time.Time{}, 10, "r3 r1 r0"}, {noon.Add(time.Second), 10, "r3 r1"}, {time.Time{}, 1, "r3"}, {noon.Add(time.Hour), 10, ""}} {
		got, err := s.Since(t.Context(), "evidence", want.since, want.limit)
		if err != nil {
			t.Fatal(err)
		}
		if ids(got) != want.ids {
			t.Errorf("since %v, at most %d: got %q, want %q", want.since, want.limit, ids(got), want.ids)
		}
		for _, r := range got {
			if string(r.Data) != r.Key.Tenant || r.Key.API != "evidence" || r.Version != 1 || r.Updated.Before(want.since) {
				t.Errorf("got %+v", r)
			}
		}
	}
}

func keys(t *testing.T, s store.Store) {
	all := []store.Key{
		{},
		{Tenant: "t1"},
		{API: "t1"},
		{Agent: "t1"},
		{Session: "t1"},
		mine,
		{Tenant: "t2", API: "messages", Agent: "a1", Session: "s1"},
		{Tenant: "t1", API: "messages", Agent: "A1", Session: "s1"},
		{Tenant: "t1", API: "messages", Session: "a1s1"},
		{Tenant: "t1", API: "messages", Agent: "a1s1"},
	}
	for i, k := range all {
		save(t, s, &store.Record{ID: "r" + strconv.Itoa(i), Key: k, Updated: noon})
	}
	for i, k := range all {
		if got := ids(load(t, s, k)); got != "r"+strconv.Itoa(i) {
			t.Errorf("key %+v has %s", k, got)
		}
	}
	other := &store.Record{ID: "r5", Key: all[6], Version: 1, Updated: noon, Data: []byte("taken")}
	if err := s.Save(t.Context(), other); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a record moved to another tenant: %v", err)
	}
}

func conflicts(t *testing.T, s store.Store) {
	r := &store.Record{ID: "r", Key: mine, Updated: noon, Data: []byte("1")}
	save(t, s, r)
	late := *r
	save(t, s, r)
	for _, version := range []int64{0, 1, 3} {
		late.Version, late.Data = version, []byte("late")
		if err := s.Save(t.Context(), &late); !errors.Is(err, store.ErrConflict) || late.Version != version {
			t.Errorf("version %d: got error %v and version %d, want a conflict", version, err, late.Version)
		}
	}
	if got := load(t, s, mine); len(got) != 1 || string(got[0].Data) != "1" || got[0].Version != 2 {
		t.Errorf("the record was changed: %+v", got)
	}
	if err := s.Save(t.Context(), &store.Record{ID: "new", Key: mine, Version: 1}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a record that is gone: got error %v, want a conflict", err)
	}
}

func race(t *testing.T, s store.Store) {
	const writers = 8
	save(t, s, &store.Record{ID: "r", Key: mine, Updated: noon})
	won := make([]bool, writers)
	var wait sync.WaitGroup
	for i := range writers {
		wait.Go(func() {
			r := &store.Record{ID: "r", Key: mine, Version: 1, Updated: noon, Data: []byte(strconv.Itoa(i))}
			switch err := s.Save(t.Context(), r); {
			case err == nil:
				won[i] = true
			case !errors.Is(err, store.ErrConflict):
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	got := load(t, s, mine)[0]
	winners := 0
	for i, w := range won {
		if w {
			winners++
			if string(got.Data) != strconv.Itoa(i) {
				t.Errorf("writer %d won, and the data is of %s", i, got.Data)
			}
		}
	}
	if winners != 1 {
		t.Errorf("%d of %d writers won", winners, writers)
	}
}

func copies(t *testing.T, s store.Store) {
	r := &store.Record{ID: "r", Key: mine, Updated: noon, Data: []byte("abc")}
	save(t, s, r)
	r.Data[0] = 'x'
	load(t, s, mine)[0].Data[1] = 'x'
	if got := load(t, s, mine)[0].Data; string(got) != "abc" {
		t.Errorf("got %s: the store shares memory with its callers", got)
	}
}

func expires(t *testing.T, s store.Store) {
	for i := range 10 {
		save(t, s, &store.Record{ID: "r" + strconv.Itoa(i), Key: mine, Updated: noon.Add(time.Duration(i) * time.Hour), Data: make([]byte, 100)})
	}
	for _, step := range []struct {
		before   time.Time
		maxBytes int64
		deleted  int
		left     string
	}{
		{noon, 0, 0, "r9 r8 r7 r6 r5 r4 r3 r2 r1 r0"},
		{noon.Add(2 * time.Hour), 0, 2, "r9 r8 r7 r6 r5 r4 r3 r2"},
		{noon, 450, 4, "r9 r8 r7 r6"},
		{noon.Add(8 * time.Hour), 100, 3, "r9"},
		{noon, 99, 1, ""},
	} {
		n, err := s.Expire(t.Context(), step.before, step.maxBytes)
		if got := ids(load(t, s, mine)); err != nil || n != step.deleted || got != step.left {
			t.Errorf("expire before %v, %d bytes: deleted %d (%v), left %q; want %d, %q", step.before, step.maxBytes, n, err, got, step.deleted, step.left)
		}
	}
}
