// Package storetest has the tests that every store of the gateway must pass.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/store"
)

// Run tests a kind of store. Open returns a new, empty one; Run closes it. Reopen returns the
// same store as another process would open it, while the first one is open; nil means that
// the kind cannot be shared.
func Run(t *testing.T, open func(t *testing.T) store.Store, reopen func(t *testing.T) store.Store) {
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

func refuses(t *testing.T, s store.Store) {
	for _, bad := range []string{"a b", "a\x00b", "a'b", "é", "a\nb", strings.Repeat("x", 257), `a\b`, "a*b"} {
		for _, k := range []store.Key{{Tenant: bad}, {API: bad}, {Agent: bad}, {Session: bad}} {
			if _, err := s.Load(t.Context(), k); err == nil {
				t.Errorf("load took the key %q", k)
			}
			if err := s.Save(t.Context(), &store.Record{ID: "r", Key: k}); err == nil {
				t.Errorf("save took the key %q", k)
			}
		}
	}
	if err := s.Save(t.Context(), &store.Record{Key: mine}); err == nil {
		t.Error("save took a record without an ID")
	}
}

func canceled(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Save(ctx, &store.Record{ID: "r", Key: mine}); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	if _, err := s.Load(ctx, mine); !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v", err)
	}
	save(t, s, &store.Record{ID: "r", Key: mine, Updated: noon}) // the store goes on
}

func secrets(t *testing.T, s store.Store) {
	seen := map[string]bool{}
	for _, name := range []string{"tenants", "other", "tenants"} {
		b, err := s.Secret(t.Context(), name)
		if err != nil || len(b) != 32 {
			t.Fatalf("got %d bytes, %v", len(b), err)
		}
		seen[string(b)] = true
	}
	if len(seen) != 2 {
		t.Errorf("%d different secrets for two names", len(seen))
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
