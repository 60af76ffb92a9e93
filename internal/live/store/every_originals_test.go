package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/store"
)

func keep(t *testing.T, s store.Store, r *store.Record, handle string, texts ...string) {
	t.Helper()
	k := &store.Kept{}
	if handle != "" {
		k.Handles = []string{handle}
	}
	for _, text := range texts {
		k.Originals = append(k.Originals, store.Original{Kind: "k" + text[:1], Data: []byte(text)})
	}
	if err := s.Keep(t.Context(), r, k, 0); err != nil {
		t.Fatal(err)
	}
}

// kept returns the originals of a set as one text.
func kept(t *testing.T, s store.Store, tenant, set string) string {
	t.Helper()
	all, err := s.Kept(t.Context(), tenant, set)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.KeptCount(t.Context(), tenant, set); err != nil || n != len(all) {
		t.Errorf("%d originals are counted, %v; %d are kept", n, err, len(all))
	}
	var texts []string
	for _, o := range all {
		if o.Kind != "k"+string(o.Data[:1]) {
			t.Errorf("%q has the kind %s", o.Data, o.Kind)
		}
		texts = append(texts, string(o.Data))
	}
	return strings.Join(texts, " ")
}

func size(t *testing.T, s store.Store) int64 {
	t.Helper()
	n, err := s.KeptBytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func keeps(t *testing.T, s store.Store) {
	long := strings.Repeat("long text ", 10_000)
	r := &store.Record{ID: "r", Key: mine, Updated: noon, Data: []byte("1"), Set: "s"}
	keep(t, s, r, "", "b", "a", "b", long)
	if got := kept(t, s, "t1", "s"); got != "b a b "+long || r.Version != 1 {
		t.Errorf("got %.20q… and version %d, want all in order", got, r.Version)
	}
	once := size(t, s)
	if once == 0 || once > 5000 {
		t.Errorf("%d bytes: want them compressed", once)
	}
	keep(t, s, r, "", "c")
	if got := kept(t, s, "t1", "s"); got != "b a b "+long+" c" {
		t.Errorf("got %.40q…, want what was added at the end", got)
	}
	once = size(t, s)
	keep(t, s, &store.Record{ID: "q", Key: mine, Updated: noon, Set: "s2"}, "", "a", long)
	if size(t, s) != once {
		t.Error("equal originals of a tenant are there twice")
	}
	keep(t, s, &store.Record{ID: "o", Key: store.Key{Tenant: "t2"}, Updated: noon, Set: "s"}, "", "a")
	if size(t, s) == once || kept(t, s, "t2", "s") != "a" {
		t.Error("two tenants share an original")
	}
	if got := load(t, s, mine); len(got) != 2 || got[1].Set != "s" || string(got[1].Data) != "1" {
		t.Errorf("the records are %+v", got)
	}
	late := *r
	late.Version = 1
	if err := s.Keep(t.Context(), &late, &store.Kept{Originals: []store.Original{{Data: []byte("late")}}}, 0); !errors.Is(err, store.ErrConflict) || late.Version != 1 {
		t.Errorf("got %v, want a conflict", err)
	}
	if strings.Contains(kept(t, s, "t1", "s"), "late") {
		t.Error("originals of a record that was not saved were kept")
	}
	if err := s.Keep(t.Context(), &store.Record{ID: "x", Key: mine}, &store.Kept{}, 0); err == nil {
		t.Error("originals without a set were taken")
	}
}

func forgets(t *testing.T, s store.Store) {
	keep(t, s, &store.Record{ID: "old", Key: mine, Updated: noon, Reader: "me", Set: "old"}, "h1", "a", "b")
	keep(t, s, &store.Record{ID: "new", Key: mine, Updated: noon.Add(time.Hour), Reader: "me", Set: "new"}, "h2", "b", "c")
	save(t, s, &store.Record{ID: "fork", Key: mine, Updated: noon.Add(2 * time.Hour), Reader: "me", Set: "new"})
	for _, step := range []struct {
		before   time.Time
		old, new string
	}{
		{noon, "a b", "b c"},
		{noon.Add(time.Minute), "", "b c"},
		{noon.Add(90 * time.Minute), "", "b c"}, // the fork needs it
		{noon.Add(3 * time.Hour), "", ""},
	} {
		if _, err := s.Expire(t.Context(), step.before, 0); err != nil {
			t.Fatal(err)
		}
		if old, now := kept(t, s, "t1", "old"), kept(t, s, "t1", "new"); old != step.old || now != step.new {
			t.Errorf("before %v: left %q and %q, want %q and %q", step.before, old, now, step.old, step.new)
		}
	}
	if n := size(t, s); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
	save(t, s, &store.Record{ID: "again", Key: mine, Updated: noon, Reader: "me", Set: "new"})
	if got, err := s.Readable(t.Context(), "me", "", "h2", 9); err != nil || len(got) != 0 {
		t.Errorf("a handle of a deleted set leads to %v (%v)", got, err)
	}
}

func full(t *testing.T, s store.Store) {
	const limit = 300
	r := &store.Record{ID: "r", Key: mine, Updated: noon, Set: "s", Data: []byte("before")}
	noise := make([]byte, 200)
	for i := range noise {
		noise[i] = byte(i * i * 7)
	}
	if err := s.Keep(t.Context(), r, &store.Kept{Originals: []store.Original{{Kind: "k", Data: noise}}}, limit); err != nil {
		t.Fatal(err)
	}
	was := size(t, s)
	r.Data = []byte("after")
	other := bytes.Clone(noise)
	for i := range other {
		other[i] ^= byte(i)
	}
	err := s.Keep(t.Context(), r, &store.Kept{Originals: []store.Original{{Kind: "k", Data: other}}}, limit)
	if !errors.Is(err, store.ErrFull) || r.Version != 1 || size(t, s) != was || string(load(t, s, mine)[0].Data) != "before" {
		t.Errorf("got %v, version %d: want that nothing is changed and the error says it is full", err, r.Version)
	}
	if err != nil && strings.Contains(err.Error(), string(other[:20])) {
		t.Error("the error has content")
	}
	if err := s.Keep(t.Context(), r, &store.Kept{Originals: []store.Original{{Kind: "k", Data: noise}}}, limit); err != nil {
		t.Errorf("what is there already is refused: %v", err)
	}
}

func reads(t *testing.T, s store.Store) {
	for i, r := range []store.Record{
		{ID: "a", Key: mine, Reader: "me", Set: "a"},
		{ID: "b", Key: store.Key{Tenant: "t1", Session: "s2"}, Reader: "me", Set: "b"},
		{ID: "c", Key: store.Key{Tenant: "t2", Session: "s2"}, Reader: "other", Set: "c"},
		{ID: "d", Key: mine, Set: "d"},
	} {
		r.Updated = noon.Add(time.Duration(i) * time.Hour)
		keep(t, s, &r, "h-"+r.ID, "text of "+r.ID)
	}
	save(t, s, &store.Record{ID: "e", Key: mine, Reader: "me", Updated: noon.Add(9 * time.Hour)}) // without originals
	save(t, s, &store.Record{ID: "f", Key: store.Key{Tenant: "t2"}, Reader: "x", Set: "a", Updated: noon.Add(9 * time.Hour)})
	for _, tt := range []struct{ reader, session, handle, want string }{
		{"me", "", "", "b a"},
		{"me", "s1", "", "a"},
		{"me", "", "h-a", "a"},
		{"me", "s2", "h-a", ""},
		{"me", "", "h-c", ""},
		{"me", "", "h-d", ""},
		{"other", "", "", "c"},
		{"nobody", "", "", ""},
	} {
		found, err := s.Readable(t.Context(), tt.reader, tt.session, tt.handle, 9)
		if got := ids(found); err != nil || got != tt.want {
			t.Errorf("%+v: got %q (%v)", tt, got, err)
		}
	}
	if got, err := s.Readable(t.Context(), "me", "", "", 1); err != nil || ids(got) != "b" || got[0].Set != "b" || got[0].Key.Session != "s2" {
		t.Errorf("got %+v (%v), want the latest", got, err)
	}
	if _, err := s.Readable(t.Context(), "", "", "h-d", 9); err == nil {
		t.Error("no reader reads what is for no one")
	}
	if got := kept(t, s, "t2", "a"); got != "" {
		t.Errorf("another tenant's set of the same name has %q", got)
	}
}

// keepsWhileDeleting: originals of a record are there, whatever is deleted at the same time.
func keepsWhileDeleting(t *testing.T, s store.Store) {
	const writers, rounds = 3, 15
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range rounds {
				name := fmt.Sprintf("%d-%d", w, i)
				r := &store.Record{ID: name, Key: store.Key{Tenant: "t1", Session: strconv.Itoa(w)}, Updated: noon, Set: name}
				if err := s.Keep(t.Context(), r, &store.Kept{Originals: []store.Original{{Kind: "ka", Data: []byte("all have this")}}}, 0); err != nil {
					t.Errorf("keep: %v", err)
					return
				}
				if all, err := s.Kept(t.Context(), "t1", name); err != nil || len(all) != 1 || string(all[0].Data) != "all have this" {
					t.Errorf("kept %v (%v)", all, err)
				}
				r.Updated = noon.Add(-time.Hour)
				if err := s.Save(t.Context(), r); err != nil {
					t.Errorf("save: %v", err)
				}
			}
		})
	}
	wait.Go(func() {
		for range writers * rounds {
			if _, err := s.Expire(t.Context(), noon, 0); err != nil {
				t.Errorf("expire: %v", err)
			}
		}
	})
	wait.Wait()
}
